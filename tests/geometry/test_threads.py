"""Threads: order, count and one BLAS thread each."""

import os

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from layergeom.geometry import (
    fit_local_maps,
    nearest_neighbours,
    random_subspaces,
    subspace_pga_levels,
)
from layergeom.geometry.threads import map_threads, thread_count

COUNTS = ("1", "2")


def test_the_environment_sets_the_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAYERGEOM_THREADS", "7")
    assert thread_count() == 7


@pytest.mark.parametrize("value", ["", "0", "-2", "many"])
def test_otherwise_the_cores_of_this_process(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3, 5}, raising=False)
    monkeypatch.setenv("LAYERGEOM_THREADS", value)
    assert thread_count() == 3


def test_results_come_in_the_order_of_the_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAYERGEOM_THREADS", "4")
    assert map_threads(lambda i: i * i, range(50)) == [i * i for i in range(50)]


def test_blas_is_held_to_one_thread_inside() -> None:
    def blas_threads(_: int) -> list[int]:
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    np.eye(2) @ np.eye(2)
    assert all(counts and set(counts) == {1} for counts in map_threads(blas_threads, range(3)))


def test_an_error_inside_a_thread_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        map_threads(lambda i: 1 // i, [1, 0, 2])


def test_subspace_pga_is_the_same_to_the_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    states = rng.normal(size=(80, 33))
    bases = random_subspaces(33, 5, 12, rng)
    found = []
    for count in COUNTS:
        monkeypatch.setenv("LAYERGEOM_THREADS", count)
        samples = subspace_pga_levels(states, bases[0], bases[1:], (0, 1, 5))
        found.append([[s.rho_readout, *s.rho_null] for s in samples.values()])
    np.testing.assert_array_equal(found[0], found[1])


def test_neighbours_and_local_maps_are_the_same_to_the_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    query, bank = rng.normal(size=(150, 10)), rng.normal(size=(200, 10))
    above = bank + 0.3 * rng.normal(size=bank.shape)
    classes = ("diagonal", "orthogonal", "low_rank", "identity_low_rank", "mean_update")
    found = []
    for count in COUNTS:
        monkeypatch.setenv("LAYERGEOM_THREADS", count)
        near = nearest_neighbours(query, bank, 8)
        found.append((near, fit_local_maps(classes, query, bank, above, near, rank=3)))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    for name in classes:
        np.testing.assert_array_equal(found[0][1][name], found[1][1][name])
