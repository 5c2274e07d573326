"""Interpolated absolute discounting, one token at a time from dictionaries."""

import itertools
import math
from collections import Counter


def loss(stream: list[int], vocabulary: int, discount: float, text: list[int]) -> float:
    """Mean cross-entropy in nats of each token of a text but the first, given the one before."""
    single = Counter(stream)
    pairs = Counter(itertools.pairwise(stream))
    total = 0.0
    for before, after in itertools.pairwise(text):
        own = (single[after] + 1) / (len(stream) + vocabulary)
        followers = [count for (first, _), count in pairs.items() if first == before]
        if not followers:
            probability = own
        else:
            freed = discount * len(followers)
            kept = max(pairs[before, after] - discount, 0.0)
            probability = (kept + freed * own) / sum(followers)
        total -= math.log(probability)
    return total / (len(text) - 1)
