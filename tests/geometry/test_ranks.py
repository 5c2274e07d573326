"""Rank correlation of distances against SciPy's, and ties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist
from scipy.stats import rankdata, spearmanr

from layergeom.geometry import (
    GeometryError,
    UndefinedCorrelationWarning,
    cosine_distances,
    reference_ranks,
    snap,
    spearman_to_reference,
)
from layergeom.geometry.compiled import binned_cross_product
from layergeom.geometry.ranks import STEPS
from properties import deterministic


def correlation(x: np.ndarray, y: np.ndarray) -> float:
    return spearman_to_reference(snap(x), reference_ranks(snap(y)))


@deterministic
@given(pairs=st.integers(2, 300), seed=st.integers(0, 2**32 - 1))
def test_equals_scipy_without_ties(pairs: int, seed: int) -> None:
    x, y = np.random.default_rng(seed).uniform(0.0, 2.0, size=(2, pairs))
    assert correlation(x, y) == pytest.approx(spearmanr(x, y).statistic, abs=1e-6)


@deterministic
@given(pairs=st.integers(3, 300), values=st.integers(2, 9), seed=st.integers(0, 2**32 - 1))
def test_equals_scipy_with_ties(pairs: int, values: int, seed: int) -> None:
    """Multiples of 1/8 are whole steps, so that ties are ties for both."""
    x, y = np.random.default_rng(seed).integers(0, values, size=(2, pairs)) / 8.0
    x[:2], y[:2] = [0.0, 2.0], [2.0, 0.0]  # neither is constant
    assert correlation(x, y) == pytest.approx(spearmanr(x, y).statistic, abs=1e-12)


def test_equals_scipy_on_as_many_pairs_as_the_default_sample_has() -> None:
    x, noise = np.random.default_rng(0).uniform(0.0, 1.0, size=(2, 600 * 599 // 2))
    y = x + noise
    assert correlation(x, y) == pytest.approx(spearmanr(x, y).statistic, abs=1e-6)


SPREADS = {
    "even": lambda rng, pairs: rng.uniform(0.0, 2.0, pairs),
    "narrow": lambda rng, pairs: 0.9 + 1e-4 * rng.normal(size=pairs),
    "narrow with one far away": lambda rng, pairs: np.r_[
        2.0, 0.9 + 1e-5 * np.clip(rng.normal(size=pairs - 1), -4, 4)
    ],
    "two heaps": lambda rng, pairs: rng.choice([0.1, 1.9], pairs) + 0.01 * rng.uniform(size=pairs),
    "skew": lambda rng, pairs: 2.0 * rng.beta(2.0, 60.0, pairs),
    "few values": lambda rng, pairs: rng.integers(0, 9, pairs) / 8.0,
}


@pytest.mark.parametrize("pairs", [32_767, 32_768, 200_000, 499_500])
@pytest.mark.parametrize("spread", list(SPREADS))
def test_counting_and_sorting_equal_scipy_however_the_distances_are_spread(
    pairs: int, spread: str
) -> None:
    rng = np.random.default_rng(pairs)
    y = SPREADS[spread](rng, pairs)
    order = 0.5 * rankdata(y) / pairs + 0.5 * rng.uniform(size=pairs)
    x = np.sort(SPREADS[spread](rng, pairs))[np.argsort(np.argsort(order))]
    assert correlation(x, y) == pytest.approx(spearmanr(x, y).statistic, abs=1e-6)
    assert correlation(y, y) == pytest.approx(1.0, abs=1e-8)


def test_bins_that_hide_too_much_are_not_used() -> None:
    """Within a bin the order is the reference's, across bins it is not: counting alone would err.

    A distance's last bits follow the reference, its first bits are drawn at random.
    """
    rng = np.random.default_rng(5)
    pairs = 300_000
    y = rng.uniform(0.0, 2.0, pairs)
    x = (rng.integers(0, 2000, pairs) + 0.4 * rankdata(y) / pairs) / 1000.0
    counted, ties, _ = binned_cross_product(snap(x), reference_ranks(snap(y)).doubled, 11)
    scale = (pairs**3 - ties) / 12.0 * reference_ranks(snap(y)).sum_squares
    exact = spearmanr(x, y).statistic
    assert abs(0.5 * counted / np.sqrt(scale) - exact) > 1e-4
    assert correlation(x, y) == pytest.approx(exact, abs=1e-6)


def test_reference_ranks_are_twice_the_mean_ranks() -> None:
    distances = np.array([0.5, 0.25, 0.5, 2.0, 0.0, 0.5])
    found = reference_ranks(snap(distances))
    np.testing.assert_array_equal(found.doubled, 2 * rankdata(distances))
    centred = rankdata(distances) - 3.5
    assert found.sum_squares == pytest.approx(centred @ centred)


def test_the_same_order_gives_one_and_the_reverse_minus_one() -> None:
    x = np.random.default_rng(1).uniform(0.0, 1.0, size=50)
    assert correlation(x**2, x) == pytest.approx(1.0, abs=1e-12)
    assert correlation(1.0 - x, x) == pytest.approx(-1.0, abs=1e-12)


def test_the_ends_of_the_range_are_ranked() -> None:
    x = np.array([2.0, 0.0, 1.0, 2.0 - 1.0 / STEPS, 1.0 / STEPS])
    np.testing.assert_array_equal(reference_ranks(snap(x)).doubled, [10, 2, 6, 8, 4])


def test_distances_within_rounding_share_a_rank() -> None:
    noise = 1e-15 * np.random.default_rng(2).normal(size=40)
    assert len(set(snap(0.3 + noise))) == 1
    assert len(set(snap(np.abs(noise)))) == 1
    assert len(set(snap(2.0 - np.abs(noise)))) == 1


def test_distances_some_steps_apart_do_not_share_a_rank() -> None:
    assert len(set(snap(0.3 + np.arange(40) * 1e-8))) == 40


def test_spearmanr_ranks_the_rounding_noise_of_equal_distances() -> None:
    """Corners of a cube have few distinct distances; a rotation hides that behind rounding.

    The cosines are ratios of whole numbers, so the exact correlation is known. Snapping finds
    it after the rotation as well; SciPy, given the rotated vectors, orders the noise.
    """
    rng = np.random.default_rng(3)
    corners = rng.choice([-1, 1], size=(40, 12))
    upper = np.triu_indices(40, k=1)
    full, inside = 12 - corners @ corners.T, 4 - corners[:, :4] @ corners[:, :4].T
    exact = spearmanr(full[upper], inside[upper]).statistic

    rotation = np.linalg.qr(rng.normal(size=(12, 12))).Q
    rotated, basis = corners @ rotation.T, rotation[:, :4]
    snapped = correlation(cosine_distances(rotated @ basis), cosine_distances(rotated))
    noisy = spearmanr(pdist(rotated @ basis, "cosine"), pdist(rotated, "cosine")).statistic

    assert snapped == pytest.approx(exact, abs=1e-12)
    assert abs(noisy - exact) > 1e-2


@pytest.mark.parametrize("pairs", [2, 1000, 300_001], ids=lambda pairs: f"{pairs} pairs")
def test_a_constant_vector_gives_nan_and_a_named_warning(pairs: int) -> None:
    """The largest case has cubes beyond the whole numbers that a double can hold."""
    constant = np.full(pairs, 0.7)
    varied = np.random.default_rng(4).uniform(0.0, 2.0, size=pairs)
    for x, y in ((constant, varied), (varied, constant)):
        with pytest.warns(UndefinedCorrelationWarning, match="undefined"):
            assert np.isnan(correlation(x, y))


@pytest.mark.parametrize("value", [-0.1, 2.1, np.nan, np.inf])
def test_values_that_are_no_cosine_distance_are_refused(value: float) -> None:
    with pytest.raises(GeometryError, match=r"cosine distances lie in \[0, 2\]"):
        snap(np.array([0.5, value, 1.0]))


def test_rounding_outside_the_range_is_forgiven() -> None:
    np.testing.assert_array_equal(snap(np.array([-1e-12, 2.0 + 1e-12])), [0, 2 * STEPS])


def test_a_single_distance_is_refused() -> None:
    with pytest.raises(GeometryError, match="2 distances or more, got 1"):
        snap(np.array([0.5]))


def test_different_lengths_are_refused_with_both_numbers() -> None:
    x = np.linspace(0.0, 1.0, 6)
    with pytest.raises(GeometryError, match="6 distances against a reference of 4"):
        correlation(x, x[:4])
