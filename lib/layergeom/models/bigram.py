"""The bar that a model trained here must clear: a smoothed bigram model of the same tokens.

Interpolated absolute discounting (Ney, Essen & Kneser 1994): from each pair that was seen, a
discount ``D`` is taken and given to the following token's own frequency. ``D`` is chosen on a
part of the training tokens that the other part was not counted on.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

DISCOUNTS = tuple(i / 20 for i in range(1, 20))
#: The last of so many parts of the training tokens chooses the discount.
_PARTS = 8


@dataclass(frozen=True)
class BigramModel:
    """Counts of a stream of tokens.

    Attributes:
        pairs: how often each token (column) followed each other (row).
        frequency: each token's own probability, smoothed by one count.
        discount: what is taken from the count of each pair that was seen, D.
    """

    pairs: Float[np.ndarray, "vocabulary vocabulary"]
    frequency: Float[np.ndarray, " vocabulary"]
    discount: float

    def loss(self, before: Int[np.ndarray, "*shape"], after: Int[np.ndarray, "*shape"]) -> float:
        """Mean cross-entropy of ``after`` given ``before``, nats a token."""
        seen = self.pairs.sum(axis=1)[before]
        kinds = np.count_nonzero(self.pairs, axis=1)[before]
        kept = np.maximum(self.pairs[before, after] - self.discount, 0.0)
        freed = np.where(seen > 0, self.discount * kinds, 1.0)
        probability = (kept + freed * self.frequency[after]) / np.maximum(seen, 1.0)
        return float(-np.log(probability).mean())


def fit_bigram(stream: Int[np.ndarray, " tokens"], vocabulary: int) -> BigramModel:
    """Count a stream of tokens and choose the discount on its last eighth."""
    cut = len(stream) - len(stream) // _PARTS
    most, rest = _count(stream[:cut], vocabulary), stream[cut:]
    candidates = [replace(most, discount=discount) for discount in DISCOUNTS]
    best = min(candidates, key=lambda model: model.loss(rest[:-1], rest[1:]))
    return replace(_count(stream, vocabulary), discount=best.discount)


def _count(stream: Int[np.ndarray, " tokens"], vocabulary: int) -> BigramModel:
    """The counts of a stream, with a discount that is still to be chosen."""
    places = stream[:-1] * vocabulary + stream[1:]
    pairs = np.bincount(places, minlength=vocabulary**2).reshape(vocabulary, vocabulary)
    counts = np.bincount(stream, minlength=vocabulary) + 1.0
    return BigramModel(pairs.astype(np.float64), counts / counts.sum(), DISCOUNTS[0])
