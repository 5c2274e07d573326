"""What a profile of z over depth amounts to: detour, direct or mixed."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from layergeom.geometry.errors import GeometryError

Regime = Literal["detour", "direct", "mixed"]


@dataclass(frozen=True)
class RegimeVerdict:
    """Regime of a model and its collapse zone.

    Attributes:
        regime: *detour* if a layer beyond two thirds of the depth lies wholly below -2;
            *direct* if every intermediate layer lies wholly above +2; else *mixed*.
        collapse_zone: first and last layer of the longest run below -2, or None.
    """

    regime: Regime
    collapse_zone: tuple[int, int] | None


def classify_regime(
    ci_low: Float[np.ndarray, " points"], ci_high: Float[np.ndarray, " points"]
) -> RegimeVerdict:
    """Regime from the intervals of z at ``H_0 ... H_L``; only layers 1 to L-1 are judged.

    Raises:
        GeometryError: the two ends differ in length, or there is no intermediate layer.
    """
    if ci_low.shape != ci_high.shape:
        raise GeometryError(f"{len(ci_low)} lower ends against {len(ci_high)} upper ends")
    depth = len(ci_low) - 1
    if depth < 2:
        raise GeometryError(f"{depth} blocks leave no intermediate layer to judge")
    below = ci_high < -2.0
    layers = range(1, depth)
    if any(below[layer] for layer in layers if layer > 2 * depth / 3):
        regime: Regime = "detour"
    elif all(ci_low[layer] > 2.0 for layer in layers):
        regime = "direct"
    else:
        regime = "mixed"
    return RegimeVerdict(regime, _longest_run([layer for layer in layers if below[layer]]))


def _longest_run(layers: list[int]) -> tuple[int, int] | None:
    best: tuple[int, int] | None = None
    start = previous = None
    for layer in layers:
        start = layer if previous is None or layer != previous + 1 else start
        previous = layer
        assert start is not None
        if best is None or layer - start > best[1] - best[0]:
            best = (start, layer)
    return best
