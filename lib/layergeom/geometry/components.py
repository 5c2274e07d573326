"""Common-component removal (CCR): the mean and the leading principal components."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from layergeom.geometry.errors import GeometryError
from layergeom.geometry.subspaces import captured_share


@dataclass(frozen=True)
class ComponentShares:
    """Where the leading principal components point, and how much they hold.

    Attributes:
        dark_share: share of each component outside the readout subspace,
            ``1 - |V_k^T u_j|^2``; ``1 - k/d`` for a random direction.
        variance_share: its share of the variance.
    """

    dark_share: Float[np.ndarray, " components"]
    variance_share: Float[np.ndarray, " components"]


def leading_components(
    centred: Float[np.ndarray, "tokens width"], count: int
) -> Float[np.ndarray, "width count"]:
    """Top principal directions of a centred matrix, as orthonormal columns, float64.

    Raises:
        GeometryError: more components than the matrix can have and still leave something.
    """
    from scipy.linalg import eigh

    tokens, width = centred.shape
    most = min(tokens - 1, width) - 1
    if not 0 <= count <= most:
        raise GeometryError(
            f"cannot remove {count} components from {tokens} tokens of width {width}: "
            f"between 0 and {most} leave something to measure"
        )
    if count == 0:
        return np.empty((width, 0))
    # The smaller of the two Gram matrices has the same leading eigenvalues.
    gram = centred @ centred.T if tokens < width else centred.T @ centred
    side = len(gram)
    values, vectors = eigh(gram, subset_by_index=(side - count - 1, side - 1))
    if values[0] <= max(tokens, width) * np.finfo(np.float64).eps * values[-1]:
        raise GeometryError(
            f"removing {count} components leaves nothing but rounding: the {tokens} tokens span "
            "no more directions than that"
        )
    leading = vectors[:, :0:-1]
    return np.linalg.qr(centred.T @ leading).Q if tokens < width else np.ascontiguousarray(leading)


def remove_common_components(
    states: Float[np.ndarray, "tokens width"], count: int
) -> Float[np.ndarray, "tokens width"]:
    """CCR-c: subtract the mean, then remove the top ``count`` principal components.

    Float64. ``count = 0`` only centres (Readout, section 3; the document's default is 1).

    Raises:
        GeometryError: too many components for the matrix, or states that are not finite.
    """
    if not np.isfinite(states).all():
        raise GeometryError("the states hold values that are not finite")
    centred = states.astype(np.float64)
    centred -= centred.mean(axis=0)
    directions = leading_components(centred, count)
    return centred - (centred @ directions) @ directions.T


def component_shares(
    states: Float[np.ndarray, "tokens width"], readout: Float[np.ndarray, "width k"], count: int
) -> ComponentShares:
    """Dark share and variance share of the leading components, strongest first.

    Source: Readout (arXiv 2605.17084), section 4.

    Args:
        states: hidden states; the components are those of the centred matrix.
        readout: orthonormal basis of the readout subspace.
        count: number of components.

    Raises:
        GeometryError: more components than the matrix has to spare, states that are not finite,
            or a basis of another width.
    """
    if readout.shape[0] != states.shape[1]:
        raise GeometryError(
            f"states of width {states.shape[1]} and a readout basis of shape {readout.shape} do "
            "not match"
        )
    centred = remove_common_components(states, 0)
    directions = leading_components(centred, count)
    variances = np.sum((centred @ directions) ** 2, axis=0)
    return ComponentShares(
        1.0 - captured_share(directions.T, readout), variances / np.sum(centred**2)
    )
