"""Tokenwise maps against one dense solve per token, and planted maps."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layergeom.geometry import (
    GeometryError,
    diagonal_map,
    fit_local_maps,
    global_linear_map,
    identity_low_rank_map,
    mean_update_map,
    orthogonal_map,
    reduced_rank_ridge,
)
from properties import deterministic
from reference import maps as reference

RANK = 3
Map = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]

FAST: dict[str, Map] = {
    "diagonal": diagonal_map,
    "orthogonal": orthogonal_map,
    "low_rank": lambda h, x, y: reduced_rank_ridge(h, x, y, RANK),
    "identity_low_rank": lambda h, x, y: identity_low_rank_map(h, x, y, RANK),
    "mean_update": mean_update_map,
}
PLAIN: dict[str, Map] = {
    "diagonal": reference.diagonal,
    "orthogonal": reference.orthogonal,
    "low_rank": lambda h, x, y: reference.low_rank(h, x, y, RANK),
    "identity_low_rank": lambda h, x, y: reference.identity_low_rank(h, x, y, RANK),
    "mean_update": reference.mean_update,
}
CLASSES = tuple(FAST)
every_class = pytest.mark.parametrize("name", CLASSES)


def one_by_one(name: str, h: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.array([PLAIN[name](*token) for token in zip(h, x, y, strict=True)])


def neighbourhoods(
    kind: str, batch: int, count: int, width: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Query states with their neighbours below and above."""
    rng = np.random.default_rng(seed)
    h = rng.normal(size=(batch, width))
    x = h[:, None] + 0.5 * rng.normal(size=(batch, count, width))
    if kind == "far from the origin":
        h[:, 0] += 100.0
        x[:, :, 0] += 100.0
    y = x + 0.3 * rng.normal(size=x.shape)
    if kind == "duplicates":
        x[:, count // 2 :], y[:, count // 2 :] = x[:, :1], y[:, :1]
    if kind == "duplicates below only":
        x[:, count // 2 :] = x[:, :1]
    if kind == "all identical":
        x[:], y[:] = x[:, :1], y[:, :1]
    if kind == "one token with duplicates":
        x[0], y[0] = x[0, :1], y[0, :1]
    if kind == "nearly dependent below":
        x[:, 1::2] = x[:, :-1:2] + 1e-7 * rng.normal(size=x[:, 1::2].shape)
    if kind == "rank deficient":
        x = x @ np.diag(np.arange(width) < max(1, width // 3)).astype(np.float64)
    return h, x, y


KINDS = (
    "apart",
    "far from the origin",
    "duplicates",
    "duplicates below only",
    "all identical",
    "one token with duplicates",
    "nearly dependent below",
    "rank deficient",
)


@every_class
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 5, 11, 16, 30], ids=lambda count: f"{count} neighbours")
def test_equals_the_reference_at_width_16(name: str, kind: str, count: int) -> None:
    h, x, y = neighbourhoods(kind, 4, count, 16, seed=count)
    np.testing.assert_allclose(FAST[name](h, x, y), one_by_one(name, h, x, y), atol=1e-6)


@every_class
@deterministic
@given(
    kind=st.sampled_from(KINDS),
    count=st.integers(1, 30),
    width=st.integers(2, 30),
    seed=st.integers(0, 2**32 - 1),
)
def test_equals_the_reference_at_any_size(
    name: str, kind: str, count: int, width: int, seed: int
) -> None:
    h, x, y = neighbourhoods(kind, 3, count, width, seed)
    np.testing.assert_allclose(FAST[name](h, x, y), one_by_one(name, h, x, y), atol=1e-6)


@deterministic
@given(bank=st.integers(2, 60), width=st.integers(2, 20), seed=st.integers(0, 2**32 - 1))
def test_global_linear_equals_the_reference(bank: int, width: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    query, below, above = (rng.normal(size=(n, width)) for n in (5, bank, bank))
    found = global_linear_map(query, below, above)
    expected = np.array([reference.global_linear(h, below, above) for h in query])
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("count", [4, 40], ids=lambda count: f"{count} neighbours")
def test_fits_of_many_tokens_gather_their_own_neighbours(count: int) -> None:
    rng = np.random.default_rng(0)
    query, below, above = (rng.normal(size=(n, 12)).astype(np.float32) for n in (70, 50, 50))
    near = np.argsort(rng.uniform(size=(70, 50)), axis=1)[:, :count]
    found = fit_local_maps(CLASSES, query, below, above, near, rank=RANK)
    assert tuple(found) == CLASSES
    h, x, y = (a.astype(np.float64) for a in (query, below[near], above[near]))
    for name in CLASSES:
        np.testing.assert_allclose(found[name], one_by_one(name, h, x, y), atol=1e-6)


def test_the_rank_asked_for_is_the_rank_used() -> None:
    h, x, y = neighbourhoods("apart", 70, 12, 10, seed=1)
    near = np.arange(12)[None, :].repeat(70, axis=0)
    for rank in (1, 5):
        found = fit_local_maps(("low_rank",), h, x[0], y[0], near, rank=rank)["low_rank"]
        expected = [reference.low_rank(token, x[0], y[0], rank) for token in h]
        np.testing.assert_allclose(found, expected, atol=1e-6)
        assert np.linalg.matrix_rank(found, tol=1e-8) == rank


@every_class
def test_the_order_of_the_neighbours_does_not_matter(name: str) -> None:
    for count in (5, 25):
        h, x, y = neighbourhoods("apart", 4, count, 16, seed=2)
        order = np.random.default_rng(2).permutation(count)
        shuffled = FAST[name](h, x[:, order], y[:, order])
        np.testing.assert_allclose(shuffled, FAST[name](h, x, y), atol=1e-9)


@pytest.mark.parametrize("name", [name for name in CLASSES if name != "diagonal"])
def test_a_rotation_of_both_layers_rotates_the_prediction(name: str) -> None:
    """All classes but the diagonal one, which belongs to the axes."""
    h, x, y = neighbourhoods("apart", 4, 6, 16, seed=3)
    rotation = np.linalg.qr(np.random.default_rng(3).normal(size=(16, 16))).Q
    turned = FAST[name](h @ rotation.T, x @ rotation.T, y @ rotation.T)
    np.testing.assert_allclose(turned, FAST[name](h, x, y) @ rotation.T, atol=1e-9)


# --- orthogonal ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 7, 8, 16, 40], ids=lambda count: f"{count} neighbours")
def test_the_orthogonal_map_keeps_lengths(kind: str, count: int) -> None:
    h, x, y = neighbourhoods(kind, 5, count, 16, seed=4)
    predicted = orthogonal_map(h, x, y)
    lengths = np.linalg.norm(h, axis=1)
    np.testing.assert_allclose(np.linalg.norm(predicted, axis=1), lengths, rtol=1e-10)


def as_matrix(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The orthogonal map of one neighbourhood as a matrix: what it does to each axis."""
    width = x.shape[1]
    repeated = (a[None].repeat(width, axis=0) for a in (x, y))
    return orthogonal_map(np.eye(width), *repeated).T


@pytest.mark.parametrize("count", [3, 20], ids=lambda count: f"{count} neighbours")
def test_the_orthogonal_map_is_the_dense_minimiser(count: int) -> None:
    _, x, y = neighbourhoods("apart", 1, count, 12, seed=5)
    found = as_matrix(x[0], y[0])
    np.testing.assert_allclose(found, reference.procrustes(x[0], y[0]), atol=1e-10)
    np.testing.assert_allclose(found @ found.T, np.eye(12), atol=1e-10)
    rng = np.random.default_rng(5)
    best = np.sum((y[0] - x[0] @ found.T) ** 2)
    for _ in range(20):
        other = found @ np.linalg.qr(np.eye(12) + 0.1 * rng.normal(size=(12, 12))).Q
        assert np.sum((y[0] - x[0] @ other.T) ** 2) > best


def test_among_equal_minimisers_it_is_the_nearest_to_the_identity() -> None:
    _, x, y = neighbourhoods("apart", 1, 3, 8, seed=6)
    found = as_matrix(x[0], y[0])
    unseen = np.linalg.svd(x[0])[2][3:].T  # orthogonal to every neighbour
    best = np.sum((y[0] - x[0] @ found.T) ** 2)
    rng = np.random.default_rng(6)
    for _ in range(20):
        turn = np.linalg.qr(np.eye(5) + 0.2 * rng.normal(size=(5, 5)))
        turned = turn.Q * np.sign(np.diag(turn.R))
        other = found @ (np.eye(8) + unseen @ (turned - np.eye(5)) @ unseen.T)
        assert np.sum((y[0] - x[0] @ other.T) ** 2) == pytest.approx(best)
        assert np.linalg.norm(other - np.eye(8)) > np.linalg.norm(found - np.eye(8))


@pytest.mark.parametrize("count", [1, 3, 8, 20], ids=lambda count: f"{count} neighbours")
def test_a_layer_that_does_nothing_is_the_identity(count: int) -> None:
    h, x, _ = neighbourhoods("apart", 4, count, 8, seed=7)
    np.testing.assert_allclose(orthogonal_map(h, x, x), h, atol=1e-9)


@pytest.mark.parametrize("count", [3, 5, 8, 20], ids=lambda count: f"{count} neighbours")
def test_it_is_the_limit_of_a_small_ridge(count: int) -> None:
    """A sanity check only; the exact comparison is with the dense formula."""
    h, x, y = neighbourhoods("apart", 3, count, 8, seed=8)
    expected = [
        reference.procrustes_with_ridge(below, above, 1e-7) @ token
        for token, below, above in zip(h, x, y, strict=True)
    ]
    np.testing.assert_allclose(orthogonal_map(h, x, y), expected, atol=1e-4)


def test_neighbours_at_the_origin_say_nothing() -> None:
    h, zeros = np.random.default_rng(9).normal(size=(2, 6)), np.zeros((2, 4, 6))
    np.testing.assert_array_equal(orthogonal_map(h, zeros, zeros), h)
    np.testing.assert_array_equal(identity_low_rank_map(h, zeros, zeros, RANK), h)
    np.testing.assert_array_equal(reduced_rank_ridge(h, zeros, zeros, RANK), np.zeros((2, 6)))
    np.testing.assert_array_equal(diagonal_map(h, zeros, zeros), np.zeros((2, 6)))


# --- planted maps -------------------------------------------------------------------------

WIDTH, MANY = 8, 200


def planted(name: str, rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
    """A tokenwise map of a class, acting on rows."""
    rotation = np.linalg.qr(rng.normal(size=(WIDTH, WIDTH))).Q
    low = rng.normal(size=(WIDTH, RANK)) @ rng.normal(size=(RANK, WIDTH)) / WIDTH
    scale, shift = rng.uniform(0.5, 2.0, size=WIDTH), rng.normal(size=WIDTH)
    return {
        "diagonal": lambda rows: rows * scale,
        "orthogonal": lambda rows: rows @ rotation,
        "low_rank": lambda rows: rows @ low,
        "identity_low_rank": lambda rows: rows + rows @ low,
        "mean_update": lambda rows: rows + shift,
    }[name]


@pytest.mark.parametrize("name", ["orthogonal", "mean_update"])
def test_a_planted_map_without_ridge_leaves_no_residual(name: str) -> None:
    rng = np.random.default_rng(10)
    true = planted(name, rng)
    h, x = rng.normal(size=(5, WIDTH)), rng.normal(size=(5, 20, WIDTH))
    np.testing.assert_allclose(FAST[name](h, x, true(x)), true(h), atol=1e-9)


def test_few_neighbours_recover_a_planted_rotation_on_their_span() -> None:
    rng = np.random.default_rng(11)
    true = planted("orthogonal", rng)
    x = rng.normal(size=(5, 3, WIDTH))
    h = np.einsum("bk,bkd->bd", rng.normal(size=(5, 3)), x)
    np.testing.assert_allclose(orthogonal_map(h, x, true(x)), true(h), atol=1e-9)


def test_a_planted_scaling_comes_back_shrunk_by_the_ridge_alone() -> None:
    """The ridge is a thousandth of each column's sum of squares: the scale over 1.001."""
    rng = np.random.default_rng(12)
    true = planted("diagonal", rng)
    h, x = rng.normal(size=(5, WIDTH)), rng.normal(size=(5, 3, WIDTH))
    np.testing.assert_allclose(diagonal_map(h, x, true(x)), true(h) / 1.001, rtol=1e-12)


def test_a_planted_sign_flip_is_not_positive_and_becomes_zero() -> None:
    h, x, _ = neighbourhoods("apart", 2, 6, 4, seed=13)
    flipped = x * np.array([1.0, -1.0, 2.0, -0.5])
    expected = h * np.array([1.0, 0.0, 2.0, 0.0]) / 1.001
    np.testing.assert_allclose(diagonal_map(h, x, flipped), expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["low_rank", "identity_low_rank", "global_linear"])
def test_a_planted_low_rank_map_comes_back_shrunk_by_the_ridge_alone(name: str) -> None:
    """Orthonormal columns have the Gram matrix 1; the ridge is 1e-3 of width / count."""
    rng = np.random.default_rng(14)
    true = planted("identity_low_rank" if name == "identity_low_rank" else "low_rank", rng)
    x = np.linalg.qr(rng.normal(size=(40, WIDTH))).Q
    h = rng.normal(size=(1, WIDTH))
    shrunk = 1.0 / (1.0 + 1e-3 * WIDTH / 40)
    if name == "global_linear":
        found, kept = global_linear_map(h, x, true(x)), 0.0
    else:
        found, kept = FAST[name](h, x[None], true(x)[None]), float(name != "low_rank")
    np.testing.assert_allclose(found, kept * h + shrunk * (true(h) - kept * h), atol=1e-10)
    assert np.linalg.norm(found - true(h)) < 1e-3 * np.linalg.norm(true(h))


@pytest.mark.parametrize("name", ["low_rank", "identity_low_rank"])
def test_a_rank_too_low_leaves_a_residual(name: str) -> None:
    rng = np.random.default_rng(15)
    true = planted(name, rng)
    h, x = rng.normal(size=(5, WIDTH)), rng.normal(size=(5, 40, WIDTH))
    fit = reduced_rank_ridge if name == "low_rank" else identity_low_rank_map
    errors = [
        np.linalg.norm(fit(h, x, true(x), rank) - true(h)) / np.linalg.norm(true(h))
        for rank in (RANK - 1, RANK)
    ]
    assert errors[0] > 0.02
    assert errors[1] < 1e-3


@pytest.mark.parametrize("name", [*CLASSES, "global_linear"])
def test_a_planted_cross_token_term_ends_up_in_the_residual(name: str) -> None:
    """What other tokens add does not follow from the token itself, so no class can fit it."""
    rng = np.random.default_rng(16)
    true = planted("low_rank" if name == "global_linear" else name, rng)
    below = rng.normal(size=(MANY, WIDTH))
    others = rng.normal(size=(MANY, WIDTH)) * 0.4
    h, theirs = rng.normal(size=(24, WIDTH)), rng.normal(size=(24, WIDTH)) * 0.4
    above = true(below) + others
    if name == "global_linear":
        predicted = global_linear_map(h, below, above)
    else:
        near = np.arange(MANY)[None].repeat(24, axis=0)
        predicted = fit_local_maps((name,), h, below, above, near, rank=RANK)[name]
    residual = true(h) + theirs - predicted
    assert np.linalg.norm(residual - theirs) < 0.3 * np.linalg.norm(theirs)
    assert np.linalg.norm(residual) == pytest.approx(np.linalg.norm(theirs), rel=0.08)


# --- errors -------------------------------------------------------------------------------


def test_an_unknown_class_is_refused_with_the_known_ones() -> None:
    states, near = np.eye(3), np.array([[0, 1]])
    with pytest.raises(GeometryError, match="unknown map 'linear'; known: diagonal, orthogonal"):
        fit_local_maps(("diagonal", "linear"), states[:1], states, states, near)


def test_a_rank_below_one_is_refused() -> None:
    states, near = np.eye(3), np.array([[0, 1]])
    with pytest.raises(GeometryError, match="1 or more, got 0"):
        fit_local_maps(("low_rank",), states[:1], states, states, near, rank=0)


@pytest.mark.parametrize(("argument", "named"), [(0, "query"), (1, "bank"), (2, "bank")])
def test_states_that_are_not_finite_are_refused(argument: int, named: str) -> None:
    arrays = [np.eye(3), np.eye(3), np.eye(3)]
    arrays[argument][1, 1] = np.nan
    with pytest.raises(GeometryError, match=f"the {named} states hold values that are not finite"):
        fit_local_maps(("diagonal",), *arrays, np.array([[0, 1]] * 3))
