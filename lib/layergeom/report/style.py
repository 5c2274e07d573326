"""One style for every figure, and the idioms that the figures share."""

from typing import Any

import matplotlib as mpl
import pandas as pd

#: Okabe and Ito's palette: distinct to colour-blind readers, and in grey.
INK = "#222222"
BLUE = "#0072B2"
VERMILION = "#D55E00"
GREEN = "#009E73"
PURPLE = "#AA4499"
ORANGE = "#E69F00"
GREY = "#767676"

_STYLE = {
    "figure.figsize": (7.0, 4.0),
    "figure.facecolor": "white",
    "figure.constrained_layout.use": True,
    "savefig.facecolor": "white",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.labelsize": 10,
    "axes.edgecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "lines.linewidth": 1.6,
    "lines.markersize": 4,
    "legend.frameon": False,
    # Element ids in an SVG come from this salt instead of chance: same figure, same bytes.
    "svg.hashsalt": "layergeom",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}


def use_style() -> None:
    """Set the style for all figures made from here on; the backend is left alone."""
    mpl.rcParams.update(_STYLE)


def curve(
    axis: Any, x: Any, table: pd.DataFrame, colour: str, label: str, marker: str = "o"
) -> None:
    """A curve with its 95 % interval as a band, labelled at its right end.

    Args:
        axis: the axis to draw on.
        x: positions.
        table: columns ``value``, ``ci_low`` and ``ci_high``.
        colour: of curve, band and label.
        label: written beside the last point.
        marker: of the points.
    """
    axis.fill_between(x, table["ci_low"], table["ci_high"], color=colour, alpha=0.18, linewidth=0)
    axis.plot(x, table["value"], color=colour, marker=marker)
    axis.annotate(
        label,
        (list(x)[-1], table["value"].iloc[-1]),
        xytext=(7, 0),
        textcoords="offset points",
        va="center",
        color=colour,
        annotation_clip=False,
    )


def spread_labels(axis: Any, gap: float = 0.055) -> None:
    """Move the labels at the curves' ends apart where they would overlap.

    Args:
        axis: an axis whose labels were written by ``curve``.
        gap: smallest distance between two labels, as a share of the axis's height.
    """
    to_share = axis.transData + axis.transAxes.inverted()
    labels = [text for text in axis.texts if getattr(text, "xyann", (0, 1))[1] == 0]
    placed = sorted(labels, key=lambda text: to_share.transform((text.xy[0], text.xy[1]))[1])
    height = axis.get_window_extent().height * 72.0 / axis.figure.dpi
    previous = -1.0
    for text in placed:
        share = float(to_share.transform((text.xy[0], text.xy[1]))[1])
        wanted = max(share, previous + gap)
        text.xyann = (7, (wanted - share) * height)
        previous = wanted
