"""Cosine distances against SciPy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from layergeom.geometry import GeometryError, cosine_distances, snap
from layergeom.geometry.distances import snapped_cosine_distances
from properties import deterministic


@deterministic
@given(tokens=st.integers(2, 40), width=st.integers(2, 40), seed=st.integers(0, 2**32 - 1))
def test_equals_scipy_in_value_and_order(tokens: int, width: int, seed: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(tokens, width))
    np.testing.assert_allclose(cosine_distances(vectors), pdist(vectors, "cosine"), atol=1e-12)


@deterministic
@given(tokens=st.integers(3, 40), width=st.integers(2, 40), seed=st.integers(0, 2**32 - 1))
def test_the_fused_routine_gives_the_same_steps(tokens: int, width: int, seed: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(tokens, width))
    fused = snapped_cosine_distances(np.ascontiguousarray(vectors.T))
    plain = snap(cosine_distances(vectors))
    assert np.abs(fused - plain).max() <= 1  # a distance may lie on the edge of a step
    assert np.mean(fused != plain) < 0.01


def test_equal_opposite_and_orthogonal_vectors() -> None:
    vectors = np.array([[3.0, 4.0], [6.0, 8.0], [-3.0, -4.0], [-4.0, 3.0]])
    found = cosine_distances(vectors)
    np.testing.assert_allclose(found, [0.0, 2.0, 1.0, 2.0, 1.0, 1.0], atol=1e-15)
    assert found.min() >= 0.0
    assert found.max() <= 2.0


def test_rounding_never_leaves_the_range() -> None:
    vectors = np.random.default_rng(0).normal(size=(1, 30)) * np.array([[1.0], [0.1], [-7.0]])
    found = snapped_cosine_distances(np.ascontiguousarray(vectors.T))
    np.testing.assert_array_equal(found, [0, 2**30, 2**30])


@pytest.mark.parametrize("zeros", [1, 3])
def test_zero_vectors_are_refused_with_their_number(zeros: int) -> None:
    vectors = np.random.default_rng(1).normal(size=(7, 4))
    vectors[:zeros] = 0.0
    with pytest.raises(GeometryError, match=f"{zeros} of 7 tokens are zero vectors"):
        cosine_distances(vectors)
    with pytest.raises(GeometryError, match=f"{zeros} of 7 tokens are zero vectors"):
        snapped_cosine_distances(vectors.T)
