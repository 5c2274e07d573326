"""Correlations over layers against SciPy, draw by draw, and how often their intervals are right."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from layergeom.geometry import GeometryError, UndefinedCorrelationWarning, spearman_over_layers
from layergeom.geometry.over_layers import layer_draws
from properties import deterministic


def same_draws(profile: np.ndarray, draws: int = 200) -> np.ndarray:
    return np.tile(profile, (draws, 1))


@pytest.mark.parametrize(("layers", "length"), [(3, 1), (7, 2), (13, 2), (31, 3), (49, 4)])
def test_layers_are_drawn_in_runs_of_neighbours(layers: int, length: int) -> None:
    drawn = layer_draws(layers, 500, np.random.default_rng(0))
    assert drawn.shape == (500, layers)
    steps = np.diff(drawn, axis=1)
    inside = np.arange(1, layers) % length != 0
    assert (steps[:, inside] == 1).all()
    assert set(np.unique(drawn)) == set(range(layers))


def test_equals_scipy_on_every_draw() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 19))
    x_draws, y_draws = x + 0.3 * rng.normal(size=(300, 19)), y + 0.3 * rng.normal(size=(300, 19))
    drawn = layer_draws(19, 300, np.random.default_rng(7))
    expected = [
        spearmanr(x_draws[i][layers], y_draws[i][layers]).statistic
        for i, layers in enumerate(drawn)
    ]
    found = spearman_over_layers(x, y, x_draws, y_draws, np.random.default_rng(7))
    assert found.value == pytest.approx(spearmanr(x, y).statistic)
    low, high = np.percentile(expected, [2.5, 97.5])
    assert (found.ci_low, found.ci_high) == (pytest.approx(low), pytest.approx(high))


@deterministic
@given(layers=st.integers(5, 40), seed=st.integers(0, 2**32 - 1))
def test_rising_maps_change_nothing(layers: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, layers))
    draws = [profile + 0.2 * rng.normal(size=(50, layers)) for profile in (x, y)]
    plain = spearman_over_layers(x, y, *draws, np.random.default_rng(0))
    mapped = spearman_over_layers(
        np.exp(x), 3.0 * y - 1.0, np.exp(draws[0]), 3.0 * draws[1] - 1.0, np.random.default_rng(0)
    )
    assert mapped == plain


def test_profiles_that_rise_together_correlate_in_every_draw() -> None:
    x = np.arange(12.0)
    found = spearman_over_layers(x, x**3, same_draws(x), same_draws(x**3), np.random.default_rng(0))
    assert (found.value, found.ci_low, found.ci_high) == pytest.approx((1.0, 1.0, 1.0))


def test_the_error_of_the_measurement_widens_the_interval() -> None:
    rng = np.random.default_rng(3)
    x = np.arange(30.0)
    noisy = x + 15.0 * rng.normal(size=(200, 30))
    exact = spearman_over_layers(x, x, same_draws(x), same_draws(x), np.random.default_rng(0))
    loose = spearman_over_layers(x, x, noisy, same_draws(x), np.random.default_rng(0))
    assert loose.ci_low < 0.9 < exact.ci_low


def test_smooth_profiles_that_have_nothing_to_do_with_each_other_are_seldom_judged_related() -> (
    None
):
    """Neighbours of a moving average resemble each other; layers drawn one by one forget that."""
    rng = np.random.default_rng(4)
    holds, trials = 0, 150
    for _ in range(trials):
        noise = rng.normal(size=(2, 32))
        x, y = noise[:, 1:] + noise[:, :-1]
        found = spearman_over_layers(x, y, same_draws(x), same_draws(y), rng)
        holds += found.ci_low < 0.0 < found.ci_high
    assert holds / trials > 0.85


def test_layers_without_a_value_are_left_out() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(2, 9))
    gap = np.insert(x, 4, np.nan)
    wide = np.insert(y, 4, 100.0)
    plain = spearman_over_layers(x, y, same_draws(x), same_draws(y), np.random.default_rng(0))
    holed = spearman_over_layers(
        gap, wide, same_draws(gap), same_draws(wide), np.random.default_rng(0)
    )
    assert holed == plain


def test_two_layers_have_no_correlation() -> None:
    x = np.array([1.0, 2.0])
    found = spearman_over_layers(x, x, same_draws(x), same_draws(x), np.random.default_rng(0))
    assert np.isnan([found.value, found.ci_low, found.ci_high]).all()


def test_a_constant_profile_is_a_gap_with_a_warning() -> None:
    x, flat = np.arange(6.0), np.ones(6)
    with pytest.warns(UndefinedCorrelationWarning, match="constant over the layers"):
        found = spearman_over_layers(
            x, flat, same_draws(x), same_draws(flat), np.random.default_rng(0)
        )
    assert np.isnan([found.value, found.ci_low, found.ci_high]).all()


def test_draws_of_other_layers_are_refused() -> None:
    x = np.arange(6.0)
    with pytest.raises(GeometryError, match=r"\(6,\) and \(6,\) do not match .* \(200, 5\)"):
        spearman_over_layers(x, x, same_draws(x[:5]), same_draws(x), np.random.default_rng(0))
