"""Rank statistics within a memory budget: all pairs where they fit, a sample of them beyond."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layergeom.geometry import (
    GeometryError,
    estimate_z,
    random_subspaces,
    readout_basis,
    subspace_pga,
    subspace_pga_levels,
)
from layergeom.geometry.memory import GIB, group_count, ranking_threads, token_groups
from properties import deterministic
from reference import pga as reference

WIDTH, K, TOKENS = 12, 3, 120
#: Holds the states of 120 tokens, and the pairs of a fifth of them.
LITTLE = 90_000


def case(tokens: int = TOKENS, null: int = 6) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    states = rng.normal(size=(tokens, WIDTH)) * 0.8 ** np.arange(WIDTH) + 1.0
    readout = readout_basis(rng.normal(size=(50, WIDTH)), K)
    return states, readout, random_subspaces(WIDTH, K, null, rng)


@deterministic
@given(
    tokens=st.integers(20, 3000),
    width=st.integers(2, 200),
    levels=st.integers(1, 4),
    memory=st.integers(1 << 25, 1 << 32),
)
def test_groups_are_none_or_five_or_more_and_fit(
    tokens: int, width: int, levels: int, memory: int
) -> None:
    count = group_count(tokens, width, levels, memory)
    assert count == 1 or count >= 5
    assert ranking_threads(-(-tokens // count), width, levels, memory) >= 1
    groups = token_groups(tokens, count, seed=1)
    assert len(groups) == count
    assert sorted(np.concatenate(groups)) == list(range(tokens))
    assert max(map(len, groups)) - min(map(len, groups)) <= 1


def test_more_threads_take_more_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAYERGEOM_THREADS", "16")
    found = [ranking_threads(10_000, 576, 1, gib * GIB) for gib in (1, 2, 4, 8, 64)]
    assert found == sorted(found)
    assert found[0] == 0
    assert found[-1] == 16


def test_ten_thousand_tokens_fit_the_usual_budget_and_ranks_stay_within_32_bits() -> None:
    assert group_count(10_000, 576, 4, 8 * GIB) == 1
    assert group_count(50_000, 64, 1, 1024 * GIB) >= 5


def test_groups_follow_the_seed() -> None:
    one, again, other = (token_groups(100, 5, seed) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(one, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_a_sample_of_the_pairs_equals_the_reference_and_states_its_error() -> None:
    states, readout, null = case()
    levels = (0, 1, 3)
    count = group_count(TOKENS, WIDTH, len(levels), LITTLE)
    assert count >= 5
    groups = token_groups(TOKENS, count, seed=7)
    found = subspace_pga_levels(states, readout, null, levels, LITTLE, seed=7)
    for level, sample in found.items():
        rho = np.array(
            [reference.grouped_rho(states, basis, level, groups) for basis in (readout, *null)]
        ).T
        assert sample.rho_readout == pytest.approx(rho[:, 0].mean(), abs=1e-6)
        np.testing.assert_allclose(sample.rho_null, rho[:, 1:].mean(axis=0), atol=1e-6)
        assert sample.z_error == pytest.approx(reference.left_out_error(rho), rel=1e-3)
        assert sample.pairs == sum(len(g) * (len(g) - 1) // 2 for g in groups)


def test_all_pairs_have_no_error_of_their_own() -> None:
    sample = subspace_pga(*case())
    assert sample.z_error == 0.0
    assert sample.pairs == TOKENS * (TOKENS - 1) // 2


def test_the_sample_comes_near_all_pairs_and_its_error_says_how_near() -> None:
    states, readout, null = case(1200, 40)
    whole = subspace_pga(states, readout, null)
    off = []
    for seed in range(6):
        part = subspace_pga(states, readout, null, memory=2_500_000, seed=seed)
        assert part.pairs < whole.pairs / 4
        off.append((part.z - whole.z) / part.z_error)
    assert 0.0 < np.abs(off).max() < 3.0


def test_the_error_widens_the_interval_of_one_sample() -> None:
    states, readout, null = case()
    part = subspace_pga(states, readout, null, memory=LITTLE)
    found = estimate_z([part])
    alone = estimate_z([type(part)(part.rho_readout, part.rho_null)])
    assert found.z == alone.z
    assert found.ci_high - found.ci_low > alone.ci_high - alone.ci_low


#: What a process takes more for one layer than it did for a small one, in bytes.
GROWTH = r"""
import re, sys
from pathlib import Path
import numpy as np
from layergeom.geometry import random_subspaces, subspace_pga

def peak():  # ru_maxrss would begin with that of the process that started this one
    return int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[1])

rng = np.random.default_rng(0)
states = rng.normal(size=(4000, 16))
bases = random_subspaces(16, 4, 9, rng)
subspace_pga(states[:200], bases[0], bases[1:])
before = peak()
subspace_pga(states, bases[0], bases[1:], memory=int(sys.argv[1]))
print(1024 * (peak() - before))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_budget_is_kept() -> None:
    # Sixteen threads would take 16 times 32 bytes a pair, 4 GB.
    environment = {**os.environ, "LAYERGEOM_THREADS": "16"}
    growth = {}
    for memory in (64 << 20, 512 << 20):
        command = [sys.executable, "-c", GROWTH, str(memory)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        growth[memory] = int(done.stdout)
        assert growth[memory] < 1.1 * memory
    assert growth[512 << 20] > 2 * growth[64 << 20]


def test_too_little_memory_is_refused_with_the_figures() -> None:
    with pytest.raises(GeometryError, match="do not hold 120 tokens of width 12"):
        subspace_pga(*case(), memory=1000)
