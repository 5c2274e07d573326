"""Means with their 95 % intervals: over independent samples, and over the tokens of sequences."""

import numpy as np
from jaxtyping import Float, Int

from layergeom.geometry.bootstrap import Estimate


def half_width_factor(freedom: int) -> float:
    """Student's t at 0.975: half a 95 % interval, in standard errors."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.975))


def sample_mean_estimate(samples: Float[np.ndarray, " samples"]) -> Estimate:
    """Mean over independent samples with its Student t interval.

    One sample has no interval, and a sample that is NaN leaves neither mean nor interval: a gap
    is not filled by the others.
    """
    count = len(samples)
    mean = float(np.mean(samples))
    if count < 2:
        return Estimate(mean, float("nan"), float("nan"))
    half = half_width_factor(count - 1) * float(np.std(samples, ddof=1)) / float(np.sqrt(count))
    return Estimate(mean, mean - half, mean + half)


def bootstrap_means(
    values: Float[np.ndarray, " tokens"],
    sequences: Int[np.ndarray, " tokens"],
    multiplicities: Int[np.ndarray, "draws sequences"],
) -> Float[np.ndarray, " draws"]:
    """Mean over tokens in each draw of the sequences; NaN where a draw holds no token."""
    count = multiplicities.shape[1]
    sums = np.bincount(sequences, weights=values, minlength=count)
    tokens = np.bincount(sequences, minlength=count)
    with np.errstate(invalid="ignore"):
        return (multiplicities @ sums) / (multiplicities @ tokens)
