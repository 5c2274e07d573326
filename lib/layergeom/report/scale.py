"""How models of several sizes are shown side by side."""

from collections.abc import Iterable, Mapping
from typing import Any

import matplotlib as mpl
import pandas as pd

from layergeom.report.publish import with_interval


def width_colours(widths: Iterable[int]) -> dict[int, Any]:
    """A colour for each width, from light (narrow) to dark (wide), evenly over those there are.

    The palest part of the scale is left out: it cannot be read on white.
    """
    scale = mpl.colormaps["viridis_r"]
    ordered = sorted(set(widths))
    places = max(1, len(ordered) - 1)
    return {width: scale(0.3 + 0.7 * i / places) for i, width in enumerate(ordered)}


def rounded_scale(table: pd.DataFrame) -> pd.DataFrame:
    """The table of models as a page shows it.

    Args:
        table: from ``scale_table``.
    """
    return pd.DataFrame([_shown(row) for row in table.to_dict("records")])


def _shown(row: Mapping[Any, Any]) -> dict[str, Any]:
    trained_here = not pd.isna(row["tokens_seen"])
    zone = row["zone_first"], row["zone_last"]
    return {
        "model": row["model"],
        "d": row["width"],
        "L": row["layers"],
        "tokens seen": _count(row["tokens_seen"]) if trained_here else "unknown",
        "loss": _losses(row) if trained_here else f"{row['loss']:.2f}",
        "highest z": _extreme(row, "peak"),
        "lowest z": _extreme(row, "lowest"),
        "collapse zone": "none" if pd.isna(zone[0]) else f"{zone[0]:.0f} to {zone[1]:.0f}",
        "regime": row["regime"],
        "z at the last layer": _interval(row, "final"),
        "z after the norm": _interval(row, "out"),
    }


def _count(tokens: float) -> str:
    return f"{tokens / 1e6:.1f} M" if tokens >= 1e6 else f"{tokens / 1e3:.0f} k"


def _losses(row: Mapping[Any, Any]) -> str:
    star = "" if row["beats_bigram"] else "*"
    return f"{row['validation_loss']:.2f}{star} (bigrams {row['bigram_loss']:.2f})"


def _interval(row: Mapping[Any, Any], name: str) -> str:
    return with_interval(row[f"{name}_z"], row[f"{name}_ci_low"], row[f"{name}_ci_high"], 1)


def _extreme(row: Mapping[Any, Any], name: str) -> str:
    return f"{_interval(row, name)} at {row[f'{name}_point'].removeprefix('H_')}"
