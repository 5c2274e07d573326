"""The course of a training on one axis, from the first steps to the last."""

from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.colors import TwoSlopeNorm
from matplotlib.ticker import FixedLocator, NullLocator

from layergeom.report.style import INK


def step_place(step: Any) -> Any:
    """Place of training steps on an axis that is logarithmic and has room for step 0."""
    return np.log2(np.asarray(step, dtype=np.float64) + 1.0)


def step_axis(axis: Any, steps: pd.Series) -> None:
    """Ticks at those measured steps that leave each other room.

    Args:
        axis: the axis below the panels.
        steps: the steps measured, in order.
    """
    places = step_place(steps)
    room = (places[-1] - places[0]) / 9
    kept: list[int] = [len(places) - 1]
    for i in range(len(places) - 2, -1, -1):
        if places[kept[-1]] - places[i] >= room:
            kept.append(i)
    axis.xaxis.set_major_locator(FixedLocator([places[i] for i in reversed(kept)]))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xticklabels([f"{int(steps.iloc[i]):,}" for i in reversed(kept)])
    axis.set_xlabel("training step")


def z_heat_map(axis: Any, z: pd.DataFrame) -> Any:
    """Values of z by layer and step, blue above 0 and red below, with its own colour bar.

    Args:
        axis: the axis to draw on.
        z: layers by steps, the first layer first; its columns are the steps. Gaps stay white.

    Returns:
        The drawn mesh.
    """
    places = step_place(z.columns)
    values: Float[np.ndarray, "layers steps"] = z.to_numpy()
    most = float(np.nanmax(np.abs(values), initial=2.0))
    mesh = axis.pcolormesh(
        _edges(places),
        np.arange(len(z) + 1) - 0.5,
        values,
        cmap="RdBu",
        norm=TwoSlopeNorm(0.0, -most, most),
        rasterized=True,
    )
    axis.set_yticks(range(len(z)), [str(point).removeprefix("H_") for point in z.index])
    return mesh


def mark_uncertain(axis: Any, uncertain: pd.DataFrame) -> None:
    """A dot in each cell of the heat map whose interval holds 0.

    Args:
        axis: the axis of the heat map.
        uncertain: layers by steps, true where the interval holds 0.
    """
    layers, steps = np.nonzero(uncertain.to_numpy())
    axis.plot(step_place(uncertain.columns)[steps], layers, ".", color=INK, markersize=3)


def _edges(places: Float[np.ndarray, " steps"]) -> Float[np.ndarray, " edges"]:
    """Edges of cells around the places, halfway between neighbours."""
    if len(places) == 1:
        return np.array([places[0] - 0.5, places[0] + 0.5])
    between = 0.5 * (places[1:] + places[:-1])
    first, last = 2 * places[0] - between[0], 2 * places[-1] - between[-1]
    return np.concatenate([[first], between, [last]])
