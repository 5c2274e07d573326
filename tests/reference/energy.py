"""Energy shares in the dominant tokenwise subspace, token by token, out of sample."""

import numpy as np


def shares(
    full: np.ndarray,
    tokenwise: np.ndarray,
    residual: np.ndarray,
    sequences: np.ndarray,
    dim: int,
    weights: np.ndarray,
) -> list[float]:
    """Share of the energy of each part inside the subspace fitted on the other half.

    Sequences of even and of odd index are the halves; their shares are averaged. A token counts
    ``weights[sequence]`` times.
    """
    bases = [
        np.linalg.svd(tokenwise[sequences % 2 != half], full_matrices=False)[2][:dim]
        for half in (0, 1)
    ]
    found = []
    for part in (full, tokenwise, residual):
        inside, total = [0.0, 0.0], [0.0, 0.0]
        for vector, sequence in zip(part, sequences, strict=True):
            half = sequence % 2
            projected = bases[half] @ vector
            inside[half] += weights[sequence] * (projected @ projected)
            total[half] += weights[sequence] * (vector @ vector)
        found.append((inside[0] / total[0] + inside[1] / total[1]) / 2)
    return found
