"""How the time of Subspace PGA grows with each of its sizes, the others held."""

from dataclasses import dataclass
from statistics import median

from benchmarks.rank_statistics import case
from benchmarks.timing import once
from layergeom import geometry

RUNS = 3
#: The sizes that are held, and the values that each takes in turn.
USUAL = {"tokens": 1000, "width": 576, "k": 100, "null subspaces": 50, "layers": 1}
VALUES = {
    "tokens": (250, 500, 1000, 2000, 4000),
    "width": (144, 288, 576, 1152, 2304),
    "k": (25, 50, 100, 200, 400),
    "null subspaces": (10, 25, 50, 100, 200),
    "layers": (1, 2, 4, 8),
}


@dataclass(frozen=True)
class Point:
    """Seconds at one value of one size: median, fastest and slowest of the runs."""

    size: str
    value: int
    seconds: float
    fastest: float
    slowest: float


def scaling() -> list[Point]:
    """Every size in turn."""
    return [
        Point(size, value, *_seconds({**USUAL, size: value}))
        for size, values in VALUES.items()
        for value in values
    ]


def _seconds(sizes: dict[str, int]) -> tuple[float, float, float]:
    made = case(sizes["tokens"], sizes["width"], sizes["k"], sizes["null subspaces"])

    def run() -> None:
        for _ in range(sizes["layers"]):
            geometry.subspace_pga(made.states, made.readout, made.null)

    run()
    times = [once(run) for _ in range(RUNS)]
    return median(times), min(times), max(times)
