"""Null subspaces that share something with the readout, beside the uniform ones.

Extensions of Readout (arXiv 2605.17084), section 3, of our own.
"""

from functools import cache

import numpy as np
from jaxtyping import Float

from layergeom.geometry.errors import GeometryError
from layergeom.geometry.threads import map_threads

#: Exponents beyond this count as out of reach: the subspaces hardly move any more.
_LARGEST_EXPONENT = 64.0


def _check_count(count: int) -> None:
    if count < 2:
        raise GeometryError(f"a null needs 2 random subspaces or more, got {count}")


def orthogonal_subspaces(
    removed: Float[np.ndarray, "width removed"], k: int, count: int, rng: np.random.Generator
) -> Float[np.ndarray, "count width k"]:
    """Orthonormal bases of uniformly drawn subspaces orthogonal to the removed components.

    A uniform subspace loses the share of itself that lies along what was removed; these do not.
    With nothing removed they are those of ``random_subspaces`` from the same generator.

    Args:
        removed: orthonormal directions, from ``leading_components``.
        k: dimension of the subspaces.
        count: how many.
        rng: source of the Gaussian matrices.

    Raises:
        GeometryError: k is not between 1 and one less than the dimensions left, or fewer than
            two subspaces.
    """
    width, gone = removed.shape
    _check_count(count)
    if not 1 <= k < width - gone:
        raise GeometryError(
            f"subspaces of dimension {k} orthogonal to {gone} components at width {width}: "
            f"between 1 and {width - gone - 1} leave them room to differ"
        )
    gaussian = rng.standard_normal((count, width, k))
    gaussian -= removed @ (removed.T @ gaussian)
    return np.linalg.qr(gaussian).Q


def _varying_part(
    centred: Float[np.ndarray, "tokens width"],
) -> tuple[Float[np.ndarray, " rank"], Float[np.ndarray, "width rank"]]:
    """Eigenvalues of the Gram matrix and principal directions, to the numerical rank.

    Falling, and scaled to sum 1. The rank counts eigenvalues above rounding, as
    ``leading_components`` does.
    """
    values, vectors = np.linalg.eigh(centred.T @ centred)
    kept = values > max(centred.shape) * np.finfo(np.float64).eps * values[-1]
    if not kept.any():
        raise GeometryError("the states do not vary: no subspace holds more variance than another")
    return (values[kept] / values[kept].sum())[::-1], vectors[:, kept][:, ::-1]


class _Tilted:
    """Spans of ``diag(lambda^a) G`` for many G, for exponents of one sign.

    Written as graphs over the first k coordinates, ``[I; X]`` with
    ``X = lambda_2^a (G_2 G_1^-1) lambda_1^-a``: the same span, and no power of an eigenvalue
    but the ratios, which are 1 at most, so that no exponent costs a digit.
    """

    def __init__(
        self, values: Float[np.ndarray, " rank"], gaussian: Float[np.ndarray, "count rank k"]
    ) -> None:
        """Values falling for exponents above 0, rising for those below."""
        k = gaussian.shape[2]
        self.first, self.rest = values[:k], values[k:]
        self.log_ratios = np.log(self.rest)[:, None] - np.log(self.first)
        # G_2 G_1^-1, as the solution of G_1^T X^T = G_2^T.
        self.slopes = map_threads(lambda g: np.linalg.solve(g[:k].T, g[k:].T).T, gaussian)

    def captured(self, exponent: float) -> float:
        """Share of the variance inside, averaged over the subspaces: rises with the exponent."""
        ratios = np.exp(exponent * self.log_ratios)
        deviations = np.sqrt(self.rest)[:, None]

        def held(slopes: Float[np.ndarray, "rest k"]) -> float:
            lower = slopes * ratios
            scaled = deviations * lower
            squares = lower.T @ lower + np.eye(len(self.first))
            variance = scaled.T @ scaled + np.diag(self.first)
            return float(np.trace(np.linalg.solve(squares, variance)))

        return float(np.mean(map_threads(held, self.slopes)))

    def bases(
        self, exponent: float, directions: Float[np.ndarray, "width rank"]
    ) -> Float[np.ndarray, "count width k"]:
        """Orthonormal bases, from the principal directions that these coordinates belong to."""
        ratios = np.exp(exponent * self.log_ratios)
        top = np.eye(len(self.first))

        def basis(slopes: Float[np.ndarray, "rest k"]) -> Float[np.ndarray, "width k"]:
            return directions @ np.linalg.qr(np.concatenate([top, slopes * ratios])).Q

        return np.stack(map_threads(basis, self.slopes))


def variance_matched_subspaces(
    centred: Float[np.ndarray, "tokens width"],
    readout: Float[np.ndarray, "width k"],
    count: int,
    rng: np.random.Generator,
) -> Float[np.ndarray, "count width k"]:
    """Random subspaces that hold as much of the variance as the readout, on average.

    ``qr(P diag(lambda^a) G)``: P the principal directions, lambda their variances, G Gaussian,
    all on the numerical-rank part of the spectrum, for components that were removed leave zeros.
    The exponent ``a`` is found by bisection (Brent's), so that the captured variance averaged
    over these same Gaussian matrices equals that of the readout. It rises with ``a`` for every
    G, from the last k directions to the first k. Asks whether the readout does better than one
    natural family of subspaces that hold as much variance.

    Args:
        centred: centred states, after the removal of common components.
        readout: orthonormal basis of the readout subspace.
        count: number of subspaces.
        rng: source of the Gaussian matrices.

    Raises:
        GeometryError: shapes that do not match, states not finite, fewer directions that vary
            than k + 1, or a readout whose variance no member of the family reaches.
    """
    width, k = readout.shape
    _check_count(count)
    if centred.ndim != 2 or centred.shape[1] != width:
        raise GeometryError(
            f"states of shape {centred.shape} and a readout basis of shape {readout.shape} do not "
            "match"
        )
    if not np.isfinite(centred).all():
        raise GeometryError("the states hold values that are not finite")
    values, directions = _varying_part(centred.astype(np.float64))
    rank = len(values)
    if k >= rank:
        raise GeometryError(
            f"readout dimension {k} among {rank} directions that vary: every subspace would hold "
            f"all the variance; the largest is {rank - 1}"
        )
    target = float(np.sum(values[:, None] * (directions.T @ readout) ** 2))
    gaussian = rng.standard_normal((count, rank, k))
    rising = _Tilted(values, gaussian)
    if rising.captured(0.0) <= target:
        return rising.bases(_matching_exponent(rising, target, 1.0), directions)
    falling = _Tilted(values[::-1], gaussian[:, ::-1])
    return falling.bases(_matching_exponent(falling, target, -1.0), directions[:, ::-1])


def _matching_exponent(family: _Tilted, target: float, sign: float) -> float:
    """The exponent at which the family captures the target; its sign is known."""
    from scipy.optimize import brentq

    @cache
    def excess(exponent: float) -> float:
        return family.captured(exponent) - target

    if sign * excess(0.0) >= 0.0:  # equal but for rounding
        return 0.0
    end = sign
    while sign * excess(end) < 0.0:
        end *= 2.0
        if abs(end) > _LARGEST_EXPONENT:
            raise GeometryError(
                f"the readout holds {target:.4g} of the variance; subspaces tilted along the "
                f"spectrum hold {'at most' if sign > 0 else 'at least'} "
                f"{target + excess(end / 2.0):.4g}: no null matches it"
            )
    return float(brentq(excess, 0.0, end, xtol=1e-10))
