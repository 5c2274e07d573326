"""Full, tokenwise and residual: by hand, and energies token by token."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layergeom.geometry import (
    GeometryError,
    alignment,
    dominant_subspace_energy,
    share_along,
    split_update,
)
from layergeom.geometry.decomposition import READINGS, Reading
from properties import deterministic
from reference import energy as reference

#: One token: h = (1, 0), h' = (2, 2), T(h) = (2, 0), so r = (0, 2).
BELOW, ABOVE, PREDICTED = np.array([[1.0, 0.0]]), np.array([[2.0, 2.0]]), np.array([[2.0, 0.0]])
BY_HAND: dict[Reading, dict[str, float]] = {
    "state": {  # full (2, 2), tokenwise (2, 0)
        "rel_err": 2 / np.sqrt(8),
        "cos_full_tokenwise": np.sqrt(0.5),
        "cos_full_residual": np.sqrt(0.5),
        "cos_tokenwise_residual": 0.0,
        "angle_full_tokenwise": 45.0,
        "angle_full_residual": 45.0,
        "angle_tokenwise_residual": 90.0,
    },
    "update": {  # full (1, 2), tokenwise (1, 0)
        "rel_err": 2 / np.sqrt(5),
        "cos_full_tokenwise": 1 / np.sqrt(5),
        "cos_full_residual": 2 / np.sqrt(5),
        "cos_tokenwise_residual": 0.0,
        "angle_full_tokenwise": 63.434948822922,
        "angle_full_residual": 26.565051177078,
        "angle_tokenwise_residual": 90.0,
    },
}
every_reading = pytest.mark.parametrize("reading", READINGS)


@every_reading
def test_alignment_by_hand(reading: Reading) -> None:
    found = alignment(BELOW, ABOVE, PREDICTED, reading)
    assert set(found) == set(BY_HAND[reading])
    for name, value in BY_HAND[reading].items():
        assert found[name] == pytest.approx([value], abs=1e-12), name


def test_parts_by_hand() -> None:
    state = split_update(BELOW, ABOVE, PREDICTED, "state")
    update = split_update(BELOW, ABOVE, PREDICTED, "update")
    assert [part.tolist() for part in state] == [[[2.0, 2.0]], [[2.0, 0.0]], [[0.0, 2.0]]]
    assert [part.tolist() for part in update] == [[[1.0, 2.0]], [[1.0, 0.0]], [[0.0, 2.0]]]


@every_reading
def test_tokenwise_and_residual_add_up_to_full(reading: Reading) -> None:
    arrays = np.random.default_rng(0).normal(size=(3, 20, 6)).astype(np.float32)
    full, tokenwise, residual = split_update(*arrays, reading)
    assert full.dtype == np.float64
    np.testing.assert_allclose(tokenwise + residual, full, atol=1e-12)


@every_reading
def test_alignment_is_that_of_each_token_alone(reading: Reading) -> None:
    arrays = np.random.default_rng(1).normal(size=(3, 20, 6))
    together = alignment(*arrays, reading)
    for i in range(20):
        alone = alignment(*arrays[:, i : i + 1], reading)
        for name, values in alone.items():
            assert values[0] == pytest.approx(together[name][i], abs=1e-12)


@every_reading
def test_alignment_ignores_rotation_and_scale(reading: Reading) -> None:
    rng = np.random.default_rng(2)
    arrays = rng.normal(size=(3, 20, 6))
    rotation = 3.0 * np.linalg.qr(rng.normal(size=(6, 6))).Q
    turned = alignment(*(arrays @ rotation), reading)
    for name, values in alignment(*arrays, reading).items():
        np.testing.assert_allclose(turned[name], values, atol=1e-9)


def test_a_perfect_prediction_has_no_residual_and_no_direction_of_it() -> None:
    found = alignment(BELOW, ABOVE, ABOVE, "state")
    assert found["rel_err"] == 0.0
    assert found["angle_full_tokenwise"] == pytest.approx(0.0, abs=1e-5)
    for name in ("full_residual", "tokenwise_residual"):
        assert np.isnan(found[f"cos_{name}"])
        assert np.isnan(found[f"angle_{name}"])


def test_the_identity_has_no_tokenwise_update() -> None:
    found = alignment(BELOW, ABOVE, BELOW, "update")
    assert found["rel_err"] == pytest.approx([1.0])
    assert np.isnan(found["cos_full_tokenwise"])
    assert np.isnan(found["cos_tokenwise_residual"])
    assert found["cos_full_residual"] == pytest.approx([1.0])


def test_parallel_parts_do_not_leave_the_range_of_the_cosine() -> None:
    states = np.random.default_rng(3).normal(size=(500, 7))
    found = alignment(states, 3.0 * states, 1.7 * states, "state")
    for name in ("full_tokenwise", "full_residual", "tokenwise_residual"):
        assert np.abs(found[f"cos_{name}"]).max() <= 1.0
        assert np.isfinite(found[f"angle_{name}"]).all()


@every_reading
@deterministic
@given(
    tokens=st.integers(6, 40),
    width=st.integers(3, 12),
    sequences=st.integers(2, 5),
    seed=st.integers(0, 2**32 - 1),
)
def test_energy_shares_equal_the_reference(
    reading: Reading, tokens: int, width: int, sequences: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    arrays = rng.normal(size=(3, tokens, width)) * 0.7 ** np.arange(width)
    which = np.arange(tokens) % sequences
    weights = rng.integers(1, 4, size=(2, sequences)).astype(np.float64)
    # A half with fewer tokens than dimensions leaves the rest of its basis open.
    dims = min(width - 1, int(min(np.sum(which % 2 == half) for half in (0, 1))))
    found = dominant_subspace_energy(*arrays, which, reading, max_dim=dims).shares(weights)
    assert found.shape == (3, dims, 2)
    parts = split_update(*arrays, reading)
    for dim in range(1, dims + 1):
        for draw, weight in enumerate(weights):
            expected = reference.shares(*parts, which, dim, weight)
            np.testing.assert_allclose(found[:, dim - 1, draw], expected, atol=1e-6)


def test_shares_grow_with_the_dimension_up_to_all() -> None:
    arrays = np.random.default_rng(4).normal(size=(3, 40, 6))
    energy = dominant_subspace_energy(*arrays, np.arange(40) % 4, "state", max_dim=99)
    assert energy.inside.shape == (3, 5, 4)  # held to the width less one
    assert (np.diff(energy.inside, axis=1) >= 0.0).all()
    assert (energy.inside <= energy.total[:, None, :]).all()


def test_energies_of_a_sequence_are_those_of_its_tokens() -> None:
    below, above, predicted = np.random.default_rng(5).normal(size=(3, 12, 4))
    which = np.array([0, 1, 2] * 4)
    energy = dominant_subspace_energy(below, above, predicted, which, "state", max_dim=2)
    for s in range(3):
        assert energy.total[0, s] == pytest.approx(np.sum(above[which == s] ** 2))
        assert energy.total[2, s] == pytest.approx(np.sum((above - predicted)[which == s] ** 2))


def test_a_tokenwise_part_in_a_plane_and_a_residual_across_it() -> None:
    rng = np.random.default_rng(6)
    predicted = rng.normal(size=(40, 6)) * np.array([3.0, 2.0, 0.0, 0.0, 0.0, 0.0])
    residual = rng.normal(size=(40, 6)) * np.array([0.0, 0.0, 1.0, 1.0, 1.0, 1.0])
    which = np.arange(40) // 10
    energy = dominant_subspace_energy(
        np.zeros((40, 6)), predicted + residual, predicted, which, "state", max_dim=2
    )
    full, tokenwise, rest = energy.shares(np.ones((1, 4)))[:, 1, 0]
    assert tokenwise == pytest.approx(1.0)
    assert rest == pytest.approx(0.0, abs=1e-12)
    shares = [
        np.sum(predicted[half] ** 2) / np.sum((predicted + residual)[half] ** 2)
        for half in (which % 2 == 0, which % 2 == 1)
    ]
    assert full == pytest.approx(np.mean(shares))


def test_the_subspace_is_fitted_on_the_other_half() -> None:
    """Even and odd sequences live on different axes: in sample the share would be one."""
    which = np.arange(20) % 2
    predicted = np.where(which[:, None] == 0, [[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]])
    energy = dominant_subspace_energy(
        np.zeros((20, 3)), predicted + 1.0, predicted, which, "state", max_dim=1
    )
    assert energy.shares(np.ones((1, 2)))[1, 0, 0] == pytest.approx(0.0, abs=1e-12)


def test_a_draw_without_one_of_the_halves_is_a_gap() -> None:
    arrays = np.random.default_rng(7).normal(size=(3, 8, 3))
    energy = dominant_subspace_energy(*arrays, np.arange(8) % 2, "state")
    shares = energy.shares(np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]))
    assert np.isnan(shares[:, :, :2]).all()
    assert np.isfinite(shares[:, :, 2]).all()


@pytest.mark.parametrize("sequences", [[0, 0, 0, 0], [1, 1, 3, 3]])
def test_a_half_without_tokens_is_refused(sequences: list[int]) -> None:
    with pytest.raises(GeometryError, match="even and odd sequences"):
        dominant_subspace_energy(*np.zeros((3, 4, 3)), np.array(sequences), "state")


def test_a_residual_without_a_full_update_has_no_relative_error() -> None:
    ones, zeros = np.ones((1, 3)), np.zeros((1, 3))
    assert np.isnan(alignment(ones, ones, zeros, "update")["rel_err"]).all()


def test_share_along_a_direction_is_the_squared_cosine() -> None:
    vectors = np.array([[2.0, 0.0], [1.0, 1.0], [0.0, -3.0], [1.0, np.sqrt(3.0)]])
    along = np.array([[-5.0, 0.0], [0.0, 2.0], [1.0, 0.0], [4.0, 0.0]])
    np.testing.assert_allclose(share_along(vectors, along), [1.0, 0.5, 0.0, 0.25], atol=1e-15)


@deterministic
@given(width=st.integers(1, 8), seed=st.integers(0, 2**32 - 1))
def test_shares_along_orthogonal_directions_add_up(width: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(width, width))).Q
    vector = rng.normal(size=(width, width))[:1]
    shares = share_along(np.repeat(vector, width, axis=0), 3.0 * axes.T)
    assert shares.sum() == pytest.approx(1.0)


def test_a_zero_vector_has_no_share_along_anything() -> None:
    some, zero = np.ones((1, 3), np.float32), np.zeros((1, 3), np.float32)
    assert np.isnan([share_along(zero, some), share_along(some, zero)]).all()
    assert share_along(some, some).dtype == np.float64
