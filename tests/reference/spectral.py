"""Spectral metrics from eigenvalues and sums over tokens, formula by formula."""

import math

import numpy as np


def singular_values(matrix: np.ndarray) -> list[float]:
    """All singular values, falling, by a full decomposition with its vectors."""
    return [float(value) for value in np.linalg.svd(matrix)[1]]


def variances(states: np.ndarray) -> list[float]:
    """Eigenvalues of the sample covariance, falling; rounding below zero is zero."""
    values = np.linalg.eigvalsh(np.atleast_2d(np.cov(states, rowvar=False)))
    return [max(0.0, float(value)) for value in values[::-1]]


def rankme(states: np.ndarray) -> float:
    """Exponential of the entropy of the normalised singular values."""
    values = singular_values(states)
    entropy = 0.0
    for value in values:
        p = value / sum(values) + 1e-7
        entropy -= p * math.log(p)
    return math.exp(entropy)


def alpha_req(states: np.ndarray, rank: int) -> float:
    """Minus the slope of the line through (log rank, log eigenvalue), ranks 10 to 100."""
    points = [
        (math.log(i), math.log(value))
        for i, value in enumerate(variances(states), start=1)
        if 10 <= i <= min(100, rank)
    ]
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    across = sum((x - mean_x) * (y - mean_y) for x, y in points)
    return -across / sum((x - mean_x) ** 2 for x, _ in points)


def isoscore(states: np.ndarray) -> float:
    """IsoScore step by step: covariance in principal axes, defect, dimensions used, score."""
    n = states.shape[1]
    centred = states - states.mean(axis=0)
    axes = np.linalg.svd(centred)[2]
    diagonal = np.diag(np.cov(centred @ axes.T, rowvar=False))
    normalised = math.sqrt(n) * diagonal / math.sqrt(sum(value**2 for value in diagonal))
    distance = math.sqrt(sum((value - 1.0) ** 2 for value in normalised))
    defect = distance / math.sqrt(2 * (n - math.sqrt(n)))
    dimensions = (n - defect**2 * (n - math.sqrt(n))) ** 2 / n
    return (dimensions - 1) / (n - 1)


def partition_isotropy(states: np.ndarray) -> float:
    """Smallest over largest partition function, by plain exponentials."""
    found = [
        sum(math.exp(sign * float(direction @ state)) for state in states)
        for direction in np.linalg.svd(states)[2]
        for sign in (1.0, -1.0)
    ]
    return min(found) / max(found)


def mean_cosine(states: np.ndarray) -> float:
    """Mean cosine, pair by pair."""
    found = [
        float(x @ y) / math.sqrt(float(x @ x) * float(y @ y))
        for i, x in enumerate(states)
        for y in states[:i]
    ]
    return sum(found) / len(found)


def participation_ratio(states: np.ndarray) -> float:
    """Square of the sum over the sum of squares."""
    values = variances(states)
    return sum(values) ** 2 / sum(value**2 for value in values)


def condition_number(states: np.ndarray, rank: int) -> float:
    """First over last singular value that counts, of the centred matrix."""
    values = singular_values(states - states.mean(axis=0))
    return values[0] / values[rank - 1]
