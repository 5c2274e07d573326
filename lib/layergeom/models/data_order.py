"""Which tokens a training step sees: a matter of seed and step alone, so that it can be resumed."""

import numpy as np
from jaxtyping import Int

from layergeom.errors import UsageError


def training_batch(
    stream: Int[np.ndarray, " tokens"], seed: int, step: int, batch: int, context: int
) -> Int[np.ndarray, "batch longer"]:
    """The sequences of one step, each with the token that follows it.

    A pass over the stream cuts it into sequences from a random place on and takes them in random
    order; the next pass cuts it elsewhere.

    Raises:
        UsageError: the stream is shorter than a pass needs.
    """
    passes = (len(stream) - context) // context
    if passes < 1:
        raise UsageError(
            f"{len(stream)} tokens are too few to train on in sequences of {context}: give at "
            f"least {2 * context}."
        )
    place = step * batch + np.arange(batch)
    starts = np.empty(batch, np.int64)
    for turn in np.unique(place // passes):
        rng = np.random.default_rng([seed, int(turn)])
        cuts = int(rng.integers(context)) + context * rng.permutation(passes)
        here = place // passes == turn
        starts[here] = cuts[place[here] % passes]
    return _windows(stream, starts, context)


def evenly_spaced(
    stream: Int[np.ndarray, " tokens"], sequences: int, context: int
) -> Int[np.ndarray, "sequences longer"]:
    """Sequences at even distances along a stream, each with the token that follows it.

    Raises:
        UsageError: the stream is shorter than one sequence.
    """
    last = len(stream) - context - 1
    if last < 0:
        raise UsageError(
            f"{len(stream)} held-out tokens are too few for a sequence of {context} and the "
            "token after it."
        )
    return _windows(stream, np.linspace(0, last, sequences).astype(np.int64), context)


def _windows(
    stream: Int[np.ndarray, " tokens"], starts: Int[np.ndarray, " sequences"], context: int
) -> Int[np.ndarray, "sequences longer"]:
    return stream[starts[:, None] + np.arange(context + 1)]
