"""Medians of several runs, and the rows of the table that they fill."""

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))  # the references

RUNS = 5


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        measure: what is computed, with its sizes.
        threads: threads that it may use.
        seconds: median of ours.
        plain_seconds: the plain way's.
        asked: what the project asks of it.
        difference: largest difference of the results.
        note: what else was measured in the same run.
        peak_gib: largest memory of the process, GiB.
    """

    measure: str
    threads: int
    seconds: float
    plain_seconds: float
    asked: str
    difference: float
    note: str = ""
    peak_gib: float = float("nan")

    @property
    def ratio(self) -> float:
        """Times that the plain way takes longer."""
        return self.plain_seconds / self.seconds

    def with_peak(self, peak_gib: float) -> "Row":
        """The row with the memory of the process that made it."""
        return replace(self, peak_gib=peak_gib)


def once(function: Callable[[], object]) -> float:
    """Seconds of one call."""
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def median_seconds(function: Callable[[], object], runs: int = RUNS) -> float:
    """Median of several calls; a first one compiles and warms caches."""
    function()
    return statistics.median(once(function) for _ in range(runs))
