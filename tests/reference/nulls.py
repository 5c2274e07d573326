"""Subspaces tilted along the spectrum by plain powers, QR and halving."""

import numpy as np


def principal_part(centred: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues above rounding and their directions, falling."""
    values, vectors = np.linalg.eigh(centred.T @ centred)
    kept = values > max(centred.shape) * np.finfo(float).eps * values.max()
    return values[kept][::-1], vectors[:, kept][:, ::-1]


def tilted(centred: np.ndarray, exponent: float, gaussian: np.ndarray) -> np.ndarray:
    """``qr(P diag(lambda^a) G)`` for one Gaussian matrix."""
    values, directions = principal_part(centred)
    scaled = np.diag((values / values[0]) ** exponent) @ gaussian
    return np.linalg.qr(directions @ scaled).Q


def captured(centred: np.ndarray, basis: np.ndarray) -> float:
    """Share of the variance inside a subspace."""
    return float(np.sum((centred @ basis) ** 2) / np.sum(centred**2))


def matched(centred: np.ndarray, readout: np.ndarray, gaussians: np.ndarray) -> np.ndarray:
    """The subspaces of the exponent at which their mean captured variance is the readout's."""
    target = captured(centred, readout)
    low, high = -8.0, 8.0
    for _ in range(60):
        middle = (low + high) / 2
        mean = np.mean([captured(centred, tilted(centred, middle, g)) for g in gaussians])
        low, high = (middle, high) if mean < target else (low, middle)
    return np.stack([tilted(centred, low, g) for g in gaussians])
