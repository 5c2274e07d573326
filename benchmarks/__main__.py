"""Run every benchmark in a process of its own, print one table and write it as CSV.

``python -m benchmarks`` runs all of them; ``python -m benchmarks CASE`` one, as JSON lines.
"""

import json
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from benchmarks import local_maps, rank_statistics, replacement, scaling
from benchmarks.timing import ROOT, RUNS, Row
from layergeom.files import make_folder, whole_file, write_text
from layergeom.geometry.threads import thread_count
from layergeom.report import provenance

CASES: dict[str, Callable[[], Row | list[Row]]] = {
    "pga": rank_statistics.pga,
    "peers": rank_statistics.peers,
    "many_tokens": rank_statistics.many_tokens,
    "local_maps": local_maps.local_maps,
    "replacement": replacement.replacement,
}
#: Cases and the threads they run with; 0 for all there are.
PLAN = (
    ("pga", 0),
    ("pga", 1),
    ("peers", 1),
    ("many_tokens", 0),
    ("local_maps", 0),
    ("replacement", 0),
)
FOLDER = ROOT / "_build" / "benchmarks"


def run_case(name: str) -> None:
    """Print the rows of one case, with the memory that this process took."""
    rows = CASES[name]()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    for row in rows if isinstance(rows, list) else [rows]:
        filled = row.with_peak(peak)
        print(json.dumps(asdict(filled) | {"ratio": filled.ratio}))


def run_scaling() -> None:
    """Print the points of the scaling plot."""
    for point in scaling.scaling():
        print(json.dumps(asdict(point)))


def collect(case: str, threads: int) -> list[dict[str, object]]:
    """The JSON lines of one case in a process of its own."""
    count = str(threads or thread_count())
    names = ("LAYERGEOM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", case],
        cwd=ROOT,
        env={**os.environ, **dict.fromkeys(names, count)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def write(name: str, rows: list[dict[str, object]]) -> None:
    """Write a table whole."""
    with whole_file(make_folder(FOLDER) / name) as path:
        pd.DataFrame(rows).to_csv(path, index=False, float_format="%.6g")


def machine() -> dict[str, object]:
    """What the times depend on."""
    held = ", ".join(f"{size} {value:,}" for size, value in scaling.USUAL.items())
    return provenance(
        {
            "cores": thread_count(),
            "processor": processor(),
            "held": held,
            "runs": scaling.RUNS,
        }
    )


def processor() -> str:
    """The processor's name, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def show(row: dict[str, object]) -> None:
    """Print one row as soon as it is there."""
    print(
        f"{row['measure']:<82} {row['threads']:>2} {row['seconds']:>8.3g} s "
        f"{row['plain_seconds']:>8.3g} s {row['ratio']:>7.1f} x {row['difference']:>7.0e} "
        f"{row['peak_gib']:>6.2f}   {row['asked']}",
        flush=True,
    )
    if row["note"]:
        print(f"    {row['note']}", flush=True)


def main() -> None:
    """The whole table, then the points of the scaling plot."""
    print(
        f"Median of {RUNS} runs, or of 3. Columns: measure, threads, ours, plain way, ratio, "
        "largest difference, peak memory (GiB), asked"
    )
    rows = []
    for case, threads in PLAN:
        for row in collect(case, threads):
            show(row)
            rows.append(row)
    write("table.csv", rows)
    write("scaling.csv", collect("scaling", 0))
    write_text(FOLDER / "machine.json", json.dumps(machine(), indent=1, sort_keys=True) + "\n")
    print(f"The table and the points of the scaling plot: {FOLDER}/*.csv")


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    elif sys.argv[1] == "scaling":
        run_scaling()
    else:
        run_case(sys.argv[1])
