"""Null subspaces orthogonal to what was removed, and as rich in variance as the readout."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, kstest

from layergeom.geometry import (
    GeometryError,
    leading_components,
    orthogonal_subspaces,
    random_subspaces,
    remove_common_components,
    subspace_pga,
    variance_matched_subspaces,
)
from properties import deterministic
from reference import nulls as reference


def projector(basis: np.ndarray) -> np.ndarray:
    return basis @ basis.T


def spectrum(tokens: int, width: int, seed: int, decay: float = 0.85) -> np.ndarray:
    """A centred cloud of falling variances in random directions."""
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(tokens, width)) * decay ** np.arange(width)
    states = states @ np.linalg.qr(rng.normal(size=(width, width))).Q
    return states - states.mean(axis=0)


@deterministic
@given(data=st.data(), width=st.integers(4, 20), seed=st.integers(0, 2**32 - 1))
def test_orthogonal_subspaces_are_orthonormal_and_orthogonal(
    data: st.DataObject, width: int, seed: int
) -> None:
    gone = data.draw(st.integers(0, width - 2))
    k = data.draw(st.integers(1, width - gone - 1))
    rng = np.random.default_rng(seed)
    removed = np.linalg.qr(rng.normal(size=(width, gone))).Q
    for basis in orthogonal_subspaces(removed, k, 3, rng):
        np.testing.assert_allclose(basis.T @ basis, np.eye(k), atol=1e-12)
        np.testing.assert_allclose(removed.T @ basis, 0.0, atol=1e-10)


def test_orthogonal_subspaces_are_uniform_in_what_is_left() -> None:
    """Like a uniform subspace of the d - c dimensions: a Beta(k/2, (d - c - k)/2) share."""
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.normal(size=(8, 8))).Q
    found = orthogonal_subspaces(axes[:, :2], 3, 2000, rng)
    for vector in (axes[:, 2], axes[:, 3:].sum(axis=1) / np.sqrt(5.0)):
        shares = np.sum((vector @ found) ** 2, axis=1)
        assert kstest(shares, beta(3 / 2, 3 / 2).cdf).pvalue > 0.01


def test_with_nothing_removed_they_are_the_uniform_ones() -> None:
    nothing = np.empty((9, 0))
    found = orthogonal_subspaces(nothing, 4, 5, np.random.default_rng(1))
    uniform = random_subspaces(9, 4, 5, np.random.default_rng(1))
    np.testing.assert_allclose(found, uniform, atol=1e-12)


def test_they_lose_nothing_to_the_removed_components() -> None:
    states = spectrum(60, 12, 2)
    removed = leading_components(states, 3)
    left = remove_common_components(states, 3)
    shares = [
        [reference.captured(left, basis) for basis in subspaces]
        for subspaces in (
            orthogonal_subspaces(removed, 4, 400, np.random.default_rng(3)),
            random_subspaces(12, 4, 400, np.random.default_rng(3)),
        )
    ]
    assert np.mean(shares[0]) == pytest.approx(4 / 9, abs=0.02)
    assert np.mean(shares[1]) == pytest.approx(4 / 12, abs=0.02)


@pytest.mark.parametrize("k", [0, 6, 7])
def test_orthogonal_subspaces_that_cannot_differ_are_refused(k: int) -> None:
    with pytest.raises(GeometryError, match=f"dimension {k} .*between 1 and 5"):
        orthogonal_subspaces(np.eye(8)[:, :2], k, 5, np.random.default_rng(4))


@deterministic
@given(
    tokens=st.integers(8, 40),
    width=st.integers(8, 30),
    ccr=st.integers(0, 2),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_captured_variance_is_that_of_the_readout(
    tokens: int, width: int, ccr: int, seed: int
) -> None:
    left = remove_common_components(spectrum(tokens, width, seed), ccr)
    readout = random_subspaces(width, 3, 2, np.random.default_rng(seed))[0]
    found = variance_matched_subspaces(left, readout, 6, np.random.default_rng(seed))
    for basis in found:
        np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=1e-10)
    mean = np.mean([reference.captured(left, basis) for basis in found])
    assert mean == pytest.approx(reference.captured(left, readout), abs=1e-8)


@pytest.mark.parametrize("along", ["first", "last"])
@pytest.mark.parametrize("shape", [(40, 10), (10, 20)], ids=str)
def test_equals_plain_powers_and_halving(shape: tuple[int, int], along: str) -> None:
    """Readouts that hold more and less than a uniform subspace: exponents of either sign."""
    left = remove_common_components(spectrum(*shape, seed=5), 1)
    values, directions = reference.principal_part(left)
    assert len(values) == min(shape[1], shape[0] - 1) - 1
    chosen = directions[:, 1:4] if along == "first" else directions[:, -4:-1]
    rng = np.random.default_rng(5)
    readout = np.linalg.qr(chosen + 0.1 * rng.normal(size=chosen.shape)).Q
    gaussians = np.random.default_rng(6).standard_normal((5, len(values), 3))
    expected = reference.matched(left, readout, gaussians)
    found = variance_matched_subspaces(left, readout, 5, np.random.default_rng(6))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(projector(one), projector(other), atol=1e-6)


def test_they_avoid_what_was_removed() -> None:
    states = spectrum(50, 10, 7)
    left = remove_common_components(states, 2)
    found = variance_matched_subspaces(left, np.eye(10)[:, :3], 4, np.random.default_rng(7))
    np.testing.assert_allclose(leading_components(states, 2).T @ found, 0.0, atol=1e-8)


def test_a_steep_spectrum_costs_no_digit() -> None:
    """Variances over twelve orders of magnitude, and a readout that holds nearly all of them."""
    states = spectrum(80, 24, 8, decay=0.55)
    readout = np.linalg.svd(states)[2][:4].T
    readout = np.linalg.qr(readout + 1e-3 * np.random.default_rng(8).normal(size=(24, 4))).Q
    found = variance_matched_subspaces(states, readout, 8, np.random.default_rng(9))
    mean = np.mean([reference.captured(states, basis) for basis in found])
    assert mean == pytest.approx(reference.captured(states, readout), abs=1e-9)


def test_a_rotation_of_everything_rotates_the_subspaces() -> None:
    """Up to the sign of each principal direction, which G does not see on average."""
    states, readout = spectrum(40, 10, 10), np.eye(10)[:, :3]
    rotation = np.linalg.qr(np.random.default_rng(10).normal(size=(10, 10))).Q
    shares = [
        [reference.captured(cloud, basis) for basis in subspaces]
        for cloud, subspaces in (
            (states, variance_matched_subspaces(states, readout, 5, np.random.default_rng(11))),
            (
                states @ rotation.T,
                variance_matched_subspaces(
                    states @ rotation.T, rotation @ readout, 5, np.random.default_rng(11)
                ),
            ),
        )
    ]
    np.testing.assert_allclose(shares[0], shares[1], atol=1e-6)


def test_a_readout_that_only_holds_variance_beats_uniform_subspaces_alone() -> None:
    """What the null is for: along the variance, z against Haar is high, and low against this."""
    rng = np.random.default_rng(12)
    states = rng.normal(size=(80, 20)) * 0.8 ** np.arange(20)
    left = remove_common_components(states, 1)
    _, directions = reference.principal_part(left)
    readout = np.linalg.qr(directions[:, :5] + 0.15 * rng.normal(size=(20, 5))).Q
    uniform = subspace_pga(states, readout, random_subspaces(20, 5, 60, rng))
    matched = subspace_pga(states, readout, variance_matched_subspaces(left, readout, 60, rng))
    assert uniform.p == pytest.approx(1 / 61)
    assert matched.p > 2 / 61
    assert matched.z < 0.5 * uniform.z


def test_a_readout_with_less_variance_than_any_member_is_out_of_reach() -> None:
    states = spectrum(50, 10, 13)
    left = remove_common_components(states, 3)
    readout = leading_components(states, 3)  # what was removed: it holds nothing
    with pytest.raises(GeometryError, match=r"at least .*no null matches it"):
        variance_matched_subspaces(left, readout, 5, np.random.default_rng(13))


def test_a_readout_beyond_the_largest_exponent_is_out_of_reach() -> None:
    """Variances so alike that no power of their ratios tells them apart."""
    rng = np.random.default_rng(14)
    flat = np.linalg.qr(rng.normal(size=(30, 6))).Q
    flat = np.linalg.qr(flat - flat.mean(axis=0)).Q * (1.0 + 1e-6 * np.arange(6, 0, -1))
    readout = np.linalg.svd(flat)[2][:2].T
    with pytest.raises(GeometryError, match=r"at most .*no null matches it"):
        variance_matched_subspaces(flat, readout, 5, rng)


def test_too_few_directions_that_vary_are_refused_with_the_largest() -> None:
    flat = np.random.default_rng(15).normal(size=(30, 4)) @ np.eye(10)[:4]
    flat -= flat.mean(axis=0)
    variance_matched_subspaces(flat, np.eye(10)[:, :3], 3, np.random.default_rng(15))
    with pytest.raises(GeometryError, match=r"4 directions that vary.*largest is 3"):
        variance_matched_subspaces(flat, np.eye(10)[:, :4], 3, np.random.default_rng(15))


def test_bad_input_is_refused() -> None:
    states, readout = spectrum(20, 8, 16), np.eye(8)[:, :3]
    rng = np.random.default_rng(16)
    with pytest.raises(GeometryError, match="do not match"):
        variance_matched_subspaces(states[:, :-1], readout, 3, rng)
    with pytest.raises(GeometryError, match="do not vary"):
        variance_matched_subspaces(np.zeros_like(states), readout, 3, rng)
    states[2, 1] = np.inf
    with pytest.raises(GeometryError, match="not finite"):
        variance_matched_subspaces(states, readout, 3, rng)


def test_one_subspace_is_no_null() -> None:
    rng = np.random.default_rng(17)
    for ask in (
        lambda: orthogonal_subspaces(np.eye(8)[:, :2], 3, 1, rng),
        lambda: variance_matched_subspaces(spectrum(20, 8, 17), np.eye(8)[:, :3], 1, rng),
    ):
        with pytest.raises(GeometryError, match="2 random subspaces or more, got 1"):
            ask()
