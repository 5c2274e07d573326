"""Exact nearest neighbours of query tokens among bank tokens."""

from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from layergeom.geometry.errors import GeometryError
from layergeom.geometry.threads import map_threads

Metric = Literal["euclidean", "cosine"]

#: The matrix product that finds candidates is off by so many rounding errors at most; whatever
#: it cannot tell from the K-th is kept for the exact re-ranking, equal distances included.
_SLACK = 64 * np.finfo(np.float64).eps
_BLOCK = 128


def nearest_neighbours(
    query: Float[np.ndarray, "tokens width"],
    bank: Float[np.ndarray, "bank width"],
    count: int,
    metric: Metric = "euclidean",
    query_groups: Int[np.ndarray, " tokens"] | None = None,
    bank_groups: Int[np.ndarray, " bank"] | None = None,
) -> Int[np.ndarray, "tokens count"]:
    """Indices of the ``count`` nearest bank tokens of each query token, nearest first.

    Distances are exact differences in float64; equal distances are ordered by index. A bank
    token of the same group as the query is left out: pass token ids to exclude the same token,
    or positions in the bank to exclude the query itself.

    Raises:
        GeometryError: fewer eligible bank tokens than neighbours asked for, with both numbers;
            or states that are not finite.
    """
    if (query_groups is None) != (bank_groups is None):
        raise GeometryError("groups are needed for both the query and the bank, or for neither")
    if count < 1:
        raise GeometryError(f"the number of neighbours must be 1 or more, got {count}")
    if count > len(bank):
        raise GeometryError(f"{count} neighbours asked for from a bank of {len(bank)} tokens")
    if not (np.isfinite(query).all() and np.isfinite(bank).all()):
        raise GeometryError("the states hold values that are not finite")
    bank = bank.astype(np.float64)
    query = query.astype(np.float64)
    if metric == "cosine":
        bank, query = _unit(bank), _unit(query)
    squares = np.einsum("ij,ij->i", bank, bank)
    largest = squares.max()

    def block(start: int) -> Int[np.ndarray, "block count"]:
        rows = query[start : start + _BLOCK]
        rough = squares - 2.0 * (rows @ bank.T)
        if query_groups is not None and bank_groups is not None:
            same = query_groups[start : start + _BLOCK, None] == bank_groups[None, :]
            eligible = int((~same).sum(axis=1).min())
            if eligible < count:
                raise GeometryError(
                    f"{count} neighbours asked for, but some token has only {eligible} eligible "
                    f"ones in a bank of {len(bank)} tokens"
                )
            rough[same] = np.inf
        kth = np.partition(rough, count - 1, axis=1)[:, count - 1]
        lengths = np.einsum("ij,ij->i", rows, rows)
        bound = kth + _SLACK * (largest + lengths)
        chosen = np.empty((len(rows), count), dtype=np.int64)
        for i, row in enumerate(rows):
            candidates = np.flatnonzero(rough[i] <= bound[i])
            exact = np.einsum("kw->k", (bank[candidates] - row) ** 2)
            chosen[i] = candidates[np.argsort(exact, kind="stable")[:count]]
        return chosen

    return np.concatenate(map_threads(block, range(0, len(query), _BLOCK)))


def _unit(vectors: Float[np.ndarray, "tokens width"]) -> Float[np.ndarray, "tokens width"]:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    zero = int(np.count_nonzero(norms == 0.0))
    if zero:
        raise GeometryError(f"{zero} tokens are zero vectors: their cosine is undefined")
    return vectors / norms
