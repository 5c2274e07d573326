"""Loops over all pairs of tokens, compiled by Numba.

Imported where they are called: a page that plots stored results does not wait for the compiler.
"""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def snap_rows(scaled, largest, steps, pair):  # type: ignore[no-untyped-def]
    """Write the steps of some tokens' scaled cosines with those after them; return where it ends.

    The tokens' own cosines come first; each takes part in pairs with the tokens right of it.
    """
    for i in range(scaled.shape[0]):
        for j in range(i + 1, scaled.shape[1]):
            # The half rounds, and outweighs a cosine that rounding put just above one.
            steps[pair] = np.int32(largest + 0.5 - scaled[i, j])
            pair += 1
    return pair


@njit(nogil=True, cache=True)
def sorted_keys(snapped, payload):  # type: ignore[no-untyped-def]
    """Keys ``snapped << 32 | payload`` in the order of ``snapped``; the sort is stable."""
    pairs = snapped.size
    source = np.empty(pairs, np.int64)
    target = np.empty(pairs, np.int64)
    counts = np.zeros((3, 2048), np.int64)
    for i in range(pairs):
        step = np.int64(snapped[i])
        if step < 0 or step > 1 << 30:
            # Out of range, it would be sorted to a place outside the arrays.
            raise ValueError("snapped distances lie between 0 and 2^30")
        source[i] = (step << 32) | payload[i]
        counts[0, step & 1023] += 1
        counts[1, (step >> 10) & 1023] += 1
        counts[2, step >> 20] += 1
    for digit in range(3):
        before = 0
        for value in range(2048):
            here = counts[digit, value]
            counts[digit, value] = before
            before += here
    for digit in range(3):
        shift = 32 + 10 * digit
        mask = 1023 if digit < 2 else 2047
        for i in range(pairs):
            key = source[i]
            value = (key >> shift) & mask
            target[counts[digit, value]] = key
            counts[digit, value] += 1
        source, target = target, source
    return source


@njit(nogil=True, cache=True)
def ranks(keys, doubled):  # type: ignore[no-untyped-def]
    """Write twice the mean ranks of the keys to ``doubled[payload]``; return sum(t^3 - t)."""
    pairs = keys.size
    ties = 0.0
    start = 0
    while start < pairs:
        stop = start
        value = keys[start] >> 32
        while stop < pairs and keys[stop] >> 32 == value:
            stop += 1
        for i in range(start, stop):
            doubled[keys[i] & 0xFFFFFFFF] = start + stop + 1
        length = float(stop - start)
        ties += length * length * length - length
        start = stop
    return ties


@njit(nogil=True, cache=True)
def cross_product(keys):  # type: ignore[no-untyped-def]
    """Sum of centred mean rank times payload over the keys, and sum(t^3 - t) over its ties."""
    pairs = keys.size
    centre = 0.5 * (pairs - 1)
    cross = 0.0
    ties = 0.0
    # Positions times payloads, ties not yet averaged. Integers within a block cannot overflow,
    # and cost a third of floating-point products.
    for begin in range(0, pairs, 4096):
        end = min(begin + 4096, pairs)
        payloads = 0
        weighted = 0
        for i in range(begin, end):
            payload = keys[i] & 0xFFFFFFFF
            payloads += payload
            weighted += payload * (i - begin)
        cross += (begin - centre) * payloads + weighted
    # Within a run of ties every member takes the run's mean position.
    start = 0
    while start < pairs - 1:
        value = keys[start] >> 32
        if keys[start + 1] >> 32 != value:
            start += 1
            continue
        stop = start + 2
        while stop < pairs and keys[stop] >> 32 == value:
            stop += 1
        mean = 0.5 * (start + stop - 1)
        for i in range(start, stop):
            cross += (mean - i) * (keys[i] & 0xFFFFFFFF)
        length = float(stop - start)
        ties += length * length * length - length
        start = stop
    return cross, ties


@njit(nogil=True, cache=True)
def binned_cross_product(snapped, payload, bits):  # type: ignore[no-untyped-def]
    """As ``cross_product``, with a bin's distances as ties; and whether a bin is one step."""
    pairs = snapped.size
    low = snapped[0]
    high = snapped[0]
    for i in range(pairs):
        low = min(low, snapped[i])
        high = max(high, snapped[i])
    shift = 0
    while (high - low) >> shift >= 1 << bits:
        shift += 1
    ranks = np.zeros(((high - low) >> shift) + 1, np.int32)
    for i in range(pairs):
        ranks[(snapped[i] - low) >> shift] += 1
    # Each count becomes twice its bin's mean rank, less the mean of all.
    ties = 0.0
    before = 0
    for value in range(ranks.size):
        here = ranks[value]
        length = float(here)
        ties += length * length * length - length
        ranks[value] = 2 * before + here - pairs
        before += here
    # Integers within a block cannot overflow, and cost a third of floating-point products.
    cross = 0.0
    for begin in range(0, pairs, 256):
        weighted = 0
        for i in range(begin, min(begin + 256, pairs)):
            weighted += np.int64(ranks[(snapped[i] - low) >> shift]) * payload[i]
        cross += weighted
    return 0.5 * cross, ties, shift == 0
