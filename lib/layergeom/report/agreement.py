"""How two models' layers are shown against each other."""

from typing import Any

import pandas as pd


def agreement_map(
    axis: Any, matrix: pd.DataFrame, space: str, names: tuple[str, str], ends: tuple[float, float]
) -> Any:
    """Agreement of every layer of one model with every layer of another, in colour.

    Args:
        axis: the axis to draw on.
        matrix: columns ``first_point``, ``second_point``, ``space`` and ``value``.
        space: which of the spaces is shown.
        names: names of the two models, for the axes.
        ends: agreement at the ends of the colour scale, the same for all maps of a figure.

    Returns:
        The drawn mesh, for a colour bar.
    """
    shown = matrix[matrix["space"] == space].pivot_table(
        index="second_point", columns="first_point", values="value", sort=False
    )
    mesh = axis.pcolormesh(
        shown.to_numpy(), cmap="viridis", vmin=ends[0], vmax=ends[1], rasterized=True
    )
    for which, points, name in (
        (axis.xaxis, shown.columns, names[0]),
        (axis.yaxis, shown.index, names[1]),
    ):
        last = len(points) - 2
        ticks = [0, last // 2]
        # Beyond the last layer there is one more row: after the final norm.
        which.set_ticks(
            [*(tick + 0.5 for tick in ticks), last + 1.5], [*(str(tick) for tick in ticks), "out"]
        )
        which.set_label_text(f"layer of {name}", fontsize="small")
    return mesh
