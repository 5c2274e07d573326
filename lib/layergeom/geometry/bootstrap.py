"""Bootstrap over sequences: tokens of one sequence are not independent, sequences are.

A draw is a vector of multiplicities, one a sequence. Medians and rank correlations are
computed from the multiplicities, without copying tokens.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from layergeom.geometry.errors import GeometryError, UndefinedCorrelationWarning


@dataclass(frozen=True)
class Estimate:
    """A statistic with its 95 % percentile interval over bootstrap draws."""

    value: float
    ci_low: float
    ci_high: float


#: Shares of a variance below this are rounding. Ranks are exact, so their sums of squares are
#: good to far more digits.
_ROUNDING = 1e-11

NOT_DEFINED = Estimate(float("nan"), float("nan"), float("nan"))


def sequence_draws(
    sequences: int, draws: int, rng: np.random.Generator
) -> Int[np.ndarray, "draws sequences"]:
    """Multiplicities of the sequences in each bootstrap draw.

    Raises:
        GeometryError: fewer than two sequences or draws.
    """
    if sequences < 2 or draws < 2:
        raise GeometryError(
            f"a bootstrap needs 2 sequences and 2 draws or more, got {sequences} and {draws}"
        )
    return rng.multinomial(sequences, np.full(sequences, 1.0 / sequences), size=draws)


def percentile_interval(value: float, draws: Float[np.ndarray, " draws"]) -> Estimate:
    """The value with the 2.5th and 97.5th percentile of the draws that are defined."""
    defined = draws[np.isfinite(draws)]
    if not np.isfinite(value) or defined.size < 2:
        return Estimate(value, float("nan"), float("nan"))
    low, high = np.percentile(defined, [2.5, 97.5])
    return Estimate(value, float(low), float(high))


def bootstrap_medians(
    values: Float[np.ndarray, " tokens"],
    sequences: Int[np.ndarray, " tokens"],
    multiplicities: Int[np.ndarray, "draws sequences"],
) -> Float[np.ndarray, " draws"]:
    """Median over tokens in each draw; tokens that are NaN are left out.

    The cumulative count at a position of the sorted values is a product of two small matrices,
    so each median is found by bisection instead of sorting the draw.
    """
    kept = np.isfinite(values)
    values, sequences = values[kept], sequences[kept]
    if values.size == 0:
        return np.full(len(multiplicities), np.nan)
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    member = np.zeros((values.size, multiplicities.shape[1]))
    member[np.arange(values.size), sequences[order]] = 1.0
    counts = np.cumsum(member, axis=0)
    weights = multiplicities.astype(np.float64)
    totals = weights @ counts[-1]

    def value_at(place: Float[np.ndarray, " draws"]) -> Float[np.ndarray, " draws"]:
        low = np.zeros(len(weights), dtype=np.int64)
        high = np.full(len(weights), values.size - 1, dtype=np.int64)
        while (low < high).any():
            middle = (low + high) // 2
            reached = np.einsum("ds,ds->d", counts[middle], weights) >= place
            high = np.where(reached, middle, high)
            low = np.where(reached, low, middle + 1)
        return ordered[low]

    medians = 0.5 * (value_at((totals + 1) // 2) + value_at(totals // 2 + 1))
    return np.where(totals > 0, medians, np.nan)


def median_estimate(
    values: Float[np.ndarray, " tokens"],
    sequences: Int[np.ndarray, " tokens"],
    multiplicities: Int[np.ndarray, "draws sequences"],
) -> Estimate:
    """Median over tokens with its interval over sequences; NaN if no token is defined."""
    defined = values[np.isfinite(values)]
    if defined.size == 0:
        return NOT_DEFINED
    return percentile_interval(
        float(np.median(defined)), bootstrap_medians(values, sequences, multiplicities)
    )


def _weighted_ranks(
    values: Float[np.ndarray, " tokens"], weights: Float[np.ndarray, "draws tokens"]
) -> Float[np.ndarray, "draws tokens"]:
    """Mean rank of each token in a sample that holds it ``weight`` times."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    run = np.cumsum(np.concatenate([[True], ordered[1:] != ordered[:-1]])) - 1
    reached = np.cumsum(weights[:, order], axis=1)
    last = np.concatenate([first[1:] - 1, [len(values) - 1]])
    upper = reached[:, last]
    lower = np.concatenate([np.zeros((len(weights), 1)), upper[:, :-1]], axis=1)
    ranks = np.empty_like(weights)
    ranks[:, order] = (0.5 * (lower + upper + 1.0))[:, run]
    return ranks


def bootstrap_spearman(
    x: Float[np.ndarray, " tokens"],
    y: Float[np.ndarray, " tokens"],
    sequences: Int[np.ndarray, " tokens"],
    multiplicities: Int[np.ndarray, "draws sequences"],
) -> Float[np.ndarray, " draws"]:
    """Spearman's correlation in each draw, ties averaged; NaN where a draw is constant."""
    return _plain(_rank_covariance((x, y), sequences, multiplicities))


def _rank_covariance(
    columns: Sequence[Float[np.ndarray, " tokens"]],
    sequences: Int[np.ndarray, " tokens"],
    multiplicities: Int[np.ndarray, "draws sequences"],
) -> Float[np.ndarray, "draws columns columns"]:
    """Sums of products of the columns' centred ranks in each draw."""
    weights = multiplicities[:, sequences].astype(np.float64)
    ranks = np.stack([_weighted_ranks(column, weights) for column in columns], axis=1)
    # The mean of mean ranks is (n + 1) / 2 whatever the ties.
    ranks -= 0.5 * (weights.sum(axis=1)[:, None, None] + 1.0)
    return (ranks * weights[:, None]) @ ranks.transpose(0, 2, 1)


def _plain(covariance: Float[np.ndarray, "draws columns columns"]) -> Float[np.ndarray, " draws"]:
    """Correlation of the first two columns."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return covariance[:, 0, 1] / np.sqrt(covariance[:, 0, 0] * covariance[:, 1, 1])


def _partial(covariance: Float[np.ndarray, "draws columns columns"]) -> Float[np.ndarray, " draws"]:
    """Correlation of the first two columns that the others do not account for.

    Residuals of a linear fit need not be formed: their covariance is the Schur complement of
    the given in the covariance of all ranks.
    """
    inner, across, among = covariance[:, :2, :2], covariance[:, :2, 2:], covariance[:, 2:, 2:]
    # The pseudo-inverse: a given that is constant, or follows from the others, explains nothing.
    solved = np.linalg.pinv(among, rcond=_ROUNDING, hermitian=True)
    left = inner - across @ solved @ across.transpose(0, 2, 1)
    spread = np.diagonal(left, axis1=1, axis2=2)
    defined = (spread > _ROUNDING * np.diagonal(inner, axis1=1, axis2=2)).all(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(defined, left[:, 0, 1] / np.sqrt(spread[:, 0] * spread[:, 1]), np.nan)


def spearman(x: Float[np.ndarray, " tokens"], y: Float[np.ndarray, " tokens"]) -> float:
    """Spearman's correlation over tokens, ties averaged.

    NaN with an ``UndefinedCorrelationWarning`` where either is constant.
    """
    # scipy.stats takes a second to import, and stored results are shown without it.
    from scipy.stats import rankdata

    rank_x = rankdata(x) - 0.5 * (len(x) + 1)
    rank_y = rankdata(y) - 0.5 * (len(y) + 1)
    scale = float(np.sqrt((rank_x @ rank_x) * (rank_y @ rank_y)))
    if scale > 0.0:
        return float(rank_x @ rank_y) / scale
    warnings.warn(
        "all values are equal: the rank correlation is undefined",
        UndefinedCorrelationWarning,
        stacklevel=2,
    )
    return float("nan")


def bootstrap_partial_spearman(
    x: Float[np.ndarray, " tokens"],
    y: Float[np.ndarray, " tokens"],
    given: Float[np.ndarray, "tokens covariates"],
    sequences: Int[np.ndarray, " tokens"],
    multiplicities: Int[np.ndarray, "draws sequences"],
) -> Float[np.ndarray, " draws"]:
    """Partial Spearman in each draw; NaN where the given leave nothing of x or y."""
    return _partial(_rank_covariance((x, y, *given.T), sequences, multiplicities))


def partial_spearman(
    x: Float[np.ndarray, " tokens"],
    y: Float[np.ndarray, " tokens"],
    given: Float[np.ndarray, "tokens covariates"],
) -> float:
    """Spearman's correlation of x and y that the given do not account for.

    Pearson's correlation of the residuals of the ranks of x and y (ties averaged) after a linear
    fit, with intercept, on the ranks of each given. NaN with an ``UndefinedCorrelationWarning``
    where nothing of x or y is left.

    Raises:
        GeometryError: lengths that differ.
    """
    if not len(x) == len(y) == len(given):
        raise GeometryError(
            f"{len(x)} and {len(y)} values given {len(given)}: one of each a token is needed"
        )
    everything = np.zeros(len(x), dtype=np.int64)
    found = float(bootstrap_partial_spearman(x, y, given, everything, np.ones((1, 1), int))[0])
    if np.isnan(found):
        warnings.warn(
            "the given values account for all of one: the partial correlation is undefined",
            UndefinedCorrelationWarning,
            stacklevel=2,
        )
    return found


def spearman_estimates(
    x: Float[np.ndarray, " tokens"],
    y: Float[np.ndarray, " tokens"],
    given: Float[np.ndarray, "tokens covariates"],
    sequences: Int[np.ndarray, " tokens"],
    multiplicities: Int[np.ndarray, "draws sequences"],
) -> tuple[Estimate, Estimate]:
    """Spearman's correlation over tokens, plain and partial, with intervals over sequences.

    Both from one ranking of each draw. Tokens where any value is NaN are left out; without three
    more tokens than given there is no estimate.
    """
    kept = np.isfinite(x) & np.isfinite(y) & np.isfinite(given).all(axis=1)
    if np.count_nonzero(kept) < given.shape[1] + 3:
        return NOT_DEFINED, NOT_DEFINED
    x, y, given, sequences = x[kept], y[kept], given[kept], sequences[kept]
    covariance = _rank_covariance((x, y, *given.T), sequences, multiplicities)
    return (
        percentile_interval(spearman(x, y), _plain(covariance)),
        percentile_interval(partial_spearman(x, y, given), _partial(covariance)),
    )
