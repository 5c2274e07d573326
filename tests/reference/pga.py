"""Subspace PGA by full decompositions and SciPy's pairwise distances and rank correlation."""

import numpy as np
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr


def readout_basis(unembedding: np.ndarray, k: int) -> np.ndarray:
    """Top-k right singular vectors, by a full singular value decomposition."""
    return np.linalg.svd(unembedding, full_matrices=False)[2][:k].T


def remove_components(states: np.ndarray, count: int) -> np.ndarray:
    """Subtract the mean, then the top principal components one by one."""
    centred = states - states.mean(axis=0)
    for direction in np.linalg.svd(centred, full_matrices=False)[2][:count]:
        centred = centred - np.outer(centred @ direction, direction)
    return centred


def subspace_rho(states: np.ndarray, basis: np.ndarray, count: int) -> float:
    """Spearman between cosine distances in full space and in a subspace, after CCR-count."""
    removed = remove_components(states, count)
    full = pdist(removed, "cosine")
    inside = pdist(removed @ basis, "cosine")
    return float(spearmanr(full, inside).statistic)


def subspace_pga(
    states: np.ndarray, readout: np.ndarray, subspaces: np.ndarray, count: int
) -> tuple[float, np.ndarray]:
    """The correlation of the readout, and that of each random subspace."""
    null = [subspace_rho(states, basis, count) for basis in subspaces]
    return subspace_rho(states, readout, count), np.array(null)


def agreement(
    first: np.ndarray,
    second: np.ndarray,
    first_basis: np.ndarray,
    second_basis: np.ndarray,
    count: int,
) -> float:
    """Spearman between two models' distances, each in its own subspace, after CCR-count."""
    one = pdist(remove_components(first, count) @ first_basis, "cosine")
    other = pdist(remove_components(second, count) @ second_basis, "cosine")
    return float(spearmanr(one, other).statistic)


def grouped_rho(
    states: np.ndarray, basis: np.ndarray, count: int, groups: list[np.ndarray]
) -> list[float]:
    """As ``subspace_rho``, over the pairs within each group, CCR over all tokens."""
    removed = remove_components(states, count)
    return [
        float(spearmanr(pdist(part, "cosine"), pdist(part @ basis, "cosine")).statistic)
        for part in (removed[group] for group in groups)
    ]


def left_out_error(rho: np.ndarray) -> float:
    """The jackknife's standard error of z, from (groups, 1 + subspaces), the readout first."""
    z = []
    for group in range(len(rho)):
        first, *null = np.delete(rho, group, axis=0).mean(axis=0)
        z.append((first - np.mean(null)) / np.std(null, ddof=1))
    return float(np.sqrt((len(z) - 1) / len(z) * np.sum((np.array(z) - np.mean(z)) ** 2)))
