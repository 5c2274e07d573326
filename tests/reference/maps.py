"""Tokenwise maps by one dense solve per token.

``h`` is one query state; the rows of ``x`` and ``y`` are its neighbours below and above.
"""

import numpy as np

RIDGE = 1e-3


def mean_square(x: np.ndarray) -> float:
    """Mean diagonal of the Gram matrix of the rows."""
    return float(np.mean([row @ row for row in x]))


def diagonal(h: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Non-negative ridge regression of each coordinate on itself."""
    scale = np.zeros(len(h))
    for j in range(len(h)):
        squares = x[:, j] @ x[:, j]
        if squares > 0.0:
            scale[j] = max(0.0, x[:, j] @ y[:, j] / (squares + RIDGE * squares))
    return np.diag(scale) @ h


def polar(matrix: np.ndarray) -> np.ndarray:
    """Orthogonal polar factor of a square matrix of full rank."""
    u, _, vt = np.linalg.svd(matrix)
    return u @ vt


def procrustes(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The orthogonal minimiser of ``sum |y_i - R x_i|^2`` that is nearest the identity."""
    moment = y.T @ x
    u, _, vt = np.linalg.svd(moment)
    rank = int(np.linalg.matrix_rank(moment))
    rotation = u[:, :rank] @ vt[:rank]
    if rank < len(moment):
        u2, v2 = u[:, rank:], vt[rank:].T
        rotation = rotation + u2 @ polar(u2.T @ v2) @ v2.T
    return rotation


def procrustes_with_ridge(x: np.ndarray, y: np.ndarray, eps: float) -> np.ndarray:
    """Polar factor of ``sum y_i x_i^T + eps I``: its limit for small eps is ``procrustes``."""
    return polar(y.T @ x + eps * np.eye(x.shape[1]))


def orthogonal(h: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The orthogonal Procrustes map, applied."""
    return procrustes(x, y) @ h


def ridge(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Ridge solution ``B`` of ``y = x B`` in the primal."""
    penalty = RIDGE * mean_square(x)
    return np.linalg.solve(x.T @ x + penalty * np.eye(x.shape[1]), x.T @ y)


def low_rank(h: np.ndarray, x: np.ndarray, y: np.ndarray, rank: int) -> np.ndarray:
    """Ridge, then projection on the top right singular vectors of the fitted values."""
    solution = ridge(x, y)
    top = np.linalg.svd(x @ solution, full_matrices=False)[2][:rank]
    return h @ solution @ top.T @ top


def identity_low_rank(h: np.ndarray, x: np.ndarray, y: np.ndarray, rank: int) -> np.ndarray:
    """The identity and a low-rank map of the update."""
    return h + low_rank(h, x, y - x, rank)


def mean_update(h: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The state and the mean of the neighbours' updates."""
    return h + np.mean([above - below for below, above in zip(x, y, strict=True)], axis=0)


def global_linear(h: np.ndarray, bank_below: np.ndarray, bank_above: np.ndarray) -> np.ndarray:
    """One ridge map for all tokens."""
    return h @ ridge(bank_below, bank_above)
