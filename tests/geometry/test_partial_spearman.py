"""Partial rank correlation: least squares on ranks, copied tokens, planted confounders."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layergeom.geometry import (
    GeometryError,
    UndefinedCorrelationWarning,
    partial_spearman,
    sequence_draws,
    spearman_estimates,
)
from layergeom.geometry.bootstrap import bootstrap_partial_spearman, spearman
from properties import deterministic
from reference import bootstrap as reference

Tokens = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def tokens_of(sequences: int, per_sequence: int, covariates: int, ties: bool, seed: int) -> Tokens:
    """Two values that share causes, those causes, the sequence of each token, and draws."""
    rng = np.random.default_rng(seed)
    count = sequences * per_sequence
    given = rng.normal(size=(count, covariates))
    common = given.sum(axis=1)
    x, y = common + rng.normal(size=(2, count))
    if ties:
        x, y, given = np.round(2 * x), np.round(2 * y), np.round(2 * given)
    which = rng.permutation(np.arange(count) % sequences)
    return x, y, given, which, sequence_draws(sequences, 20, rng)


@deterministic
@given(
    count=st.integers(12, 60),
    covariates=st.integers(0, 3),
    ties=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_equals_least_squares_on_ranks(count: int, covariates: int, ties: bool, seed: int) -> None:
    x, y, given, *_ = tokens_of(2, count // 2, covariates, ties, seed)
    expected = reference.partial_spearman(x, y, given)
    assert partial_spearman(x, y, given) == pytest.approx(expected, abs=1e-8)


@deterministic
@given(
    sequences=st.integers(2, 8),
    per_sequence=st.integers(12, 20),
    ties=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_draws_equal_those_of_copied_tokens(
    sequences: int, per_sequence: int, ties: bool, seed: int
) -> None:
    x, y, given, which, draws = tokens_of(sequences, per_sequence, 2, ties, seed)
    expected = reference.partial_spearmans(x, y, given, which, draws)
    found = bootstrap_partial_spearman(x, y, given, which, draws)
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_given_nothing_it_is_the_plain_correlation() -> None:
    x, y, *_ = tokens_of(2, 40, 1, False, seed=0)
    assert partial_spearman(x, y, np.empty((80, 0))) == pytest.approx(spearman(x, y), abs=1e-12)


def test_a_planted_confounder_explains_the_correlation_away() -> None:
    rng = np.random.default_rng(1)
    cause = rng.normal(size=3000)
    x, y = np.exp(cause + 0.3 * rng.normal(size=(2, 3000)))
    assert spearman(x, y) > 0.85
    assert abs(partial_spearman(x, y, cause[:, None])) < 0.06
    other = rng.normal(size=(3000, 1))  # a bystander explains nothing
    assert partial_spearman(x, y, other) == pytest.approx(spearman(x, y), abs=0.01)


def test_a_planted_link_outlives_the_confounder() -> None:
    rng = np.random.default_rng(2)
    cause, link = rng.normal(size=(2, 3000))
    x, y = cause + link, cause + link + 0.5 * rng.normal(size=3000)
    found = partial_spearman(x, y, np.stack([cause, rng.normal(size=3000)], axis=1))
    assert 0.8 < found < spearman(x, y)


def test_a_confounder_can_hide_a_link() -> None:
    rng = np.random.default_rng(3)
    cause, link = rng.normal(size=(2, 3000))
    x, y = link + cause, link - cause
    assert abs(spearman(x, y)) < 0.1
    assert partial_spearman(x, y, cause[:, None]) > 0.8


@deterministic
@given(seed=st.integers(0, 2**32 - 1))
def test_only_the_order_of_each_value_counts(seed: int) -> None:
    x, y, given, *_ = tokens_of(2, 30, 2, False, seed)
    expected = partial_spearman(x, y, given)
    assert partial_spearman(np.exp(x), y**3, np.arctan(given)) == pytest.approx(expected, abs=1e-12)
    assert partial_spearman(x, y, -given[:, ::-1]) == pytest.approx(expected, abs=1e-10)
    assert partial_spearman(-x, y, given) == pytest.approx(-expected, abs=1e-10)
    assert partial_spearman(y, x, given) == pytest.approx(expected, abs=1e-12)


def test_a_given_that_adds_nothing_changes_nothing() -> None:
    x, y, given, *_ = tokens_of(2, 30, 1, False, seed=4)
    expected = pytest.approx(partial_spearman(x, y, given), abs=1e-9)
    assert partial_spearman(x, y, np.column_stack([given, np.ones(60)])) == expected
    assert partial_spearman(x, y, np.column_stack([given, 2 * given])) == expected


def test_an_estimate_is_the_statistic_with_percentiles_of_its_draws() -> None:
    x, y, given, which, draws = tokens_of(8, 12, 2, False, seed=5)
    _, found = spearman_estimates(x, y, given, which, draws)
    assert found.value == pytest.approx(reference.partial_spearman(x, y, given))
    ends = np.percentile(reference.partial_spearmans(x, y, given, which, draws), [2.5, 97.5])
    np.testing.assert_allclose([found.ci_low, found.ci_high], ends)


def test_tokens_without_any_one_value_are_left_out() -> None:
    x, y, given, which, draws = tokens_of(6, 10, 2, False, seed=6)
    x[3], y[10], given[20, 1] = np.nan, np.nan, np.nan
    kept = ~np.isin(np.arange(60), [3, 10, 20])
    _, found = spearman_estimates(x, y, given, which, draws)
    assert np.isfinite([found.value, found.ci_low, found.ci_high]).all()
    assert found == spearman_estimates(x[kept], y[kept], given[kept], which[kept], draws)[1]


@pytest.mark.parametrize("explained", ["constant", "given"])
def test_nothing_left_to_correlate_is_a_gap_with_a_named_warning(explained: str) -> None:
    x, y, given, which, draws = tokens_of(4, 10, 2, False, seed=7)
    x = np.ones(40) if explained == "constant" else given[:, 1] ** 3
    with pytest.warns(UndefinedCorrelationWarning):
        assert np.isnan(partial_spearman(x, y, given))
    with pytest.warns(UndefinedCorrelationWarning):
        _, found = spearman_estimates(x, y, given, which, draws)
    assert np.isnan([found.value, found.ci_low, found.ci_high]).all()


def test_too_few_tokens_are_a_gap() -> None:
    x, y, given, which, draws = tokens_of(2, 2, 2, False, seed=8)
    _, found = spearman_estimates(x, y, given, which, draws)
    assert np.isnan([found.value, found.ci_low, found.ci_high]).all()


def test_lengths_that_differ_are_refused() -> None:
    with pytest.raises(GeometryError, match="5 and 5 values given 4"):
        partial_spearman(np.arange(5.0), np.arange(5.0), np.ones((4, 1)))
