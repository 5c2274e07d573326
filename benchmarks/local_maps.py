"""Local maps of many query tokens: ours and one dense solve for each token."""

from typing import Any

import numpy as np

from benchmarks.data import layer
from benchmarks.timing import Row, median_seconds, once
from layergeom import geometry
from layergeom.geometry.threads import thread_count

#: Query tokens that the plain way is timed on.
_FEW = 12
_ASKED = {"diagonal": "", "orthogonal": "20 x", "low_rank": "10 x"}


def local_maps(
    tokens: int = 2048, bank: int = 4064, width: int = 576, count: int = 64, rank: int = 8
) -> list[Row]:
    """Each class alone, then all of them with the search for neighbours."""
    from reference import maps as plain

    rng = np.random.default_rng(0)
    below, query = layer(rng, bank, width), layer(rng, tokens, width)
    turn = np.linalg.qr(rng.standard_normal((width, width))).Q
    above = (below + 0.3 * below @ turn + 0.05 * layer(rng, bank, width)).astype(np.float32)
    near = geometry.nearest_neighbours(query, below, count)
    plain_ways = {
        "diagonal": plain.diagonal,
        "orthogonal": plain.orthogonal,
        "low_rank": lambda h, x, y: plain.low_rank(h, x, y, rank),
    }

    def fit(names: tuple[str, ...], near: np.ndarray) -> dict[str, np.ndarray]:
        return geometry.fit_local_maps(names, query, below, above, near, rank)

    sizes = f"{tokens:,} tokens, d {width}, K {count}"
    rows = []
    for name, plain_way in plain_ways.items():
        predicted: list[np.ndarray] = []

        def one_by_one(way: Any = plain_way, into: list[np.ndarray] = predicted) -> None:
            for row, at in zip(query[:_FEW], near, strict=False):
                into.append(way(*(a.astype(float) for a in (row, below[at], above[at]))))

        plain_seconds = once(one_by_one)
        found = fit((name,), near)[name][:_FEW]
        rows.append(
            Row(
                f"Local map {name}, {sizes}",
                thread_count(),
                median_seconds(lambda name=name: fit((name,), near), runs=3),
                plain_seconds * tokens / _FEW,
                _ASKED[name],
                float(np.abs(np.array(predicted) - found).max()),
            )
        )

    def everything() -> None:
        fit(tuple(plain_ways), geometry.nearest_neighbours(query, below, count))

    return [
        *rows,
        Row(
            f"Neighbours and the three local maps, {sizes}",
            thread_count(),
            median_seconds(everything, runs=3),
            sum(row.plain_seconds for row in rows),
            "under 10 s",
            max(row.difference for row in rows),
        ),
    ]
