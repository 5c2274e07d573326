"""One style for every figure, and the idioms that the figures share."""

import math
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

#: Okabe and Ito's palette: distinct to colour-blind readers, and in grey.
INK = "#222222"
BLUE = "#0072B2"
VERMILION = "#D55E00"
GREEN = "#009E73"
ORANGE = "#E69F00"
GREY = "#767676"

_STYLE = {
    "figure.figsize": (6.0, 4.0),
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
        label: written beside the last point; none if empty.
        marker: of the points.
    """
    axis.fill_between(x, table["ci_low"], table["ci_high"], color=colour, alpha=0.18, linewidth=0)
    axis.plot(x, table["value"], color=colour, marker=marker)
    if label:
        label_end(axis, list(x)[-1], table["value"].iloc[-1], label, colour)


def label_end(axis: Any, x: float, y: float, label: str, colour: str) -> None:
    """Write a label to the right of a point."""
    axis.annotate(
        label,
        (x, y),
        xytext=(7, 0),
        textcoords="offset points",
        va="center",
        color=colour,
        annotation_clip=False,
    )


def point(axis: Any, x: float, row: pd.Series, colour: str, label: str) -> None:
    """The point after the final norm: a diamond with its 95 % interval, set off the curve.

    Args:
        axis: the axis to draw on.
        x: position.
        row: ``z``, ``ci_low`` and ``ci_high``.
        colour: of marker and label.
        label: written beside it.
    """
    spread = [[row["z"] - row["ci_low"]], [row["ci_high"] - row["z"]]]
    axis.errorbar([x], [row["z"]], yerr=spread, color=colour, marker="D", linewidth=1.2)
    label_end(axis, x, row["z"], label, colour)


def few_log_ticks(axis: Any) -> None:
    """Three round numbers at most: in a narrow panel the default labels collide.

    Args:
        axis: the logarithmic x or y axis of a panel, after its data is drawn.
    """
    low, high = axis.get_view_interval()
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    rounds = [m * 10.0**d for d in decades for m in (1, 2, 3, 5) if low <= m * 10.0**d <= high]
    step = max(1, math.ceil(len(rounds) / 3))
    axis.set_major_locator(FixedLocator(rounds[::step]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def symmetric_log(axis: Any, unit: float) -> None:
    """A y axis that is logarithmic on either side of zero, and linear close to it.

    Args:
        axis: the panel.
        unit: a size below which differences do not count; taken down to a power of ten, so that
            no label stands inside the linear stretch.
    """
    axis.set_yscale("symlog", linthresh=10.0 ** math.floor(math.log10(unit)))


def block_axis(axis: Any, depth: int) -> None:
    """Ticks at whole blocks, 0 to L - 1, and the axis's name."""
    axis.set_xticks(range(0, depth, max(1, round(depth / 6))))
    axis.set_xlabel("block")


def layer_axis(axis: Any, depth: int) -> None:
    """Ticks for ``H_0 ... H_L`` and, set off, for the point after the final norm."""
    step = max(1, round(depth / 6))
    ticks = [*range(0, depth - step // 2, step), depth]
    axis.set_xticks([*ticks, depth + 1], [*map(str, ticks), "out"])
    axis.get_xticklabels()[-1].set_horizontalalignment("left")
    axis.set_xlabel("layer (0: input of block 0; out: after the final norm)")


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
