"""Means and their intervals against SciPy and against really copied tokens."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from layergeom.geometry import sample_mean_estimate, sequence_draws
from layergeom.geometry.means import bootstrap_means
from properties import deterministic
from reference.bootstrap import replicate


def test_the_interval_over_samples_is_students() -> None:
    samples = np.random.default_rng(0).normal(2.0, 3.0, 8)
    low, high = stats.t.interval(0.95, 7, loc=samples.mean(), scale=stats.sem(samples))
    found = sample_mean_estimate(samples)
    assert found.value == pytest.approx(samples.mean())
    assert (found.ci_low, found.ci_high) == (pytest.approx(low), pytest.approx(high))


@deterministic
@given(scale=st.floats(0.01, 100.0), shift=st.floats(-5.0, 5.0), seed=st.integers(0, 2**32 - 1))
def test_the_interval_moves_with_the_samples(scale: float, shift: float, seed: int) -> None:
    samples = np.random.default_rng(seed).normal(size=5)
    plain, moved = sample_mean_estimate(samples), sample_mean_estimate(scale * samples + shift)
    for name in ("value", "ci_low", "ci_high"):
        expected = scale * getattr(plain, name) + shift
        assert getattr(moved, name) == pytest.approx(expected, abs=1e-9 * scale + 1e-9)


def test_one_sample_has_a_mean_and_no_interval() -> None:
    found = sample_mean_estimate(np.array([4.0]))
    assert found.value == 4.0
    assert np.isnan([found.ci_low, found.ci_high]).all()


def test_a_sample_that_is_missing_leaves_a_gap() -> None:
    found = sample_mean_estimate(np.array([4.0, np.nan, 5.0]))
    assert np.isnan([found.value, found.ci_low, found.ci_high]).all()


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    found = [sample_mean_estimate(rng.normal(1.0, 2.0, 4)) for _ in range(2000)]
    covered = np.mean([estimate.ci_low < 1.0 < estimate.ci_high for estimate in found])
    assert 0.935 < covered < 0.965


def test_bootstrap_means_are_those_of_copied_tokens() -> None:
    rng = np.random.default_rng(2)
    sequences = rng.permutation(np.repeat(np.arange(5), [4, 1, 7, 2, 3]))
    values = rng.normal(size=17) + sequences
    draws = sequence_draws(5, 40, rng)
    expected = [values[replicate(sequences, draw)].mean() for draw in draws]
    np.testing.assert_allclose(bootstrap_means(values, sequences, draws), expected)


def test_a_draw_without_tokens_is_not_a_number() -> None:
    draws = np.array([[0, 2], [2, 0]])
    found = bootstrap_means(np.array([1.0, 3.0]), np.array([1, 1]), draws)
    assert found[0] == 2.0
    assert np.isnan(found[1])
