"""Kullback-Leibler divergence between softmax distributions, in float64."""

import numpy as np


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities of one token."""
    weights = np.exp(logits.astype(np.float64) - logits.max())
    return weights / weights.sum()


def divergence(logits: np.ndarray, other: np.ndarray) -> float:
    """KL(p || q) in nats, ``p`` from ``logits`` and ``q`` from ``other``."""
    p, q = softmax(logits), softmax(other)
    return float(np.sum(p * (np.log(p) - np.log(q))))
