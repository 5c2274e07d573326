"""Errors as long as the residual that point elsewhere: controls for what the residual does.

Ours; see Updates (arXiv 2604.02459), section 5. A residual that matters for where it points
beats all three. A token whose residual is zero has a zero error in every control.
"""

import numpy as np
from jaxtyping import Float

from layergeom.geometry.errors import GeometryError

Vectors = Float[np.ndarray, "tokens width"]


def _as_long_as(residual: Vectors, directions: Vectors) -> Vectors:
    """Each direction scaled to the length of the token's residual; directions are not zero."""
    scale = np.linalg.norm(residual, axis=1) / np.linalg.norm(directions, axis=1)
    return directions * scale[:, None]


def _check(residual: Vectors) -> Vectors:
    if not np.isfinite(residual).all():
        raise GeometryError("the residuals hold values that are not finite")
    return residual.astype(np.float64)


def random_direction(residual: Vectors, rng: np.random.Generator) -> Vectors:
    """An error of each residual's length in a uniformly random direction.

    Raises:
        GeometryError: residuals that are not finite.
    """
    residual = _check(residual)
    return _as_long_as(residual, rng.standard_normal(residual.shape))


def other_tokens(residual: Vectors, rng: np.random.Generator) -> Vectors:
    """An error of each residual's length along the residual of another token.

    The other token is drawn uniformly among those whose residual has a direction, never the
    token itself.

    Raises:
        GeometryError: residuals that are not finite, or a single token with a direction.
    """
    residual = _check(residual)
    directed = np.flatnonzero(residual.any(axis=1))
    found = np.zeros_like(residual)
    if directed.size == 0:
        return found
    if directed.size == 1:
        raise GeometryError(
            f"1 of {len(residual)} residuals is not zero: there is no other token's to take"
        )
    places = rng.integers(0, directed.size - 1, size=directed.size)
    places += places >= np.arange(directed.size)
    found[directed] = _as_long_as(residual[directed], residual[directed[places]])
    return found


def along_tokenwise(residual: Vectors, tokenwise_update: Vectors) -> Vectors:
    """An error of each residual's length along the tokenwise update ``T(h) - h``.

    The first document's own contrast: an error in the ordinary part of the update.

    Raises:
        GeometryError: values that are not finite, shapes that differ, or tokens with a residual
            whose tokenwise update is zero and has no direction, with their number.
    """
    residual = _check(residual)
    if residual.shape != tokenwise_update.shape:
        raise GeometryError(
            f"residuals of shape {residual.shape} against tokenwise updates of shape "
            f"{tokenwise_update.shape}"
        )
    if not np.isfinite(tokenwise_update).all():
        raise GeometryError("the tokenwise updates hold values that are not finite")
    directed = residual.any(axis=1)
    aimless = directed & ~tokenwise_update.any(axis=1)
    if aimless.any():
        raise GeometryError(
            f"{np.count_nonzero(aimless)} of {len(residual)} tokenwise updates are zero vectors: "
            "no error lies along them"
        )
    found = np.zeros_like(residual)
    found[directed] = _as_long_as(residual[directed], tokenwise_update[directed].astype(np.float64))
    return found
