"""Tokens of two tokenizations of one text that end at the same character.

Where both tokenizers end a token, both models have read exactly the same characters, and their
states can be compared (Readout, section 5).

A byte-level tokenizer may end a token inside a character of several bytes: every piece of the
character then claims its whole extent, and only the last piece ends where the character does.
Ends count white space, as the tokenizer splits it: `` the`` and ``the`` end together, ``the ``
does not. Tokenizers that report trimmed extents are read untrimmed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int

from layergeom.corpora.documents import Corpus
from layergeom.errors import NotMeasurableError

#: Passages that a sample of tokens is spread over.
PASSAGES = 16
#: Characters that a passage offers for each token it is read to: more than any common tokenizer
#: packs into one, on average.
CHARACTERS = 8


@dataclass(frozen=True)
class Reader:
    """How a model reads text.

    Attributes:
        name: the model's name.
        tokenizer: its transformers tokenizer.
        length: tokens a sequence, the BOS included.
        bos: id of the BOS token that starts each sequence, or None.
    """

    name: str
    tokenizer: Any
    length: int
    bos: int | None

    @property
    def payload(self) -> int:
        """Tokens of text in a sequence."""
        return self.length if self.bos is None else self.length - 1


@dataclass(frozen=True)
class MatchedTokens:
    """Passages as two models read them, and disjoint samples of matched tokens.

    Attributes:
        first_tokens: token ids of each passage for the first model, BOS included.
        second_tokens: token ids for the second model.
        passages: passage of each matched token; no passage serves two samples.
        first_positions: its position in the first model's sequence.
        second_positions: its position in the second model's.
        common: common ends in each passage, of which the samples are drawn.
    """

    first_tokens: Int[np.ndarray, "passages first_length"]
    second_tokens: Int[np.ndarray, "passages second_length"]
    passages: Int[np.ndarray, "samples count"]
    first_positions: Int[np.ndarray, "samples count"]
    second_positions: Int[np.ndarray, "samples count"]
    common: Int[np.ndarray, " passages"]


def untrimmed(reader: Reader) -> Any:
    """A copy of a model's tokenizer that adds and cuts nothing and reports whole extents.

    Raises:
        NotMeasurableError: the tokenizer does not say where its tokens end.
    """
    from tokenizers import Tokenizer, processors

    if not getattr(reader.tokenizer, "is_fast", False):
        raise NotMeasurableError(
            f"the tokenizer of {reader.name} does not say where in the text its tokens end, so "
            "they cannot be matched with another's."
        )
    plain = Tokenizer.from_str(reader.tokenizer.backend_tokenizer.to_str())
    plain.post_processor = processors.ByteLevel(trim_offsets=False)
    plain.no_truncation()
    plain.no_padding()
    return plain


def token_ends(
    tokenizer: Any, text: str
) -> tuple[Int[np.ndarray, " tokens"], Int[np.ndarray, " tokens"]]:
    """Token ids of a text, and the number of characters that each token ends after.

    Args:
        tokenizer: from ``untrimmed``.
        text: any text.

    Returns:
        Ids and ends; the end is -1 where a token ends inside a character.
    """
    encoding = tokenizer.encode(text, add_special_tokens=False)
    extents = np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2)
    ends = extents[:, 1].copy()
    ends[:-1][extents[1:, 0] < ends[:-1]] = -1
    return np.array(encoding.ids, dtype=np.int64), ends


def common_ends(
    first: Int[np.ndarray, " tokens"], second: Int[np.ndarray, " tokens"]
) -> tuple[Int[np.ndarray, " common"], Int[np.ndarray, " common"]]:
    """Indices of the tokens of two tokenizations that end at the same character.

    Args:
        first: ends from ``token_ends``.
        second: ends of the same text for the other tokenizer.

    Returns:
        Indices into the first and into the second, in order of the text.
    """
    # A token without characters shares its predecessor's end, and is the later state there.
    by_end = [{int(end): i for i, end in enumerate(ends) if end > 0} for ends in (first, second)]
    shared = sorted(by_end[0].keys() & by_end[1].keys())
    one, other = (np.array([ends[end] for end in shared], dtype=np.int64) for ends in by_end)
    return one, other


def match_tokens(
    corpus: Corpus,
    first: Reader,
    second: Reader,
    skip_positions: int,
    count: int,
    samples: int,
    rng: np.random.Generator,
) -> MatchedTokens:
    """Disjoint samples of matched tokens, each spread evenly over passages of its own.

    A passage begins at a word of a document and is read by each model as far as its sequence
    goes. Whatever one model reads beyond the other's end has no match, and cannot change the
    states before it.

    Args:
        corpus: where the passages come from, from its documents in turn.
        first: how the first model reads.
        second: how the second model reads.
        skip_positions: first positions of either sequence that are never sampled.
        count: tokens a sample.
        samples: number of samples.
        rng: decides passages and tokens.

    Raises:
        NotMeasurableError: no passage is long enough, the tokenizers never end at the same
            character, or too few passages have enough common ends, with the numbers.
    """
    spread = min(PASSAGES, count)
    share, rest = divmod(count, spread)
    wanted = [share + (i < rest) for _ in range(samples) for i in range(spread)]
    kept: list[_Passage] = []
    places: list[Int[np.ndarray, " chosen"]] = []
    read, most = 0, 0
    for passage in _read_by_both(corpus, first, second, skip_positions, rng):
        if len(kept) == len(wanted):
            break
        read += 1
        found, need = len(passage.first_positions), wanted[len(kept)]
        most = max(most, found)
        if found >= need:
            places.append(np.sort(rng.choice(found, need, replace=False)))
            kept.append(passage)
    if len(kept) < len(wanted):
        _refuse(corpus, first, second, read, most, len(kept), wanted)
    shape = (samples, count)
    chosen = list(zip(kept, places, strict=True))
    return MatchedTokens(
        first_tokens=np.stack([passage.first_tokens for passage in kept]),
        second_tokens=np.stack([passage.second_tokens for passage in kept]),
        passages=np.repeat(np.arange(len(kept)), wanted).reshape(shape),
        first_positions=np.concatenate([p.first_positions[at] for p, at in chosen]).reshape(shape),
        second_positions=np.concatenate([p.second_positions[at] for p, at in chosen]).reshape(
            shape
        ),
        common=np.array([len(passage.first_positions) for passage in kept]),
    )


@dataclass(frozen=True)
class _Passage:
    """One passage as both models read it, and where their tokens end together."""

    first_tokens: Int[np.ndarray, " first_length"]
    second_tokens: Int[np.ndarray, " second_length"]
    first_positions: Int[np.ndarray, " common"]
    second_positions: Int[np.ndarray, " common"]


def _read_by_both(
    corpus: Corpus, first: Reader, second: Reader, skip: int, rng: np.random.Generator
) -> Iterator[_Passage]:
    """The passages that are long enough for both."""
    readers = (first, second)
    tokenizers = [untrimmed(reader) for reader in readers]
    for text in _passages(corpus, CHARACTERS * max(first.length, second.length), rng):
        ids, ends = zip(*(token_ends(tokenizer, text) for tokenizer in tokenizers), strict=True)
        if any(len(i) < r.payload for i, r in zip(ids, readers, strict=True)):
            continue
        indices = common_ends(*(e[: r.payload] for e, r in zip(ends, readers, strict=True)))
        positions = [i + r.length - r.payload for i, r in zip(indices, readers, strict=True)]
        measured = np.minimum(*positions) >= skip
        yield _Passage(
            *(_sequence(i, r) for i, r in zip(ids, readers, strict=True)),
            *(places[measured] for places in positions),
        )


def _sequence(ids: Int[np.ndarray, " tokens"], reader: Reader) -> Int[np.ndarray, " length"]:
    start = [] if reader.bos is None else [reader.bos]
    return np.concatenate([np.array(start, dtype=np.int64), ids[: reader.payload]])


def _passages(corpus: Corpus, characters: int, rng: np.random.Generator) -> Iterator[str]:
    """Passages of a corpus in random order, from its documents in turn."""
    piles = []
    for i in rng.permutation(len(corpus.documents)):
        pieces = _pieces(corpus.documents[i].text, characters)
        piles.append([pieces[j] for j in rng.permutation(len(pieces))])
    while any(piles):
        for pile in piles:
            if pile:
                yield pile.pop()


def _pieces(text: str, characters: int) -> list[str]:
    """A text in pieces of so many characters, each cut to begin with a word."""
    pieces = [text[start : start + characters] for start in range(0, len(text), characters)]
    return pieces[:1] + [piece.partition(" ")[2] for piece in pieces[1:]]


def _refuse(
    corpus: Corpus,
    first: Reader,
    second: Reader,
    read: int,
    most: int,
    kept: int,
    wanted: list[int],
) -> None:
    pair = f"{first.name} and {second.name}"
    if read == 0:
        reason = (
            f"the text {corpus.name!r} has no passage that fills the {first.payload} tokens of "
            f"{first.name} and the {second.payload} of {second.name}. Give a longer text."
        )
    elif most == 0:
        reason = (
            f"the tokenizers of {pair} have no common end position in {read} passages: they "
            "never end a token at the same character, so no states of theirs can be compared."
        )
    else:
        reason = (
            f"{pair} have matched tokens in too few passages of {corpus.name!r}: {kept} of "
            f"{read} have the {max(wanted)} common end positions needed (the most is {most}), "
            f"and {len(wanted)} passages are needed. Give a longer text, or ask for fewer tokens."
        )
    raise NotMeasurableError(reason)
