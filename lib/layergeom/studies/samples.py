"""The disjoint token samples of Subspace PGA, for other measures of the same tokens."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float

from layergeom.geometry.means import sample_mean_estimate
from layergeom.studies.pga import PGAProfile, PGAStudy


def sampled_states(study: PGAStudy, point: str) -> list[Float[np.ndarray, "tokens width"]]:
    """States of each sample's tokens at a capture point."""
    states = study.states.at(point)
    return [states[where] for where in zip(*study.tokens, strict=True)]


def depth_of(point: str, depth: int) -> int:
    """Blocks that a capture point lies behind: those of the whole model for ``out``."""
    return depth if point == "out" else int(point.removeprefix("H_"))


def over_samples(table: pd.DataFrame, keys: Sequence[str], columns: Sequence[str]) -> pd.DataFrame:
    """Means over samples with Student t intervals, in the order of the table.

    Args:
        table: one row per sample and combination of keys.
        keys: columns that stay.
        columns: columns to take the means of.

    Returns:
        The keys, and ``NAME``, ``NAME_low`` and ``NAME_high`` for each column.
    """
    rows = []
    for key, group in table.groupby(list(keys), sort=False):
        row = dict(zip(keys, key, strict=True))
        for column in columns:
            estimate = sample_mean_estimate(group[column].to_numpy())
            row |= {
                column: estimate.value,
                f"{column}_low": estimate.ci_low,
                f"{column}_high": estimate.ci_high,
            }
        rows.append(row)
    return pd.DataFrame(rows)


def layers_by_samples(table: pd.DataFrame, column: str) -> Float[np.ndarray, "layers samples"]:
    """A column over ``H_0 ... H_L`` and samples; the point after the final norm is no layer.

    Args:
        table: one row per point and sample, points in order of depth.
        column: name of the column.
    """
    layers = table[table["point"] != "out"]
    return layers[column].to_numpy().reshape(layers["point"].nunique(), -1)


def z_by_layer(profile: PGAProfile) -> Float[np.ndarray, "layers samples"]:
    """The z of each layer and sample at CCR-1."""
    return layers_by_samples(profile.samples[profile.samples["level"] == 1], "z")


def sample_draws(
    samples: int, draws: int, rng: np.random.Generator
) -> Float[np.ndarray, "draws samples"]:
    """Weights of the samples in the mean of each bootstrap draw; a single one is always drawn."""
    return rng.multinomial(samples, np.full(samples, 1.0 / samples), size=draws) / samples
