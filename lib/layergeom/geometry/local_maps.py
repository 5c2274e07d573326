"""Tokenwise maps ``h -> T(h)`` fitted at each token on its nearest neighbours.

Source: Updates (arXiv 2604.02459), section 3. Every class takes a batch of query states with
their neighbours ``(x_i, y_i)`` in the layer below and above, and returns the predictions. All
arithmetic is float64; with fewer neighbours than dimensions, no matrix of ``width x width`` is
formed for a token.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from jaxtyping import Float, Int

from layergeom.geometry.errors import GeometryError
from layergeom.geometry.threads import map_threads

#: The ridge, relative to the mean squared length of the neighbours.
RIDGE = 1e-3

Query = Float[np.ndarray, "batch width"]
Neighbours = Float[np.ndarray, "batch count width"]
_BATCH = 32
#: Condition number up to which a Gram matrix loses no digit that matters: its square times the
#: float64 rounding stays below 1e-8.
_WELL_CONDITIONED = 5e3


def diagonal_map(h: Query, x: Neighbours, y: Neighbours) -> Query:
    """Diagonal, positive semi-definite: ``a_j = max(0, sum x_ij y_ij / (sum x_ij^2 + lambda))``.

    The ridge is ``RIDGE`` times the column's own sum of squares; a column of zeros maps to zero.
    """
    squares = np.einsum("bkd,bkd->bd", x, x)
    products = np.einsum("bkd,bkd->bd", x, y)
    safe = np.where(squares > 0.0, squares, 1.0)
    scale = np.where(squares > 0.0, products / (safe * (1.0 + RIDGE)), 0.0)
    return np.maximum(scale, 0.0) * h


def _orthonormal(
    rows: Neighbours,
) -> tuple[
    Float[np.ndarray, "batch r width"],
    Float[np.ndarray, "batch r r"],
    Float[np.ndarray, "batch r count"],
]:
    """An orthonormal basis ``Q = rows^T C`` of a batch's rows, as rows and C, and ``R = Q^T x^T``.

    Cholesky's factor of the Gram matrix gives it in half the time of a QR factorisation, at the
    price of the square of the condition number; where that would cost digits (identical or
    nearly dependent neighbours), the batch is factored by Householder's reflections.
    """
    columns = rows.transpose(0, 2, 1)
    if rows.shape[1] < rows.shape[2]:
        try:
            lower = np.linalg.cholesky(rows @ columns)
            inverse = np.linalg.inv(lower)
            condition = np.linalg.norm(lower, axis=(1, 2)) * np.linalg.norm(inverse, axis=(1, 2))
            if condition.max() < _WELL_CONDITIONED:
                return rows, inverse.transpose(0, 2, 1), lower.transpose(0, 2, 1)
        except np.linalg.LinAlgError:
            pass  # not positive definite: dependent rows
    q, r = np.linalg.qr(columns)
    same = np.broadcast_to(np.eye(q.shape[2]), (len(q), q.shape[2], q.shape[2]))
    return q.transpose(0, 2, 1), same, r


def _mixed(
    mix: Float[np.ndarray, "batch r r"],
    basis: Float[np.ndarray, "batch r rank"],
    vector: Float[np.ndarray, "batch rank"],
) -> Float[np.ndarray, "batch r"]:
    return np.einsum("bkr,br->bk", mix, np.einsum("brs,bs->br", basis, vector))


def orthogonal_map(h: Query, x: Neighbours, y: Neighbours) -> Query:
    """The orthogonal ``R`` that minimises ``sum |y_i - R x_i|^2``, nearest the identity.

    With fewer neighbours than dimensions the minimiser is not unique; this is the limit of the
    polar factor of ``sum y_i x_i^T + eps I`` for ``eps -> 0``. With ``M = U S V^T`` of rank r,
    ``R`` takes ``V`` to ``U`` and turns the complement of ``V`` into that of ``U`` by the direct
    rotation: in each plane of principal vectors ``(a_i, b_i)`` of ``U`` and ``V`` at cosine
    ``c_i`` it is a rotation, and outside the planes it is the identity. That gives

        R h = h + U V^T h - V V^T h + sum_i (a_i + b_i) (c_i b_i^T h - a_i^T h) / (1 + c_i),

    which needs orthonormal bases of the neighbours and two ``r x r`` singular value
    decompositions only. The same formula holds where there are more neighbours than dimensions.
    """
    rows_x, mix_x, rx = _orthonormal(x)
    rows_y, mix_y, ry = _orthonormal(y)
    left, values, right = np.linalg.svd(ry @ rx.transpose(0, 2, 1))
    tolerance = max(x.shape[1:]) * np.finfo(np.float64).eps
    ranks = np.count_nonzero(values > tolerance * values[:, :1], axis=1)
    overlap = mix_y.transpose(0, 2, 1) @ (rows_y @ rows_x.transpose(0, 2, 1)) @ mix_x
    in_x = np.einsum("bkr,bk->br", mix_x, np.einsum("bkd,bd->bk", rows_x, h))
    in_y = np.einsum("bkr,bk->br", mix_y, np.einsum("bkd,bd->bk", rows_y, h))
    predicted = np.empty_like(h)
    # Identical neighbours lower the rank; tokens of one rank share their shapes.
    for rank in np.unique(ranks):
        at = np.flatnonzero(ranks == rank)
        if rank == 0:
            predicted[at] = h[at]
            continue
        a = left[at][:, :, :rank]
        b = right[at][:, :rank, :].transpose(0, 2, 1)
        u = np.einsum("bkr,bk->br", a, in_y[at])
        v = np.einsum("bkr,bk->br", b, in_x[at])
        e, cosines, f = np.linalg.svd(a.transpose(0, 2, 1) @ overlap[at] @ b)
        cosines = np.minimum(cosines, 1.0)
        u_principal = np.einsum("bri,br->bi", e, u)
        v_principal = np.einsum("bir,br->bi", f, v)
        turn = (cosines * v_principal - u_principal) / (1.0 + cosines)
        along_u = v + np.einsum("bri,bi->br", e, turn)
        along_v = np.einsum("bir,bi->br", f, turn) - v
        predicted[at] = (
            h[at]
            + np.einsum("bkd,bk->bd", rows_y[at], _mixed(mix_y[at], a, along_u))
            + np.einsum("bkd,bk->bd", rows_x[at], _mixed(mix_x[at], b, along_v))
        )
    return predicted


def reduced_rank_ridge(h: Query, x: Neighbours, y: Neighbours, rank: int) -> Query:
    """Reduced-rank ridge regression of ``y`` on ``x``, applied to ``h``.

    The ridge solution ``B``; the top ``rank`` right singular vectors of its fitted values
    ``X B`` on the neighbours; ``B h`` projected on them. In the dual, everything is a matrix of
    ``count x count``. The ridge is ``RIDGE`` times the mean squared length of the neighbours.
    """
    count = x.shape[1]
    gram = x @ x.transpose(0, 2, 1)
    ridge = RIDGE * np.einsum("bkk->b", gram) / count
    # Neighbours that are all zero predict zero; any positive ridge then says so.
    regular = gram + np.where(ridge > 0.0, ridge, 1.0)[:, None, None] * np.eye(count)
    weights = np.linalg.solve(regular, np.einsum("bkd,bd->bk", x, h)[:, :, None])[:, :, 0]
    smoother = np.linalg.solve(regular, gram).transpose(0, 2, 1)
    outputs = y @ y.transpose(0, 2, 1)
    fitted = smoother @ outputs @ smoother.transpose(0, 2, 1)
    fitted = 0.5 * (fitted + fitted.transpose(0, 2, 1))
    values, vectors = np.linalg.eigh(fitted)
    rank = min(rank, count)
    values, vectors = values[:, -rank:], vectors[:, :, -rank:]
    # Directions without fitted content hold nothing of the prediction either.
    floor = count * np.finfo(np.float64).eps * values[:, -1:]
    inverse = np.where(values > floor, 1.0 / np.where(values > floor, values, 1.0), 0.0)
    alignment = np.einsum("bkq,bk->bq", vectors, (smoother @ outputs @ weights[:, :, None])[..., 0])
    dual = np.einsum("bkq,bq->bk", vectors, alignment * inverse)
    coefficients = np.einsum("bkl,bk->bl", smoother, dual)
    return np.einsum("bkd,bk->bd", y, coefficients)


def identity_low_rank_map(h: Query, x: Neighbours, y: Neighbours, rank: int) -> Query:
    """``T(h) = h + B h``, ``B`` of low rank, fitted on ``y - x`` (not in the document)."""
    return h + reduced_rank_ridge(h, x, y - x, rank)


def mean_update_map(h: Query, x: Neighbours, y: Neighbours) -> Query:
    """Baseline: ``h`` plus the neighbours' mean update."""
    return h + (y - x).mean(axis=1)


def local_maps(
    rank: int,
) -> Mapping[str, Callable[[Query, Neighbours, Neighbours], Query]]:
    """The classes fitted on neighbours, by name, the rank of the two low-rank ones bound."""
    return MappingProxyType(
        {
            "diagonal": diagonal_map,
            "orthogonal": orthogonal_map,
            "low_rank": lambda h, x, y: reduced_rank_ridge(h, x, y, rank),
            "identity_low_rank": lambda h, x, y: identity_low_rank_map(h, x, y, rank),
            "mean_update": mean_update_map,
        }
    )


def fit_local_maps(
    classes: tuple[str, ...],
    query: Float[np.ndarray, "tokens width"],
    bank_below: Float[np.ndarray, "bank width"],
    bank_above: Float[np.ndarray, "bank width"],
    neighbours: Int[np.ndarray, "tokens count"],
    rank: int = 8,
) -> dict[str, Float[np.ndarray, "tokens width"]]:
    """Predictions ``T(h)`` of several classes for all query tokens.

    Tokens are taken in small batches so that the gathered neighbours stay in cache.

    Raises:
        GeometryError: an unknown class, a rank below 1, or states that are not finite.
    """
    available = local_maps(rank)
    unknown = [name for name in classes if name not in available]
    if unknown:
        raise GeometryError(f"unknown map {unknown[0]!r}; known: {', '.join(available)}")
    if rank < 1:
        raise GeometryError(f"the rank must be 1 or more, got {rank}")
    for name, states in (("query", query), ("bank", bank_below), ("bank", bank_above)):
        if not np.isfinite(states).all():
            raise GeometryError(f"the {name} states hold values that are not finite")

    def batch(start: int) -> list[Query]:
        rows = slice(start, start + _BATCH)
        h = query[rows].astype(np.float64)
        x = bank_below[neighbours[rows]].astype(np.float64)
        y = bank_above[neighbours[rows]].astype(np.float64)
        return [available[name](h, x, y) for name in classes]

    batches = map_threads(batch, range(0, len(query), _BATCH))
    return {name: np.concatenate([b[i] for b in batches]) for i, name in enumerate(classes)}


def global_linear_map(
    query: Float[np.ndarray, "tokens width"],
    bank_below: Float[np.ndarray, "bank width"],
    bank_above: Float[np.ndarray, "bank width"],
) -> Float[np.ndarray, "tokens width"]:
    """Baseline: one ridge map ``y = B x`` for all tokens, fitted on the whole bank.

    The ridge is ``RIDGE`` times the mean squared length of the bank tokens.
    """
    x, y = bank_below.astype(np.float64), bank_above.astype(np.float64)
    gram = x.T @ x
    ridge = RIDGE * float(np.trace(gram)) / len(x)
    solution = np.linalg.solve(gram + (ridge or 1.0) * np.eye(len(gram)), x.T @ y)
    return query.astype(np.float64) @ solution
