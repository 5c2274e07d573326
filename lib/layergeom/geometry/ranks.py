"""Spearman's correlation between vectors of distances, for one reference and many others.

The reference is ranked once. Every other vector is counted into narrow bins, and each distance
takes the mean rank of its bin: no sort, two passes over the distances. What that can lose is known
from the counts; where it could matter, the vector is sorted instead, as 64-bit keys that hold the
distance in the upper half and the reference's rank in the lower half, so that one sort yields both
orders. The sort is a radix sort in three passes over the 31 bits of the distance. Both are compiled
by Numba.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numba import njit

from layergeom.geometry.errors import GeometryError, UndefinedCorrelationWarning

#: Steps per unit of distance. Distances that are mathematically equal differ by rounding (about
#: 1e-16), and a rank statistic must not see that: they are snapped to multiples of 2^-29, about
#: 2e-9. A power of two, so that scaling is exact; the largest distance, 2, is 2^30 steps.
STEPS = 2.0**29

#: Bits of a bin's number. The counts of 2^17 bins, half a megabyte, stay in a core's second cache.
_BIN_BITS = 17
#: Numbers of distances that are counted: fewer are sorted sooner than the bins are emptied, and
#: the products of more would overflow.
_COUNTED = range(1 << 15, 1 << 26)
#: Largest share of the ranks' variance that bins may hide before a vector is sorted instead. The
#: order within bins has no part in the reference's order, so the correlation moves by about the
#: root of share over pairs: 1e-7 at most for the 180,000 pairs of 600 tokens.
_HIDDEN = 2e-9


@dataclass(frozen=True)
class ReferenceRanks:
    """Ranks of a reference vector of ``pairs`` snapped distances.

    Attributes:
        doubled: twice the rank of each distance, 2 to 2 * pairs; ties share their mean rank,
            and doubling keeps that an integer.
        sum_squares: sum of squared deviations of the ranks from their mean.
    """

    doubled: Int[np.ndarray, " pairs"]
    sum_squares: float


def snap(distances: Float[np.ndarray, " pairs"]) -> Int[np.ndarray, " pairs"]:
    """Cosine distances as whole steps of ``1 / STEPS``.

    Raises:
        GeometryError: fewer than two distances, or values outside [0, 2].
    """
    if distances.size < 2:
        raise GeometryError(f"a rank correlation needs 2 distances or more, got {distances.size}")
    low, high = float(distances.min()), float(distances.max())
    if not (low >= -1e-9 and high <= 2.0 + 1e-9):  # false for NaN as well
        raise GeometryError(f"cosine distances lie in [0, 2]; these span {low:g} to {high:g}")
    return (np.clip(distances, 0.0, 2.0) * STEPS + 0.5).astype(np.int32)


@njit(nogil=True, cache=True)
def _sorted_keys(snapped, payload):  # type: ignore[no-untyped-def]
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
def _ranks(keys, doubled):  # type: ignore[no-untyped-def]
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
def _cross_product(keys):  # type: ignore[no-untyped-def]
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
def _binned_cross_product(snapped, payload, bits):  # type: ignore[no-untyped-def]
    """As ``_cross_product``, with a bin's distances as ties; and whether a bin is one step."""
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


def _products(
    snapped: Int[np.ndarray, " pairs"], doubled: Int[np.ndarray, " pairs"]
) -> tuple[float, float]:
    """Sum of centred rank times reference rank, and sum(t^3 - t): counted, or sorted."""
    pairs = snapped.size
    if pairs in _COUNTED:
        cross, ties, exact = _binned_cross_product(snapped, doubled, _BIN_BITS)
        if exact or ties <= _HIDDEN * float(pairs) ** 3:
            return cross, ties
    # The positions are centred, so the mean of the reference's ranks drops out of the product.
    return _cross_product(_sorted_keys(snapped, doubled))  # type: ignore[no-any-return]


def _sum_squares(pairs: int, ties: float) -> float:
    """Sum of squared deviations of mean ranks: (n^3 - n - sum(t^3 - t)) / 12."""
    return (float(pairs) ** 3 - pairs - ties) / 12.0


def reference_ranks(snapped: Int[np.ndarray, " pairs"]) -> ReferenceRanks:
    """Rank a reference vector of snapped distances, ties averaged.

    Raises:
        ValueError: values that ``snap`` cannot have made.
    """
    doubled = np.empty(snapped.size, np.int32)
    ties = _ranks(_sorted_keys(snapped, np.arange(snapped.size)), doubled)
    return ReferenceRanks(doubled, _sum_squares(snapped.size, ties))


def spearman_to_reference(snapped: Int[np.ndarray, " pairs"], reference: ReferenceRanks) -> float:
    """Spearman's correlation of snapped distances with a ranked reference, ties averaged.

    Equals ``scipy.stats.spearmanr`` to 1e-6 where distances are apart by more than a step;
    those within one share a rank.

    Returns:
        The correlation; NaN with an ``UndefinedCorrelationWarning`` if either vector is constant.

    Raises:
        GeometryError: the lengths differ.
    """
    pairs = reference.doubled.size
    if snapped.size != pairs:
        raise GeometryError(f"{snapped.size} distances against a reference of {pairs}")
    cross, ties = _products(snapped, reference.doubled)
    scale = _sum_squares(pairs, ties) * reference.sum_squares
    if scale <= 0.0:
        warnings.warn(
            "all distances are equal: the rank correlation is undefined",
            UndefinedCorrelationWarning,
            stacklevel=2,
        )
        return float("nan")
    return 0.5 * cross / float(np.sqrt(scale))
