"""Every pass takes every part of the stream once, and a step can be had without those before it."""

import numpy as np
import pytest

from layergeom.errors import UsageError
from layergeom.models.data_order import evenly_spaced, training_batch

CONTEXT = 8
STREAM = np.arange(500)  # a token is its own place
PASSES = (500 - CONTEXT) // CONTEXT


def batch(step: int, seed: int = 3, size: int = 7) -> np.ndarray:
    return training_batch(STREAM, seed, step, size, CONTEXT)


def test_sequences_are_stretches_with_the_token_that_follows() -> None:
    for step in range(30):
        found = batch(step)
        assert found.shape == (7, CONTEXT + 1)
        np.testing.assert_array_equal(np.diff(found, axis=1), 1)


def test_a_pass_takes_no_token_twice_and_leaves_out_less_than_two_sequences() -> None:
    starts = np.concatenate([batch(step, size=1)[:, 0] for step in range(3 * PASSES)])
    for turn in range(3):
        here = np.sort(starts[turn * PASSES : (turn + 1) * PASSES])
        np.testing.assert_array_equal(np.diff(here), CONTEXT)
    assert len(STREAM) - PASSES * CONTEXT <= 2 * CONTEXT


def test_passes_and_seeds_differ_in_order() -> None:
    assert not np.array_equal(batch(0, size=PASSES), batch(1, size=PASSES))
    assert not np.array_equal(batch(0), batch(0, seed=4))


def test_the_size_of_the_batch_only_cuts_the_same_order() -> None:
    whole = batch(0, size=2 * PASSES)
    pieces = np.concatenate([batch(step, size=2) for step in range(PASSES)])
    np.testing.assert_array_equal(whole, pieces)


def test_a_step_does_not_depend_on_those_before() -> None:
    late = batch(41)
    for step in range(41):
        batch(step)
    np.testing.assert_array_equal(batch(41), late)


def test_too_few_tokens_are_refused_with_both_numbers() -> None:
    training_batch(STREAM[: 2 * CONTEXT], 0, 0, 4, CONTEXT)
    with pytest.raises(UsageError, match=r"15 tokens are too few .* at least 16"):
        training_batch(STREAM[: 2 * CONTEXT - 1], 0, 0, 4, CONTEXT)


def test_even_spacing_reaches_from_the_first_token_to_the_last() -> None:
    found = evenly_spaced(STREAM, 5, CONTEXT)
    assert (found[0, 0], found[-1, -1]) == (0, 499)
    assert set(np.diff(found[:, 0])) <= {122, 123}
    with pytest.raises(UsageError, match="8 held-out tokens are too few for a sequence of 8"):
        evenly_spaced(STREAM[:CONTEXT], 5, CONTEXT)
