"""Spectral metrics of a cloud of states, each in one exact variant.

All are float64. "Raw" means the states as they are, "centred" after their mean is subtracted;
``sigma`` are singular values in falling order, ``lambda = sigma^2 / (tokens - 1)`` eigenvalues of
the covariance. No metric but RankMe and partition isotropy sees the mean, save for the mean
cosine, which is all about it.
"""

import numpy as np
from jaxtyping import Float

from layergeom.geometry.errors import GeometryError

States = Float[np.ndarray, "tokens width"]
Spectrum = Float[np.ndarray, " values"]

#: Added to each share of the singular values, as in the paper.
RANKME_EPS = 1e-7
#: Ranks between which the decay of the eigenvalues is fitted.
ALPHA_RANKS = (10, 100)


def _checked(states: States) -> States:
    if len(states) < 2:
        raise GeometryError(f"a spectrum needs 2 tokens or more, got {len(states)}")
    if not np.isfinite(states).all():
        raise GeometryError("the states hold values that are not finite")
    if not states.any():
        raise GeometryError("all states are zero vectors: they have no spectrum")
    return states.astype(np.float64)


def _singular_values(matrix: States) -> Spectrum:
    return np.linalg.svd(matrix, compute_uv=False)


def _centred_spectrum(states: States) -> Spectrum:
    """Singular values of the centred matrix, to its numerical rank.

    A value counts if it exceeds ``max(tokens, width) * eps * |states|``: what rounding leaves of
    the direction that centring removes is as large as the raw states make it.
    """
    values = _singular_values(states - states.mean(axis=0))
    rounding = max(states.shape) * np.finfo(np.float64).eps * float(np.linalg.norm(states))
    kept = values[values > rounding]
    if kept.size == 0:
        raise GeometryError(f"the {len(states)} states are all the same: they have no spectrum")
    return kept


def _rankme(values: Spectrum) -> float:
    shares = values / values.sum() + RANKME_EPS
    return float(np.exp(-np.sum(shares * np.log(shares))))


def _alpha_req(values: Spectrum) -> float:
    first, last = ALPHA_RANKS
    if len(values) <= first:
        raise GeometryError(
            f"the decay of eigenvalues is fitted from rank {first} on; these states have a "
            f"numerical rank of {len(values)}"
        )
    ranks = np.arange(first, min(last, len(values)) + 1)
    slope = np.polyfit(np.log(ranks), np.log(values[ranks - 1] ** 2), 1)[0]
    return -float(slope)


def _isoscore(values: Spectrum, width: int) -> float:
    if width < 2:
        raise GeometryError("IsoScore needs a width of 2 or more, got 1")
    variances = np.zeros(width)
    variances[: len(values)] = values**2
    normalised = np.sqrt(width) * variances / np.linalg.norm(variances)
    defect = np.linalg.norm(normalised - 1.0) / np.sqrt(2.0 * (width - np.sqrt(width)))
    used = (width - defect**2 * (width - np.sqrt(width))) ** 2 / width**2
    return float((width * used - 1.0) / (width - 1.0))


def _participation_ratio(values: Spectrum) -> float:
    return float(np.sum(values**2) ** 2 / np.sum(values**4))


def _condition_number(values: Spectrum) -> float:
    return float(values[0] / values[-1])


def rankme(states: States) -> float:
    """RankMe: exponential of the entropy of the singular values of the raw matrix.

    ``exp(-sum p log p)``, ``p = sigma / sum(sigma) + 1e-7``. Between 1 (up to the epsilon) and
    the smaller side of the matrix.

    Source: Garrido, Balestriero, Najman & LeCun, "RankMe" (arXiv 2210.02885, 2022).

    Raises:
        GeometryError: fewer than two states, or states not finite or all zero.
    """
    return _rankme(_singular_values(_checked(states)))


def rankme_centred(states: States) -> float:
    """The same of the centred matrix, as codes that start from the covariance compute it.

    Raises:
        GeometryError: as ``rankme``, or states that are all the same.
    """
    states = _checked(states)
    values = np.zeros(min(states.shape))
    spectrum = _centred_spectrum(states)
    values[: len(spectrum)] = spectrum
    return _rankme(values)


def alpha_req(states: States) -> float:
    """alpha-ReQ: exponent of the power law that the covariance's eigenvalues follow.

    Minus the least-squares slope of ``log lambda`` on ``log rank`` over ranks 10 to 100, or to
    the numerical rank where that is lower; positive for eigenvalues that fall.

    Source: Agrawal, Mondal, Ghosh & Richards, "alpha-ReQ" (NeurIPS 2022).

    Raises:
        GeometryError: as ``rankme``, or a numerical rank of 10 or less.
    """
    return _alpha_req(_centred_spectrum(_checked(states)))


def isoscore(states: States) -> float:
    """IsoScore: how evenly the variance fills the dimensions, 0 (one of them) to 1 (all).

    The variances along the principal axes are scaled to length ``sqrt(d)``; their distance from
    a vector of ones, in units of the largest possible, is the isotropy defect ``delta``; the
    share of dimensions used is ``phi = (d - delta^2 (d - sqrt(d)))^2 / d^2``; the score is
    ``(d phi - 1) / (d - 1)``. This equals ``(PR - 1) / (d - 1)``, ``PR`` the participation
    ratio. With ``k`` equal variances it is ``(k - 1) / (d - 1)``; fewer tokens than dimensions
    cannot reach 1.

    Source: Rudman, Gillman, Rayne & Eickhoff, "IsoScore" (Findings of ACL 2022), algorithm 1.

    Raises:
        GeometryError: as ``rankme``, states that are all the same, or of a single dimension.
    """
    states = _checked(states)
    return _isoscore(_centred_spectrum(states), states.shape[1])


def partition_isotropy(states: States) -> float:
    """Ratio of the smallest to the largest partition function ``Z(c) = sum exp(c . w)``.

    Over the unit eigenvectors ``c`` of the raw ``W^T W`` and their opposites, for an eigenvector
    has no sign; by log-sum-exp. Near 1 for an isotropic cloud close to the origin. It depends on
    the scale of the states, and long ones push it to 0.

    Source: Mu & Viswanath, "All-but-the-Top" (ICLR 2018), which takes its minimum and maximum over
    the same eigenvectors.

    Raises:
        GeometryError: as ``rankme``.
    """
    from scipy.special import logsumexp

    states = _checked(states)
    directions = np.linalg.eigh(states.T @ states).eigenvectors
    projections = states @ directions
    log_z = np.concatenate([logsumexp(projections, axis=0), logsumexp(-projections, axis=0)])
    return float(np.exp(log_z.min() - log_z.max()))


def mean_cosine(states: States) -> float:
    """Mean cosine between the raw states of all distinct pairs of tokens.

    Source: Ethayarajh, "How contextual are contextualized word representations?" (EMNLP 2019);
    over every pair instead of a sample of them.

    Raises:
        GeometryError: as ``rankme``, or a zero vector, for which the cosine is undefined.
    """
    states = _checked(states)
    lengths = np.linalg.norm(states, axis=1)
    zero = int(np.count_nonzero(lengths == 0.0))
    if zero:
        raise GeometryError(f"{zero} of {len(states)} tokens are zero vectors: no cosine")
    total = (states / lengths[:, None]).sum(axis=0)
    count = len(states)
    return float((total @ total - count) / (count * (count - 1)))


def participation_ratio(states: States) -> float:
    """Participation ratio ``(sum lambda)^2 / sum lambda^2`` of the covariance's eigenvalues.

    Between 1 and the width: the number of equal eigenvalues that would be as uneven.

    Source: Gao et al., "A theory of multineuronal dimensionality" (bioRxiv 214262).

    Raises:
        GeometryError: as ``rankme``, or states that are all the same.
    """
    return _participation_ratio(_centred_spectrum(_checked(states)))


def condition_number(states: States) -> float:
    """``sigma_1 / sigma_r`` of the centred matrix, ``r`` its numerical rank.

    Centring alone makes a matrix with no more tokens than dimensions singular, so the ratio to
    its last singular value would be infinite. The rank counts the singular values above
    ``max(tokens, width) * eps * |states|``, in float64.

    Raises:
        GeometryError: as ``rankme``, or states that are all the same.
    """
    return _condition_number(_centred_spectrum(_checked(states)))


def spectral_metrics(states: States) -> dict[str, float]:
    """Every metric of this module by name, from one decomposition of each matrix.

    ``alpha_req`` is NaN where the numerical rank leaves nothing to fit.

    Raises:
        GeometryError: as ``rankme``, zero vectors, or states that are all the same.
    """
    states = _checked(states)
    width = states.shape[1]
    centred = _centred_spectrum(states)
    padded = np.zeros(min(states.shape))
    padded[: len(centred)] = centred
    fitted = len(centred) > ALPHA_RANKS[0]
    return {
        "rankme": _rankme(_singular_values(states)),
        "rankme_centred": _rankme(padded),
        "alpha_req": _alpha_req(centred) if fitted else float("nan"),
        "isoscore": _isoscore(centred, width),
        "partition_isotropy": partition_isotropy(states),
        "mean_cosine": mean_cosine(states),
        "participation_ratio": _participation_ratio(centred),
        "condition_number": _condition_number(centred),
    }
