"""Inputs that once crashed the interpreter, or passed as results."""

import numpy as np
import pytest

from layergeom.geometry import (
    GeometryError,
    PGASample,
    UndefinedCorrelationWarning,
    captured_share,
    nearest_neighbours,
    random_subspaces,
    reference_ranks,
    remove_common_components,
    subspace_pga,
    subspace_pga_levels,
)
from layergeom.geometry.bootstrap import spearman
from layergeom.geometry.threads import thread_count
from reference import neighbours as brute_force
from reference import pga as reference


def bases(count: int = 11) -> np.ndarray:
    return random_subspaces(12, 3, count, np.random.default_rng(0))


def states(tokens: int = 300) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(tokens, 12))


def test_no_removal_alone_equals_the_reference() -> None:
    readout, *null = bases()
    found = subspace_pga(states(40), readout, np.array(null), ccr=0)
    rho, rho_null = reference.subspace_pga(states(40), readout, np.array(null), count=0)
    assert found.rho_readout == pytest.approx(rho, abs=1e-6)
    np.testing.assert_allclose(found.rho_null, rho_null, atol=1e-6)


@pytest.mark.parametrize("which", [0, 5])
def test_a_basis_that_is_not_finite_is_refused(which: int) -> None:
    broken = bases()
    broken[which, 0, 0] = np.nan
    with pytest.raises(GeometryError, match="bases hold values that are not finite"):
        subspace_pga(states(), broken[0], broken[1:])


@pytest.mark.parametrize("snapped", [[2**40, 5, 7], [5, -3, 7]])
def test_steps_that_no_distance_has_are_refused(snapped: list[int]) -> None:
    with pytest.raises(ValueError, match="between 0 and"):
        reference_ranks(np.array(snapped))


@pytest.mark.parametrize("levels", [(), (-1, 3)])
def test_levels_are_numbers_of_components(levels: tuple[int, ...]) -> None:
    with pytest.raises(GeometryError, match="0 or more"):
        subspace_pga_levels(states(), bases()[0], bases()[1:], levels)


def test_removing_all_that_varies_is_refused() -> None:
    rng = np.random.default_rng(2)
    flat = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 12))
    remove_common_components(flat, 1)
    for count in (2, 3):
        with pytest.raises(GeometryError, match="nothing but rounding"):
            remove_common_components(flat, count)
        with pytest.raises(GeometryError, match="nothing but rounding"):
            remove_common_components(flat.T[:, :11], count)


def test_many_equal_neighbours_are_taken_in_order() -> None:
    bank = np.random.default_rng(3).normal(size=(300, 8))
    bank[50:250] = bank[50]
    query = bank[[50, 3]]
    assert nearest_neighbours(query, bank, 4)[0].tolist() == [50, 51, 52, 53]
    np.testing.assert_array_equal(
        nearest_neighbours(query, bank, 64), brute_force.nearest(query, bank, 64)
    )


def test_states_that_are_not_finite_have_no_neighbours() -> None:
    with pytest.raises(GeometryError, match="not finite"):
        nearest_neighbours(np.array([[np.nan, 1.0]]), np.ones((3, 2)), 1)


def test_an_undefined_correlation_is_no_significant_one() -> None:
    assert np.isnan(PGASample(float("nan"), np.zeros(9)).p)
    assert np.isnan(PGASample(0.5, np.array([0.1, np.nan, 0.2])).p)


def test_a_null_that_differs_by_rounding_has_no_spread() -> None:
    assert np.isnan(PGASample(0.9, np.full(20, 0.1)).z)


def test_a_constant_vector_has_no_correlation_and_says_so() -> None:
    with pytest.warns(UndefinedCorrelationWarning):
        assert np.isnan(spearman(np.ones(5), np.arange(5.0)))


def test_a_zero_vector_has_no_captured_share() -> None:
    shares = captured_share(np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([[1.0], [0.0]]))
    assert np.isnan(shares[0])
    assert shares[1] == 1.0


@pytest.mark.parametrize("asked", ["", "0", "-2", "two", "²"])
def test_a_thread_count_that_is_no_number_falls_back_to_the_cores(
    asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAYERGEOM_THREADS", asked)
    assert thread_count() >= 1
