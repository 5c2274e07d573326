"""Nearest neighbours against brute force; duplicates, groups and cancellation."""

from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layergeom.geometry import GeometryError, nearest_neighbours
from properties import deterministic
from reference import neighbours as reference

Metric = Literal["euclidean", "cosine"]
METRICS = st.sampled_from(("euclidean", "cosine"))


@deterministic
@given(
    data=st.data(),
    bank=st.integers(1, 90),
    width=st.integers(2, 12),
    metric=METRICS,
    seed=st.integers(0, 2**32 - 1),
)
def test_equals_brute_force(
    data: st.DataObject, bank: int, width: int, metric: Metric, seed: int
) -> None:
    count = data.draw(st.integers(1, bank))
    rng = np.random.default_rng(seed)
    query, points = rng.normal(size=(7, width)), rng.normal(size=(bank, width))
    found = nearest_neighbours(query, points, count, metric)
    np.testing.assert_array_equal(found, reference.nearest(query, points, count, metric))


@deterministic
@given(groups=st.integers(2, 6), metric=METRICS, seed=st.integers(0, 2**32 - 1))
def test_equals_brute_force_without_the_own_group(groups: int, metric: Metric, seed: int) -> None:
    rng = np.random.default_rng(seed)
    query, bank = rng.normal(size=(9, 4)), rng.normal(size=(80, 4))
    own, theirs = rng.integers(0, groups, size=9), rng.integers(0, groups, size=80)
    found = nearest_neighbours(query, bank, 6, metric, own, theirs)
    expected = reference.nearest(query, bank, 6, metric, own, theirs)
    np.testing.assert_array_equal(found, expected)


@deterministic
@given(count=st.integers(1, 12), seed=st.integers(0, 2**32 - 1))
def test_equal_distances_are_ordered_by_index(count: int, seed: int) -> None:
    """Points of a small grid: many distances are equal, and exactly so."""
    rng = np.random.default_rng(seed)
    query, bank = rng.integers(0, 3, size=(7, 2)), rng.integers(0, 3, size=(count + 14, 2))
    found = nearest_neighbours(query, bank, count)
    np.testing.assert_array_equal(found, reference.nearest(query, bank, count))


def test_more_queries_than_a_block_keep_their_order() -> None:
    rng = np.random.default_rng(0)
    query, bank = rng.normal(size=(300, 5)), rng.normal(size=(40, 5))
    own, theirs = rng.integers(0, 3, size=300), rng.integers(0, 3, size=40)
    found = nearest_neighbours(query, bank, 4, "euclidean", own, theirs)
    expected = reference.nearest(query, bank, 4, "euclidean", own, theirs)
    np.testing.assert_array_equal(found, expected)


def test_close_points_far_from_the_origin_are_told_apart() -> None:
    """The matrix product that finds candidates loses these differences to cancellation."""
    rng = np.random.default_rng(1)
    centre = 1e5 * rng.normal(size=24)
    query, bank = (
        centre + 1e-2 * rng.normal(size=(20, 24)),
        centre + 1e-2 * rng.normal(size=(400, 24)),
    )
    found = nearest_neighbours(query, bank, 8)
    np.testing.assert_array_equal(found, reference.nearest(query, bank, 8))


def test_the_metrics_differ() -> None:
    query, bank = np.array([[1.0, 0.0]]), np.array([[1.0, 0.5], [9.0, 0.0], [-1.0, 0.0]])
    assert nearest_neighbours(query, bank, 3).tolist() == [[0, 2, 1]]
    assert nearest_neighbours(query, bank, 3, "cosine").tolist() == [[1, 0, 2]]


def test_self_is_excluded_by_index_and_a_duplicate_stays() -> None:
    """Dropping the first neighbour would drop the duplicate of the later token and keep itself."""
    bank = np.random.default_rng(2).normal(size=(12, 3))
    bank[7] = bank[2]
    positions = np.arange(12)
    found = nearest_neighbours(bank, bank, 11, query_groups=positions, bank_groups=positions)
    assert all(i not in row for i, row in enumerate(found))
    assert found[2, 0] == 7
    assert found[7, 0] == 2
    naive = nearest_neighbours(bank, bank, 12)[:, 1:]
    assert 7 in naive[7]


def test_the_same_token_is_excluded_by_its_id() -> None:
    bank = np.array([[0.0], [0.0], [0.1], [0.2], [0.3]])
    ids = np.array([5, 5, 6, 5, 8])
    found = nearest_neighbours(
        np.array([[0.0]]), bank, 2, query_groups=np.array([5]), bank_groups=ids
    )
    assert found.tolist() == [[2, 4]]


def test_a_permuted_bank_gives_the_same_tokens() -> None:
    rng = np.random.default_rng(3)
    query, bank = rng.normal(size=(10, 6)), rng.normal(size=(60, 6))
    order = rng.permutation(60)
    permuted = nearest_neighbours(query, bank[order], 5)
    np.testing.assert_array_equal(order[permuted], nearest_neighbours(query, bank, 5))


def test_more_neighbours_than_bank_tokens_are_refused_with_both_numbers() -> None:
    with pytest.raises(GeometryError, match="11 neighbours asked for from a bank of 10"):
        nearest_neighbours(np.zeros((1, 2)), np.zeros((10, 2)), 11)


def test_too_few_eligible_bank_tokens_are_refused_with_both_numbers() -> None:
    bank = np.random.default_rng(4).normal(size=(10, 2))
    ids = np.array([1] * 7 + [2] * 3)
    query, own = bank[[8, 0]], ids[[8, 0]]
    assert nearest_neighbours(query, bank, 3, "euclidean", own, ids).shape == (2, 3)
    with pytest.raises(GeometryError, match=r"4 neighbours asked for.*only 3 eligible"):
        nearest_neighbours(query, bank, 4, "euclidean", own, ids)


def test_no_neighbour_is_refused() -> None:
    with pytest.raises(GeometryError, match="1 or more, got 0"):
        nearest_neighbours(np.zeros((1, 2)), np.zeros((10, 2)), 0)


def test_groups_of_one_side_only_are_refused() -> None:
    with pytest.raises(GeometryError, match="both the query and the bank"):
        nearest_neighbours(np.zeros((1, 2)), np.zeros((3, 2)), 1, query_groups=np.array([0]))


def test_zero_vectors_have_no_cosine_and_are_counted() -> None:
    bank = np.random.default_rng(5).normal(size=(10, 2))
    bank[[1, 4, 5]] = 0.0
    with pytest.raises(GeometryError, match="3 tokens are zero vectors"):
        nearest_neighbours(np.ones((1, 2)), bank, 2, "cosine")
    assert nearest_neighbours(np.zeros((1, 2)), bank, 3).tolist() == [[1, 4, 5]]
