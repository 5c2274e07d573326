"""Errors of equal length in other directions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from layergeom.geometry import GeometryError, along_tokenwise, other_tokens, random_direction
from properties import deterministic


def errors(tokens: int, width: int, seed: int) -> np.ndarray:
    """Residuals of very different lengths."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(tokens, width)) * np.exp(rng.normal(size=(tokens, 1)))


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@deterministic
@given(tokens=st.integers(2, 30), width=st.integers(1, 12), seed=st.integers(0, 2**32 - 1))
def test_every_control_has_the_length_of_the_residual(tokens: int, width: int, seed: int) -> None:
    residual, update = errors(tokens, width, seed), errors(tokens, width, seed ^ 1)
    residual[0] = 0.0
    if tokens == 2:
        residual[0] = 1e-3
    lengths = np.linalg.norm(residual, axis=1)
    rng = np.random.default_rng(seed)
    for control in (
        random_direction(residual, rng),
        other_tokens(residual, rng),
        along_tokenwise(residual, update),
    ):
        assert control.shape == residual.shape
        np.testing.assert_allclose(np.linalg.norm(control, axis=1), lengths, rtol=1e-12)


def test_float32_residuals_give_float64_controls_and_stay_as_they_are() -> None:
    residual = errors(9, 4, 0).astype(np.float32)
    before, rng = residual.copy(), np.random.default_rng(0)
    for control in (
        random_direction(residual, rng),
        other_tokens(residual, rng),
        along_tokenwise(residual, residual[::-1]),
    ):
        assert control.dtype == np.float64
    np.testing.assert_array_equal(residual, before)


def test_random_directions_are_uniform_and_fresh_for_each_token() -> None:
    directions = unit(random_direction(np.ones((20_000, 3)), np.random.default_rng(1)))
    np.testing.assert_allclose(directions.mean(axis=0), 0.0, atol=0.02)
    np.testing.assert_allclose(directions.T @ directions / 20_000, np.eye(3) / 3.0, atol=0.01)


def test_another_token_is_never_itself_and_each_other_as_often() -> None:
    residual = errors(6, 5, 2)
    counts = np.zeros((6, 6))
    rng = np.random.default_rng(2)
    for _ in range(600):
        cosines = unit(other_tokens(residual, rng)) @ unit(residual).T
        counts += np.isclose(cosines, 1.0)
    assert (np.diag(counts) == 0).all()
    assert (counts.sum(axis=1) == 600).all()
    assert chisquare(counts[~np.eye(6, dtype=bool)]).pvalue > 0.01


def test_two_tokens_swap_their_directions() -> None:
    residual = np.array([[3.0, 0.0], [0.0, 1.0]])
    found = other_tokens(residual, np.random.default_rng(3))
    np.testing.assert_allclose(found, [[0.0, 3.0], [1.0, 0.0]])


def test_a_token_without_residual_lends_no_direction_and_takes_none() -> None:
    residual = np.array([[3.0, 0.0], [0.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    for seed in range(20):
        rng = np.random.default_rng(seed)
        expected = [[0.0, 3.0], [0.0, 0.0], [1.0, 0.0], [0.0, 0.0]]
        np.testing.assert_allclose(other_tokens(residual, rng), expected)
    assert not random_direction(residual, np.random.default_rng(0))[1].any()


def test_the_tokenwise_control_points_along_the_update() -> None:
    residual = np.array([[3.0, 4.0], [0.0, 2.0], [0.0, 0.0]])
    update = np.array([[0.0, -0.1], [7.0, 0.0], [0.0, 0.0]])
    found = along_tokenwise(residual, update)
    np.testing.assert_allclose(found, [[0.0, -5.0], [2.0, 0.0], [0.0, 0.0]])


def test_no_residual_at_all_gives_no_error_at_all() -> None:
    nothing, rng = np.zeros((4, 3)), np.random.default_rng(4)
    for control in (
        random_direction(nothing, rng),
        other_tokens(nothing, rng),
        along_tokenwise(nothing, nothing),
    ):
        np.testing.assert_array_equal(control, nothing)


def test_a_single_residual_has_no_other() -> None:
    with pytest.raises(GeometryError, match="1 of 3 residuals is not zero"):
        other_tokens(np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]), np.random.default_rng(5))


def test_updates_without_direction_are_refused_with_their_number() -> None:
    update = errors(5, 3, 6)
    update[[1, 4]] = 0.0
    with pytest.raises(GeometryError, match="2 of 5 tokenwise updates are zero vectors"):
        along_tokenwise(errors(5, 3, 7), update)


def test_shapes_that_differ_are_refused() -> None:
    with pytest.raises(GeometryError, match=r"\(5, 3\) against .*\(5, 4\)"):
        along_tokenwise(errors(5, 3, 8), errors(5, 4, 8))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(value: float) -> None:
    broken, rng = errors(5, 3, 9), np.random.default_rng(9)
    broken[2, 1] = value
    for ask in (
        lambda: random_direction(broken, rng),
        lambda: other_tokens(broken, rng),
        lambda: along_tokenwise(broken, errors(5, 3, 9)),
        lambda: along_tokenwise(errors(5, 3, 9), broken),
    ):
        with pytest.raises(GeometryError, match="not finite"):
            ask()
