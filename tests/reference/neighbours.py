"""Nearest neighbours by brute force."""

import numpy as np


def nearest(
    query: np.ndarray,
    bank: np.ndarray,
    count: int,
    metric: str = "euclidean",
    query_groups: np.ndarray | None = None,
    bank_groups: np.ndarray | None = None,
) -> np.ndarray:
    """Indices by distance, then by index; bank tokens of the query's own group left out."""
    found = []
    for i, h in enumerate(query):
        ordered = []
        for j, x in enumerate(bank):
            if query_groups is not None and query_groups[i] == bank_groups[j]:
                continue
            if metric == "cosine":
                distance = 1.0 - h @ x / np.sqrt((h @ h) * (x @ x))
            else:
                distance = np.sqrt(np.sum((h - x) ** 2))
            ordered.append((float(distance), j))
        found.append([j for _, j in sorted(ordered)[:count]])
    return np.array(found)
