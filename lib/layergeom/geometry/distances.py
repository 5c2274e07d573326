"""Cosine distances between all pairs of tokens."""

import numpy as np
from jaxtyping import Float, Int

from layergeom.geometry.errors import GeometryError
from layergeom.geometry.ranks import STEPS

#: Tokens whose cosines with all others are held at once: half a megabyte for 600 tokens.
_ROWS = 100


def _unit_columns(columns: Float[np.ndarray, "width tokens"]) -> Float[np.ndarray, "width tokens"]:
    norms = np.sqrt(np.einsum("ij,ij->j", columns, columns))
    zero = int(np.count_nonzero(norms == 0.0))
    if zero:
        raise GeometryError(
            f"{zero} of {len(norms)} tokens are zero vectors here: their cosine is undefined"
        )
    return columns / norms


def cosine_distances(
    vectors: Float[np.ndarray, "tokens width"],
) -> Float[np.ndarray, " pairs"]:
    """Condensed cosine distances ``1 - x.y / |x||y|`` of all pairs, in [0, 2].

    The order is that of ``scipy.spatial.distance.pdist``.

    Raises:
        GeometryError: a zero vector, for which the cosine is undefined, with their number.
    """
    unit = _unit_columns(vectors.T)
    pairs = np.triu_indices(len(vectors), k=1)
    return np.clip(1.0 - (unit.T @ unit)[pairs], 0.0, 2.0)


def snapped_cosine_distances(
    columns: Float[np.ndarray, "width tokens"],
) -> Int[np.ndarray, " pairs"]:
    """Cosine distances of the columns of a matrix in whole steps, ready to be ranked.

    ``snap(cosine_distances(columns.T))`` with the scaling folded into the vectors, and a few
    tokens' cosines at a time, each read once while it is in the cache: the matrix of all of
    them is never there.

    Raises:
        GeometryError: a zero vector, with their number.
    """
    from layergeom.geometry.compiled import snap_rows

    unit = _unit_columns(columns)
    unit *= np.sqrt(STEPS)
    tokens = unit.shape[1]
    steps = np.empty(tokens * (tokens - 1) // 2, np.int32)
    pair = 0
    for start in range(0, tokens, _ROWS):
        scaled = unit[:, start : start + _ROWS].T @ unit[:, start:]
        pair = snap_rows(scaled, STEPS, steps, pair)
    return steps
