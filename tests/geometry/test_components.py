"""Common-component removal against a full singular value decomposition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layergeom.geometry import (
    GeometryError,
    component_shares,
    leading_components,
    random_subspaces,
    remove_common_components,
)
from properties import deterministic
from reference import pga as reference


@deterministic
@given(
    tokens=st.integers(4, 40),
    width=st.integers(4, 40),
    count=st.integers(0, 2),
    seed=st.integers(0, 2**32 - 1),
)
def test_equals_the_reference_on_either_side_of_the_width(
    tokens: int, width: int, count: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(tokens, width)) + 10.0 * rng.normal(size=width)
    found = remove_common_components(states, count)
    np.testing.assert_allclose(found, reference.remove_components(states, count), atol=1e-6)


@pytest.mark.parametrize("shape", [(12, 30), (30, 12), (20, 20)], ids=str)
def test_directions_are_those_of_the_decomposition_in_order(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    centred = rng.normal(size=shape) * 0.8 ** np.arange(shape[1])
    centred -= centred.mean(axis=0)
    found = leading_components(centred, 4)
    expected = np.linalg.svd(centred)[2][:4].T
    np.testing.assert_allclose(found.T @ found, np.eye(4), atol=1e-10)
    np.testing.assert_allclose(np.abs(np.sum(found * expected, axis=0)), 1.0, atol=1e-8)


def test_what_is_removed_is_gone() -> None:
    states = np.random.default_rng(1).normal(size=(25, 9)) * np.arange(9, 0, -1)
    centred = states - states.mean(axis=0)
    removed = remove_common_components(states, 3)
    np.testing.assert_allclose(removed @ leading_components(centred, 3), 0.0, atol=1e-10)
    assert np.linalg.matrix_rank(removed, tol=1e-8) == 6


def test_level_zero_only_centres() -> None:
    states = np.random.default_rng(2).normal(size=(8, 5)).astype(np.float32)
    before = states.copy()
    found = remove_common_components(states, 0)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, before - before.astype(np.float64).mean(axis=0))
    np.testing.assert_array_equal(states, before)


@pytest.mark.parametrize(
    ("tokens", "width", "most"), [(6, 10, 4), (10, 6, 5), (6, 6, 4)], ids=lambda n: str(n)
)
def test_removing_everything_is_refused_with_the_largest(
    tokens: int, width: int, most: int
) -> None:
    states = np.random.default_rng(3).normal(size=(tokens, width))
    remove_common_components(states, most)
    with pytest.raises(GeometryError, match=f"between 0 and {most} "):
        remove_common_components(states, most + 1)


def test_a_negative_number_of_components_is_refused() -> None:
    with pytest.raises(GeometryError, match="cannot remove -1"):
        remove_common_components(np.eye(5), -1)


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_states_that_are_not_finite_are_refused(value: float) -> None:
    states = np.eye(5)
    states[1, 1] = value
    with pytest.raises(GeometryError, match="not finite"):
        remove_common_components(states, 1)


def test_shares_of_planted_components() -> None:
    """Variances 9, 4 and 1; the first in the readout, the second dark, the third half and half."""
    third = (np.eye(6)[1] + np.eye(6)[3]) / np.sqrt(2.0)
    directions = np.stack([np.eye(6)[0], np.eye(6)[2], third])
    signs = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])  # uncorrelated
    states = 5.0 + (signs * np.array([3.0, 2.0, 1.0])) @ directions
    found = component_shares(np.tile(states, (3, 1)), np.eye(6)[:, :2], 2)
    np.testing.assert_allclose(found.dark_share, [0.0, 1.0], atol=1e-12)
    np.testing.assert_allclose(found.variance_share, [9 / 14, 4 / 14], rtol=1e-12)


@pytest.mark.parametrize("shape", [(15, 30), (40, 12)], ids=str)
def test_shares_equal_those_of_the_full_decomposition(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(4)
    states = rng.normal(size=shape) * 0.8 ** np.arange(shape[1]) + 3.0
    readout = random_subspaces(shape[1], 4, 2, rng)[0]
    _, values, directions = np.linalg.svd(states - states.mean(axis=0), full_matrices=False)
    found = component_shares(states.astype(np.float64), readout, 5)
    dark = [1.0 - sum(float(v @ u) ** 2 for v in readout.T) for u in directions[:5]]
    np.testing.assert_allclose(found.dark_share, dark, atol=1e-8)
    np.testing.assert_allclose(found.variance_share, values[:5] ** 2 / np.sum(values**2))


def test_a_random_readout_leaves_its_share_of_dimensions_dark() -> None:
    rng = np.random.default_rng(5)
    states = rng.normal(size=(40, 12)) * 0.8 ** np.arange(12)
    shares = [
        component_shares(states, readout, 1).dark_share[0]
        for readout in random_subspaces(12, 3, 800, rng)
    ]
    assert np.mean(shares) == pytest.approx(1.0 - 3 / 12, abs=0.02)


def test_shares_of_what_cannot_be_are_refused() -> None:
    states = np.random.default_rng(6).normal(size=(10, 6))
    with pytest.raises(GeometryError, match="do not match"):
        component_shares(states, np.eye(5)[:, :2], 1)
    with pytest.raises(GeometryError, match="between 0 and 5"):
        component_shares(states, np.eye(6)[:, :2], 6)
    states[0, 0] = np.nan
    with pytest.raises(GeometryError, match="not finite"):
        component_shares(states, np.eye(6)[:, :2], 1)
