"""How many pairs of tokens fit into memory at once, and what is ranked where not all do."""

import numpy as np
from jaxtyping import Int

from layergeom.geometry.errors import GeometryError
from layergeom.geometry.threads import thread_count

GIB = 1 << 30

#: Memory that rank statistics may take unless told otherwise, bytes.
DEFAULT_MEMORY = 8 * GIB

#: Bytes a pair: the reference's ranks at one level, and what ranking one vector takes meanwhile
#: (its steps, two arrays of keys and their payload, the ranks).
_RANKS, _RANKING = 4, 32
#: Copies of the states and of their projections, float64, that are there at once.
_COPIES = 6
#: Twice a rank is held in 32 bits.
_MOST_PAIRS = 1 << 30
#: Fewest groups of tokens whose spread is an error.
_FEWEST_GROUPS = 5


def ranking_threads(tokens: int, width: int, levels: int, memory: int) -> int:
    """Threads that may each rank the distances of all pairs at once; 0 where one takes too much.

    Args:
        tokens: number of tokens.
        width: width of the states.
        levels: number of reference rankings, held all the time.
        memory: bytes in all.
    """
    pairs = tokens * (tokens - 1) // 2
    free = memory - 8 * _COPIES * tokens * width - _RANKS * pairs * levels
    if pairs > _MOST_PAIRS:
        return 0
    return max(0, min(thread_count(), free // (_RANKING * pairs)))


def group_count(tokens: int, width: int, levels: int, memory: int) -> int:
    """1 where all pairs of the tokens fit; else the fewest equal groups whose own pairs do.

    Raises:
        GeometryError: the memory does not even hold the states.
    """
    if ranking_threads(tokens, width, levels, memory):
        return 1
    if 8 * _COPIES * tokens * width <= memory:
        for count in range(_FEWEST_GROUPS, tokens // 3 + 1):
            if ranking_threads(-(-tokens // count), width, levels, memory):
                return count
    raise GeometryError(
        f"{memory / GIB:.3g} GiB do not hold {tokens:,} tokens of width {width} and the "
        "distances of some of their pairs: allow more memory or take fewer tokens"
    )


def token_groups(tokens: int, count: int, seed: int) -> list[Int[np.ndarray, " group"]]:
    """Random groups of the tokens, equal to a token, each in order; one group is all of them.

    All pairs within the groups are a sample of all pairs, and every token has a part in it.
    """
    if count == 1:
        return [np.arange(tokens)]
    shuffled = np.random.default_rng(seed).permutation(tokens)
    return [np.sort(group) for group in np.array_split(shuffled, count)]
