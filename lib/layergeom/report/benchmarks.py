"""What the benchmarks wrote, for their pages."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from layergeom.errors import NotMeasurableError


@dataclass(frozen=True)
class Benchmarks:
    """The tables of one run of the benchmarks.

    Attributes:
        table: one row a measure: seconds of ours and of the plain way, memory, difference.
        scaling: seconds of Subspace PGA by size and value.
        machine: cores, processor, versions and commit.
    """

    table: pd.DataFrame
    scaling: pd.DataFrame
    machine: dict[str, Any]

    @property
    def where(self) -> str:
        """The machine in a few words."""
        return f"{self.machine['cores']} cores of {self.machine['processor']}"


def read_benchmarks(folder: Path) -> Benchmarks:
    """The tables of the last run.

    Raises:
        NotMeasurableError: there was none, or what it wrote cannot be read.
    """
    try:
        return Benchmarks(
            pd.read_csv(folder / "table.csv"),
            pd.read_csv(folder / "scaling.csv"),
            json.loads((folder / "machine.json").read_text(encoding="utf-8")),
        )
    except (OSError, ValueError) as error:
        raise NotMeasurableError(
            "Times are those of one machine and are not measured with the book: run make bench, "
            "then build the book again."
        ) from error


def rounded_benchmarks(table: pd.DataFrame) -> pd.DataFrame:
    """The table as a page shows it."""

    def text(value: float, form: str) -> str:
        return "" if pd.isna(value) else form.format(value)

    return pd.DataFrame(
        {
            "measure": table["measure"],
            "threads": table["threads"],
            "ours (s)": [text(value, "{:.3g}") for value in table["seconds"]],
            "plain way (s)": [text(value, "{:.3g}") for value in table["plain_seconds"]],
            "ratio": [text(value, "{:.1f}") for value in table["ratio"]],
            "asked": table["asked"].fillna(""),
            "largest difference": [text(value, "{:.0e}") for value in table["difference"]],
            "memory (GiB)": [text(value, "{:.2f}") for value in table["peak_gib"]],
        }
    )
