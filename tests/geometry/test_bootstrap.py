"""Bootstrap over sequences against really copying their tokens."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from layergeom.geometry import (
    GeometryError,
    median_estimate,
    sequence_draws,
    spearman_estimates,
)
from layergeom.geometry.bootstrap import (
    bootstrap_medians,
    bootstrap_spearman,
    percentile_interval,
    spearman,
)
from properties import deterministic
from reference import bootstrap as reference

SIZES = {
    "sequences": st.integers(2, 8),
    "per_sequence": st.integers(4, 9),
    "ties": st.booleans(),
    "seed": st.integers(0, 2**32 - 1),
}


def tokens_of(
    sequences: int, tokens: int, ties: bool, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Two values by token, the sequence of each (none without tokens), and draws."""
    rng = np.random.default_rng(seed)
    others = rng.integers(0, sequences, size=tokens - sequences)
    which = rng.permutation(np.concatenate([np.arange(sequences), others]))
    x = rng.normal(size=tokens)
    y = x + rng.normal(size=tokens)
    if ties:
        x, y = np.round(2 * x), np.round(2 * y)
    return x, y, which, sequence_draws(sequences, 30, rng)


@deterministic
@given(**SIZES)
def test_medians_equal_those_of_copied_tokens(
    sequences: int, per_sequence: int, ties: bool, seed: int
) -> None:
    x, _, which, draws = tokens_of(sequences, sequences * per_sequence, ties, seed)
    expected = reference.medians(x, which, draws)
    np.testing.assert_allclose(bootstrap_medians(x, which, draws), expected, rtol=1e-12)


@deterministic
@given(**SIZES)
def test_correlations_equal_those_of_copied_tokens(
    sequences: int, per_sequence: int, ties: bool, seed: int
) -> None:
    x, y, _, draws = tokens_of(sequences, sequences * per_sequence, ties, seed)
    which = np.arange(len(x)) % sequences
    x[:sequences], x[sequences : 2 * sequences] = -9.0, 9.0  # no sequence is constant
    y[:sequences], y[sequences : 2 * sequences] = -9.0, 9.0
    expected = reference.spearmans(x, y, which, draws)
    np.testing.assert_allclose(bootstrap_spearman(x, y, which, draws), expected, atol=1e-6)


def test_tokens_without_a_value_are_left_out_of_medians() -> None:
    x, _, which, draws = tokens_of(6, 60, False, seed=0)
    x[::3] = np.nan
    expected = reference.medians(x, which, draws)
    np.testing.assert_allclose(bootstrap_medians(x, which, draws), expected)
    assert median_estimate(x, which, draws).value == pytest.approx(np.nanmedian(x))


def test_a_draw_without_any_value_is_a_gap() -> None:
    values, which = np.array([np.nan, np.nan, 3.0]), np.array([0, 0, 1])
    found = bootstrap_medians(values, which, np.array([[2, 0], [1, 1], [0, 2]]))
    np.testing.assert_array_equal(found, [np.nan, 3.0, 3.0])


def test_a_draw_with_a_constant_is_a_gap() -> None:
    x, y = np.array([1.0, 1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0, 4.0])
    found = bootstrap_spearman(x, y, np.array([0, 0, 1, 1]), np.array([[2, 0], [0, 2]]))
    np.testing.assert_array_equal(found, [np.nan, 1.0])


def test_an_estimate_is_the_statistic_with_percentiles_of_its_draws() -> None:
    x, y, which, draws = tokens_of(8, 80, False, seed=1)
    median = median_estimate(x, which, draws)
    assert median.value == pytest.approx(np.median(x))
    ends = np.percentile(reference.medians(x, which, draws), [2.5, 97.5])
    np.testing.assert_allclose([median.ci_low, median.ci_high], ends)
    correlation, _ = spearman_estimates(x, y, y[:, None] ** 2, which, draws)
    assert correlation.value == pytest.approx(spearmanr(x, y).statistic)
    ends = np.percentile(reference.spearmans(x, y, which, draws), [2.5, 97.5])
    np.testing.assert_allclose([correlation.ci_low, correlation.ci_high], ends)


def test_tokens_without_either_value_are_left_out_of_correlations() -> None:
    x, y, which, draws = tokens_of(6, 60, False, seed=2)
    x[3], y[10] = np.nan, np.nan
    kept = ~np.isin(np.arange(60), [3, 10])
    given = y[:, None] ** 2
    found, _ = spearman_estimates(x, y, given, which, draws)
    assert found == spearman_estimates(x[kept], y[kept], given[kept], which[kept], draws)[0]
    assert found.value == pytest.approx(spearmanr(x[kept], y[kept]).statistic)


def test_nothing_to_estimate_is_a_gap() -> None:
    draws = sequence_draws(2, 10, np.random.default_rng(3))
    nothing, which = np.full(4, np.nan), np.array([0, 0, 1, 1])
    two = np.array([1.0, 2.0, np.nan, np.nan])
    for found in (
        median_estimate(nothing, which, draws),
        *spearman_estimates(two, two, two[:, None], which, draws),
    ):
        assert np.isnan([found.value, found.ci_low, found.ci_high]).all()


@deterministic
@given(count=st.integers(3, 40), ties=st.booleans(), seed=st.integers(0, 2**32 - 1))
def test_correlation_equals_scipy(count: int, ties: bool, seed: int) -> None:
    x, y = np.random.default_rng(seed).normal(size=(2, count))
    if ties:
        x, y = np.round(x), np.round(y)
        x[:2], y[:2] = [-5.0, 5.0], [5.0, -5.0]  # neither is constant
    assert spearman(x, y) == pytest.approx(spearmanr(x, y).statistic, abs=1e-12)


def test_draws_that_are_gaps_do_not_move_the_interval() -> None:
    draws = np.array([np.nan, *np.linspace(0.0, 40.0, 41), np.nan])
    found = percentile_interval(20.0, draws)
    assert (found.value, found.ci_low, found.ci_high) == pytest.approx((20.0, 1.0, 39.0))


def test_the_interval_is_as_wide_as_sequences_differ() -> None:
    """Tokens of a sequence that agree count as one: copying each of them changes nothing."""
    rng = np.random.default_rng(4)
    levels, draws = rng.normal(size=9), sequence_draws(9, 200, rng)
    once = median_estimate(levels, np.arange(9), draws)
    many = median_estimate(np.repeat(levels, 50), np.repeat(np.arange(9), 50), draws)
    assert (once.ci_low, once.ci_high) == (many.ci_low, many.ci_high)
    assert once.ci_high - once.ci_low > 0.1


def test_draws_are_multiplicities_that_a_seed_repeats() -> None:
    found = sequence_draws(7, 500, np.random.default_rng(5))
    assert found.shape == (500, 7)
    assert (found.sum(axis=1) == 7).all()
    assert found.min() == 0
    np.testing.assert_allclose(found.mean(axis=0), 1.0, atol=0.2)
    np.testing.assert_array_equal(found, sequence_draws(7, 500, np.random.default_rng(5)))


@pytest.mark.parametrize(("sequences", "draws"), [(1, 10), (10, 1)])
def test_too_little_to_draw_from_is_refused_with_both_numbers(sequences: int, draws: int) -> None:
    with pytest.raises(GeometryError, match=f"got {sequences} and {draws}"):
        sequence_draws(sequences, draws, np.random.default_rng(6))
