"""Correlations over layers, with the error of what is correlated and of having few layers."""

import warnings

import numpy as np
from jaxtyping import Float, Int

from layergeom.geometry.bootstrap import NOT_DEFINED, Estimate, percentile_interval
from layergeom.geometry.errors import GeometryError, UndefinedCorrelationWarning


def layer_draws(layers: int, draws: int, rng: np.random.Generator) -> Int[np.ndarray, "draws n"]:
    """Indices of layers drawn with replacement, in runs of neighbours.

    Neighbouring layers resemble each other, and drawn one by one they would pass for more
    evidence than they are: the moving-block bootstrap (Kuensch 1989), with runs of the cube root
    of the number of layers.
    """
    length = max(1, round(layers ** (1.0 / 3.0)))
    runs = -(-layers // length)
    starts = rng.integers(0, layers - length + 1, size=(draws, runs))
    return (starts[:, :, None] + np.arange(length)).reshape(draws, -1)[:, :layers]


def spearman_over_layers(
    x: Float[np.ndarray, " layers"],
    y: Float[np.ndarray, " layers"],
    x_draws: Float[np.ndarray, "draws layers"],
    y_draws: Float[np.ndarray, "draws layers"],
    rng: np.random.Generator,
) -> Estimate:
    """Spearman's correlation of two profiles over layers with its 95 % interval.

    Each draw takes a draw of both profiles, which carries the error of their measurement, and
    from it layers in runs of neighbours, which carries the error of having these few layers.
    Layers where a profile is NaN are left out.

    Args:
        x: one quantity by layer.
        y: another.
        x_draws: bootstrap draws of the first; those of the second in the same row belong to it.
        y_draws: bootstrap draws of the second.
        rng: draws the layers.

    Returns:
        The correlation; undefined with fewer than three layers, and NaN with an
        ``UndefinedCorrelationWarning`` where a profile is constant.

    Raises:
        GeometryError: shapes that do not match.
    """
    if not x.shape == y.shape == x_draws.shape[1:] or x_draws.shape != y_draws.shape:
        raise GeometryError(
            f"profiles of shapes {x.shape} and {y.shape} do not match their draws of shapes "
            f"{x_draws.shape} and {y_draws.shape}"
        )
    kept = np.isfinite(x) & np.isfinite(y)
    layers = int(np.count_nonzero(kept))
    if layers < 3:
        return NOT_DEFINED
    value = float(_row_spearman(x[None, kept], y[None, kept])[0])
    if not np.isfinite(value):
        warnings.warn(
            "a profile is constant over the layers: its rank correlation is undefined",
            UndefinedCorrelationWarning,
            stacklevel=2,
        )
        return NOT_DEFINED
    drawn = layer_draws(layers, len(x_draws), rng)
    taken = [np.take_along_axis(rows[:, kept], drawn, axis=1) for rows in (x_draws, y_draws)]
    return percentile_interval(value, _row_spearman(*taken))


def _row_spearman(
    x: Float[np.ndarray, "rows layers"], y: Float[np.ndarray, "rows layers"]
) -> Float[np.ndarray, " rows"]:
    """Spearman's correlation of each pair of rows, ties averaged; NaN where one is constant."""
    centre = 0.5 * (x.shape[1] + 1)
    # scipy.stats takes a second to import, and stored results are shown without it.
    from scipy.stats import rankdata

    rank_x, rank_y = rankdata(x, axis=1) - centre, rankdata(y, axis=1) - centre
    scale = np.sqrt(np.sum(rank_x**2, axis=1) * np.sum(rank_y**2, axis=1))
    with np.errstate(invalid="ignore"):
        return np.sum(rank_x * rank_y, axis=1) / scale
