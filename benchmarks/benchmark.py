"""Time the measures beside the plain way of computing them, in one run.

The plain way is that of ``tests/reference``: SciPy's ``pdist`` and ``spearmanr`` for every
subspace, one dense solve for every token. It is timed on a few subspaces and tokens, and scaled to
the whole; its results on those are compared with ours.
"""

import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from layergeom import geometry
from layergeom.geometry.threads import thread_count
from reference import maps as plain_maps
from reference import pga as plain_pga

RUNS = 5
WIDTH, TOKENS, READOUT_DIM, SUBSPACES = 576, 1000, 100, 100
QUERY, BANK, NEIGHBOURS, RANK = 2048, 4064, 64, 8
PLAIN_SUBSPACES, PLAIN_TOKENS = 8, 12


def median_seconds(function: Callable[[], object]) -> float:
    function()  # a first call compiles and warms caches
    times = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def layer(rng: np.random.Generator, tokens: int) -> np.ndarray:
    """States with a spectrum that falls like a trained layer's, and a common offset."""
    scale = np.arange(1, WIDTH + 1) ** -0.7
    return (rng.standard_normal((tokens, WIDTH)) * scale + scale).astype(np.float32)


def line(name: str, ours: float, plain: float, asked: str, difference: float) -> None:
    print(
        f"{name:<44} {ours:>8.2f} s {plain:>9.1f} s {plain / ours:>7.1f} x   "
        f"asked {asked:<22} largest difference {difference:.0e}"
    )


def bench_pga(rng: np.random.Generator) -> None:
    states = layer(rng, TOKENS)
    basis = geometry.readout_basis(rng.standard_normal((8000, WIDTH)), READOUT_DIM)
    null = geometry.random_subspaces(WIDTH, READOUT_DIM, SUBSPACES, rng)
    ours = median_seconds(lambda: geometry.subspace_pga(states, basis, null))
    found = geometry.subspace_pga(states, basis, null)
    few = null[:PLAIN_SUBSPACES]
    begin = time.perf_counter()
    rho, rho_null = plain_pga.subspace_pga(states, basis, few, count=1)
    plain = (time.perf_counter() - begin) * (SUBSPACES + 1) / (PLAIN_SUBSPACES + 1)
    difference = max(
        abs(rho - found.rho_readout), float(np.abs(rho_null - found.rho_null[: len(few)]).max())
    )
    line("Subspace PGA, 1,000 tokens, 100 subspaces", ours, plain, "< 1.0 s, 15 x", difference)


def bench_maps(rng: np.random.Generator) -> None:
    bank, query = layer(rng, BANK), layer(rng, QUERY)
    turn = np.linalg.qr(rng.standard_normal((WIDTH, WIDTH))).Q
    above = (bank + 0.3 * bank @ turn + 0.05 * layer(rng, BANK)).astype(np.float32)
    near = geometry.nearest_neighbours(query, bank, NEIGHBOURS)
    plain_ways = {
        "diagonal": plain_maps.diagonal,
        "orthogonal": plain_maps.orthogonal,
        "low_rank": lambda h, x, y: plain_maps.low_rank(h, x, y, RANK),
    }

    def all_three() -> dict[str, np.ndarray]:
        found = geometry.nearest_neighbours(query, bank, NEIGHBOURS)
        return geometry.fit_local_maps(tuple(plain_ways), query, bank, above, found, RANK)

    total_plain, worst = 0.0, 0.0
    for name, plain_way in plain_ways.items():
        ours = median_seconds(
            lambda name=name: geometry.fit_local_maps((name,), query, bank, above, near, RANK)
        )
        found = geometry.fit_local_maps((name,), query, bank, above, near, RANK)[name]
        begin = time.perf_counter()
        predicted = [
            plain_way(
                query[i].astype(float), bank[near[i]].astype(float), above[near[i]].astype(float)
            )
            for i in range(PLAIN_TOKENS)
        ]
        plain = (time.perf_counter() - begin) * QUERY / PLAIN_TOKENS
        difference = float(np.abs(np.array(predicted) - found[:PLAIN_TOKENS]).max())
        line(f"  {name}, 2,048 tokens, K = 64", ours, plain, "", difference)
        total_plain += plain
        worst = max(worst, difference)
    ours = median_seconds(all_three)
    line("Neighbours and the three classes together", ours, total_plain, "< 10 s", worst)


def main() -> None:
    rng = np.random.default_rng(0)
    print(f"{thread_count()} threads; median of {RUNS} runs; width {WIDTH}, k = {READOUT_DIM}")
    print(f"{'':<44} {'ours':>10} {'plain way':>11} {'ratio':>9}")
    bench_pga(rng)
    bench_maps(rng)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(f"peak memory {peak:.2f} GiB")


if __name__ == "__main__":
    main()
