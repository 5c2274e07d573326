"""Documents to sequences of tokens without padding, and the choice of tokens to measure."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from layergeom.corpora.documents import Corpus
from layergeom.errors import UsageError


@dataclass(frozen=True)
class Sequences:
    """Packed sequences of equal length.

    Attributes:
        tokens: token ids.
        documents: index of the document that each sequence comes from.
    """

    tokens: Int[np.ndarray, "sequences length"]
    documents: Int[np.ndarray, " sequences"]

    def __len__(self) -> int:
        """Number of sequences."""
        return len(self.tokens)

    @staticmethod
    def none(length: int) -> "Sequences":
        """No sequence at all."""
        return Sequences(np.empty((0, length), np.int64), np.empty(0, np.int64))


@dataclass(frozen=True)
class Roles:
    """The bank to fit on and the query to evaluate, from different documents."""

    bank: Sequences
    query: Sequences


def _pack(
    corpus: Corpus, encode: Callable[[str], list[int]], length: int, bos: int | None
) -> list[list[list[int]]]:
    """Sequences by document; what does not fill a sequence is dropped."""
    payload = length if bos is None else length - 1
    start = [] if bos is None else [bos]
    packed = []
    for document in corpus.documents:
        ids = encode(document.text)
        full = len(ids) // payload
        packed.append([start + ids[i * payload : (i + 1) * payload] for i in range(full)])
    return packed


def _deal(
    packed: list[list[list[int]]], documents: list[int], count: int, rng: np.random.Generator
) -> Sequences:
    """Take sequences from the documents in turn, so that they come from as many as possible."""
    piles = {i: [packed[i][j] for j in rng.permutation(len(packed[i]))] for i in documents}
    tokens: list[list[int]] = []
    sources: list[int] = []
    while len(tokens) < count:
        for i in documents:
            if piles[i] and len(tokens) < count:
                tokens.append(piles[i].pop())
                sources.append(i)
    return Sequences(np.array(tokens, dtype=np.int64), np.array(sources, dtype=np.int64))


def bank_and_query(
    corpus: Corpus,
    encode: Callable[[str], list[int]],
    length: int,
    bank: int,
    query: int,
    bos: int | None,
    rng: np.random.Generator,
) -> Roles:
    """Bank and query sequences of ``length`` tokens from different documents of a corpus.

    Args:
        corpus: where the text comes from.
        encode: text to token ids, without special tokens.
        length: tokens a sequence, the BOS included.
        bank: number of bank sequences.
        query: number of query sequences. With 0 the text is not split, and ``bank`` sequences
            are taken if there are so many, or else all.
        bos: id of the BOS token that starts each sequence, or None.
        rng: decides which documents and sequences.

    Raises:
        UsageError: the corpus is too short, with both numbers.
    """
    packed = _pack(corpus, encode, length, bos)
    order = [int(i) for i in rng.permutation(len(packed)) if packed[i]]
    available = sum(len(packed[i]) for i in order)
    if query == 0 and available > 0:
        return Roles(
            bank=_deal(packed, order, min(bank, available), rng), query=Sequences.none(length)
        )
    if available < bank + query:
        raise UsageError(
            f"the text {corpus.name!r} is too short: it gives {available} sequences of {length} "
            f"tokens, and {bank + query} are needed. Give a longer text, or ask for fewer tokens."
        )
    # Documents go to whichever role is further from what it needs, so that both get their
    # share whatever the documents' lengths.
    chosen: dict[str, list[int]] = {"bank": [], "query": []}
    held = {"bank": 0, "query": 0}
    need = {"bank": bank, "query": query}
    for i in order:
        role = min(need, key=lambda r: (held[r] / need[r], r))
        chosen[role].append(i)
        held[role] += len(packed[i])
    short = [role for role in need if held[role] < need[role]]
    if short:
        raise UsageError(
            f"the text {corpus.name!r} cannot be split: its {len(order)} documents leave "
            f"{held[short[0]]} sequences for the {short[0]}, and {need[short[0]]} are needed. "
            "Give a longer text, or ask for fewer tokens."
        )
    return Roles(
        bank=_deal(packed, chosen["bank"], bank, rng),
        query=_deal(packed, chosen["query"], query, rng),
    )


def spread_tokens(
    sequences: int,
    length: int,
    skip_positions: int,
    count: int,
    samples: int,
    rng: np.random.Generator,
) -> tuple[Int[np.ndarray, "samples count"], Int[np.ndarray, "samples count"]]:
    """Disjoint samples of tokens without replacement, each spread evenly over the sequences.

    Returns:
        Sequence index and position of each sampled token.

    Raises:
        UsageError: fewer tokens than asked for, with both numbers.
    """
    positions = length - skip_positions
    available = sequences * positions
    if samples * count > available:
        raise UsageError(
            f"samples of {count} tokens, {samples} of them, need {samples * count} tokens, and the "
            f"{sequences} sequences have {available} after the first {skip_positions} positions. "
            "Ask for fewer, give a longer text, or take the sizes 'smoke' for a tiny model."
        )
    # The sequences are visited in one random order, over and over, each time at another of their
    # positions: any run of visits sees every sequence equally often, give or take one.
    visits = np.arange(samples * count)
    which = rng.permutation(sequences)[visits % sequences]
    order = np.argsort(rng.random((sequences, positions)), axis=1) + skip_positions
    where = order[which, visits // sequences]
    return which.reshape(samples, count), where.reshape(samples, count)
