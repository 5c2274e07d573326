"""The readout subspace, random subspaces, and what they hold of a vector."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, kstest

from layergeom.geometry import (
    GeometryError,
    captured_share,
    centre_vocabulary,
    default_readout_dim,
    fold_norm,
    random_subspaces,
    readout_basis,
)
from properties import deterministic
from reference import pga as reference


def projector(basis: np.ndarray) -> np.ndarray:
    return basis @ basis.T


@deterministic
@given(data=st.data(), width=st.integers(3, 30), seed=st.integers(0, 2**32 - 1))
def test_readout_spans_the_top_singular_vectors(data: st.DataObject, width: int, seed: int) -> None:
    k = data.draw(st.integers(1, width - 1))
    unembedding = np.random.default_rng(seed).normal(size=(3 * width, width))
    found = readout_basis(unembedding, k)
    np.testing.assert_allclose(found.T @ found, np.eye(k), atol=1e-10)
    expected = reference.readout_basis(unembedding, k)
    np.testing.assert_allclose(projector(found), projector(expected), atol=1e-6)


def test_readout_of_a_large_vocabulary_uses_every_row() -> None:
    """Rows are taken in blocks; single strong rows at their edges must all count."""
    unembedding = np.random.default_rng(0).normal(size=(8192 * 2 + 5, 6))
    unembedding[[0, 8191, 8192, -1]] = 1e4 * np.eye(6)[[0, 2, 3, 5]]
    inside = np.sum(readout_basis(unembedding, 4) ** 2, axis=1)
    np.testing.assert_allclose(inside, [1.0, 0.0, 1.0, 1.0, 0.0, 1.0], atol=1e-3)


def test_readout_directions_come_strongest_first_with_a_fixed_sign() -> None:
    found = readout_basis(np.diag([1.0, -3.0, 2.0, 0.5]), 3)
    np.testing.assert_allclose(found, np.eye(4)[:, [1, 2, 0]], atol=1e-12)


def test_readout_is_float64_for_float32_rows() -> None:
    unembedding = np.random.default_rng(1).normal(size=(50, 8)).astype(np.float32)
    found = readout_basis(unembedding, 3)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, readout_basis(unembedding.astype(np.float64), 3))


def test_readout_ignores_scale_and_order_of_rows() -> None:
    rng = np.random.default_rng(2)
    unembedding = rng.normal(size=(60, 8))
    expected = projector(readout_basis(unembedding, 3))
    scaled = readout_basis(7.0 * unembedding[rng.permutation(60)], 3)
    np.testing.assert_allclose(projector(scaled), expected, atol=1e-10)


@pytest.mark.parametrize("k", [8, 9])
def test_a_readout_as_wide_as_the_space_is_refused_with_the_largest(k: int) -> None:
    rng = np.random.default_rng(3)
    for ask in (
        lambda: readout_basis(rng.normal(size=(50, 8)), k),
        lambda: random_subspaces(8, k, 5, rng),
    ):
        with pytest.raises(GeometryError, match=f"{k} at width 8.*largest is 7"):
            ask()


def test_the_largest_readout_named_is_accepted() -> None:
    rng = np.random.default_rng(4)
    assert readout_basis(rng.normal(size=(50, 8)), 7).shape == (8, 7)
    assert random_subspaces(8, 7, 2, rng).shape == (2, 8, 7)


def test_an_empty_readout_is_refused() -> None:
    with pytest.raises(GeometryError, match="1 or more, got 0"):
        readout_basis(np.eye(4), 0)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_an_unembedding_that_is_not_finite_is_refused(value: float) -> None:
    unembedding = np.random.default_rng(5).normal(size=(20, 4))
    unembedding[3, 2] = value
    with pytest.raises(GeometryError, match="not finite"):
        readout_basis(unembedding, 2)


@pytest.mark.parametrize(
    ("width", "k"), [(2048, 100), (576, 100), (400, 100), (399, 99), (128, 32), (64, 16)]
)
def test_default_dimension_is_a_hundred_or_a_quarter_of_the_width(width: int, k: int) -> None:
    assert default_readout_dim(width) == k


def test_random_subspaces_are_orthonormal_and_repeatable() -> None:
    found = random_subspaces(9, 4, 6, np.random.default_rng(6))
    for basis in found:
        np.testing.assert_allclose(basis.T @ basis, np.eye(4), atol=1e-12)
    np.testing.assert_array_equal(found, random_subspaces(9, 4, 6, np.random.default_rng(6)))
    assert not np.allclose(projector(found[0]), projector(found[1]))


def test_random_subspaces_are_uniform() -> None:
    """A Haar subspace holds a Beta(k/2, (d-k)/2) share of any fixed vector."""
    found = random_subspaces(7, 3, 2000, np.random.default_rng(7))
    for vector in (np.eye(7)[0], np.full(7, 7**-0.5)):
        shares = np.sum((vector @ found) ** 2, axis=1)
        assert kstest(shares, beta(3 / 2, 4 / 2).cdf).pvalue > 0.01


def test_one_random_subspace_is_no_null() -> None:
    with pytest.raises(GeometryError, match="2 random subspaces or more, got 1"):
        random_subspaces(9, 4, 1, np.random.default_rng(8))


def test_captured_share_by_hand() -> None:
    plane = np.eye(3)[:, :2]
    vectors = np.array([[5.0, 0.0, 0.0], [0.0, 0.0, 2.0], [1.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
    np.testing.assert_allclose(captured_share(vectors, plane), [1.0, 0.0, 0.5, 2.0 / 3.0])


def test_captured_share_of_random_vectors_is_the_share_of_dimensions() -> None:
    rng = np.random.default_rng(9)
    basis = random_subspaces(20, 5, 2, rng)[0]
    shares = captured_share(rng.normal(size=(4000, 20)), basis)
    assert shares.mean() == pytest.approx(5 / 20, abs=0.01)


def test_folding_the_norm_scales_the_columns() -> None:
    unembedding = np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(
        fold_norm(unembedding, np.array([10.0, -1.0])), [[10, -2], [30, -4]]
    )
    np.testing.assert_array_equal(unembedding, [[1.0, 2.0], [3.0, 4.0]])


def test_a_folded_gain_bends_the_readout_towards_its_large_entries() -> None:
    unembedding = np.random.default_rng(10).normal(size=(400, 6))
    gain = np.array([1.0, 1.0, 1.0, 1.0, 9.0, 9.0])
    share = captured_share(np.eye(6)[4:], readout_basis(fold_norm(unembedding, gain), 2))
    assert share.min() > 0.95
    assert captured_share(np.eye(6)[4:], readout_basis(unembedding, 2)).mean() < 0.9


def test_a_gain_of_another_width_is_refused_with_both_shapes() -> None:
    with pytest.raises(GeometryError, match=r"\(3,\) for an unembedding of shape \(5, 4\)"):
        fold_norm(np.ones((5, 4)), np.ones(3))


def test_centring_the_vocabulary_takes_the_mean_row_away() -> None:
    unembedding = np.array([[1.0, 2.0], [3.0, 8.0]])
    np.testing.assert_array_equal(centre_vocabulary(unembedding), [[-1.0, -3.0], [1.0, 3.0]])
    np.testing.assert_array_equal(unembedding, [[1.0, 2.0], [3.0, 8.0]])


def test_centring_the_vocabulary_leaves_every_probability() -> None:
    rng = np.random.default_rng(11)
    unembedding, state = rng.normal(size=(30, 5)) + 4.0, rng.normal(size=5)
    logits, centred = unembedding @ state, centre_vocabulary(unembedding) @ state
    np.testing.assert_allclose(logits - logits.max(), centred - centred.max(), atol=1e-12)


def test_a_common_row_leads_the_readout_until_it_is_centred_away() -> None:
    rng = np.random.default_rng(12)
    unembedding = rng.normal(size=(300, 8)) + 5.0 * np.eye(8)[2]
    common = np.eye(8)[2:3]
    assert captured_share(common, readout_basis(unembedding, 1))[0] > 0.95
    assert captured_share(common, readout_basis(centre_vocabulary(unembedding), 1))[0] < 0.9


def test_options_keep_the_precision_of_the_rows() -> None:
    rows = np.random.default_rng(13).normal(size=(20, 4)).astype(np.float32)
    assert fold_norm(rows, np.ones(4)).dtype == np.float32
    assert centre_vocabulary(rows).dtype == np.float32
