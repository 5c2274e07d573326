"""The readout subspace of the unembedding, and random subspaces to compare it with."""

import numpy as np
from jaxtyping import Float

from layergeom.geometry.errors import GeometryError


def default_readout_dim(width: int) -> int:
    """Readout dimension k: 100, or a quarter of the width where 100 exceeds that."""
    return 100 if width >= 4 * 100 else width // 4


def _check_dim(k: int, width: int) -> None:
    if k < 1:
        raise GeometryError(f"the readout dimension must be 1 or more, got {k}")
    if k >= width:
        raise GeometryError(
            f"readout dimension {k} at width {width}: every random subspace would be the whole "
            f"space and the null without spread; the largest is {width - 1}"
        )


def readout_basis(
    unembedding: Float[np.ndarray, "vocabulary width"], k: int
) -> Float[np.ndarray, "width k"]:
    """Top-k right singular vectors of the unembedding, as orthonormal columns, float64.

    From the eigendecomposition of the Gram matrix in float64 (Readout, section 3). The rows must
    be those of real tokens only: padding rows would bend the subspace. The sign of each column
    is fixed by its entry of largest magnitude.

    Raises:
        GeometryError: k is not between 1 and width - 1, or the unembedding is not finite.
    """
    _check_dim(k, unembedding.shape[1])
    gram = np.zeros((unembedding.shape[1],) * 2)
    for start in range(0, len(unembedding), 8192):
        rows = unembedding[start : start + 8192].astype(np.float64)
        gram += rows.T @ rows
    if not np.isfinite(gram).all():
        raise GeometryError("the unembedding holds values that are not finite")
    _, vectors = np.linalg.eigh(gram)
    basis = vectors[:, ::-1][:, :k]
    strongest = np.abs(basis).argmax(axis=0)
    return np.ascontiguousarray(basis * np.sign(basis[strongest, np.arange(k)]))


def fold_norm(
    unembedding: Float[np.ndarray, "vocabulary width"], gain: Float[np.ndarray, " width"]
) -> Float[np.ndarray, "vocabulary width"]:
    """The unembedding as seen before the final norm's gain: each column times its gain.

    An option of the readout subspace. Gemma's norm multiplies by ``1 + weight``: that sum is
    the gain.

    Raises:
        GeometryError: a gain of another width.
    """
    if gain.shape != unembedding.shape[1:]:
        raise GeometryError(
            f"a gain of shape {gain.shape} for an unembedding of shape {unembedding.shape}"
        )
    return unembedding * gain.astype(unembedding.dtype)


def centre_vocabulary(
    unembedding: Float[np.ndarray, "vocabulary width"],
) -> Float[np.ndarray, "vocabulary width"]:
    """The unembedding less its mean row, which moves all logits alike and no probability.

    An option of the readout subspace. The mean is summed in float64.
    """
    mean = unembedding.mean(axis=0, dtype=np.float64)
    return unembedding - mean.astype(unembedding.dtype)


def random_subspaces(
    width: int, k: int, count: int, rng: np.random.Generator
) -> Float[np.ndarray, "count width k"]:
    """Orthonormal bases of subspaces drawn uniformly (Haar) from the Grassmannian.

    QR of a Gaussian matrix; the signs of R do not matter for the subspace.

    Raises:
        GeometryError: k is not between 1 and width - 1, or fewer than two subspaces.
    """
    _check_dim(k, width)
    if count < 2:
        raise GeometryError(f"a null needs 2 random subspaces or more, got {count}")
    return np.linalg.qr(rng.standard_normal((count, width, k))).Q


def captured_share(
    vectors: Float[np.ndarray, "vectors width"], basis: Float[np.ndarray, "width k"]
) -> Float[np.ndarray, " vectors"]:
    """Share of each vector's squared length inside the span of an orthonormal basis.

    NaN for a zero vector, which has no direction.
    """
    inside = vectors @ basis
    with np.errstate(invalid="ignore"):
        return np.sum(inside**2, axis=1) / np.sum(vectors**2, axis=1)
