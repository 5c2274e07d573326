"""Matched tokens have read exactly the same characters, whatever the tokenizers do in between."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from layergeom.corpora.documents import Corpus, Document, make_corpus
from layergeom.corpora.matching import (
    PASSAGES,
    MatchedTokens,
    Reader,
    common_ends,
    match_tokens,
    token_ends,
    untrimmed,
)
from layergeom.errors import NotMeasurableError
from properties import deterministic
from reference import matching as reference

BOS = 0
WORDS = ["the", "café", "état", "naïve", "日本語", "🙂🙂", "tokens", "of", "a", "layer", "Ωμέγα"]


def words(count: int, seed: int) -> str:
    return " ".join(np.random.default_rng(seed).choice(WORDS, count))


def byte_level(vocabulary: int, text: str, trim: bool = False) -> Any:
    """A byte-level BPE tokenizer trained on a text, as transformers wraps it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    if trim:
        tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=["<s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([text], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>")


#: One that splits nearly every byte, and one that knows the words.
FINE = byte_level(262, words(60, 1))
COARSE = byte_level(420, words(400, 2), trim=True)
BOTH = (untrimmed(Reader("fine", FINE, 24, None)), untrimmed(Reader("coarse", COARSE, 24, None)))


def corpus(documents: int = 12, count: int = 260) -> Corpus:
    return make_corpus("words", [Document(f"d{i}", words(count, i)) for i in range(documents)])


def matched(
    count: int = 40, samples: int = 3, skip: int = 1, seed: int = 0, coarse_bos: int | None = BOS
) -> MatchedTokens:
    return match_tokens(
        corpus(),
        Reader("fine", FINE, 40, None),
        Reader("coarse", COARSE, 24, coarse_bos),
        skip,
        count,
        samples,
        np.random.default_rng(seed),
    )


@deterministic
@given(text=st.text(min_size=1, max_size=40))
@example("  two  spaces \n\n and\tmore  ")
@example("日本 🙂é\u0301 end ")
@example(" ")
def test_ends_are_those_of_the_bytes(text: str) -> None:
    for tokenizer in BOTH:
        ids, ends = token_ends(tokenizer, text)
        tokens = [tokenizer.id_to_token(int(i)) for i in ids]
        assert list(ends) == reference.token_ends(tokens, text)


def test_pieces_of_a_character_end_nowhere_but_the_last() -> None:
    _, ends = token_ends(BOTH[0], "a€b")
    assert list(ends) == [1, -1, -1, 2, 3]


def test_a_space_belongs_to_the_token_that_holds_it_even_if_its_tokenizer_trims() -> None:
    _, ends = token_ends(BOTH[1], "the layer  the")
    extents = COARSE("the layer  the", return_offsets_mapping=True)["offset_mapping"]
    assert [end for _, end in extents] == list(ends)  # spaces lead here, so nothing is trimmed
    trailing = Tokenizer(models.WordLevel({"the ": 0, "layer": 1, "[u]": 2}, "[u]"))
    trailing.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    trailing.post_processor = processors.ByteLevel(trim_offsets=True)
    wrapped = PreTrainedTokenizerFast(tokenizer_object=trailing)
    assert trailing.encode("the layer").offsets == [(0, 3), (4, 9)]
    plain = untrimmed(Reader("trailing", wrapped, 8, None))
    assert list(token_ends(plain, "the layer")[1]) == [4, 9]


def test_special_tokens_truncation_and_padding_play_no_part() -> None:
    tokenizer = byte_level(300, words(60, 1))
    backend = tokenizer.backend_tokenizer
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", BOS)]
    )
    backend.enable_truncation(4)
    backend.enable_padding(length=50)
    ids, ends = token_ends(untrimmed(Reader("cut", tokenizer, 8, None)), words(20, 3))
    assert len(ids) > 20
    assert BOS not in ids
    assert ends[-1] == len(words(20, 3))
    assert backend.truncation is not None  # the model's own tokenizer is left as it was


def test_common_ends_are_matched_in_order_and_once() -> None:
    first = np.array([2, -1, 5, 5, 7, 9])  # a token without characters ends where the last did
    second = np.array([1, 2, 5, -1, 9, 12])
    one, other = common_ends(first, second)
    np.testing.assert_array_equal(one, [0, 3, 5])
    np.testing.assert_array_equal(other, [1, 2, 4])


@deterministic
@given(text=st.text(min_size=1, max_size=60))
def test_prefixes_of_matched_tokens_are_the_same_text(text: str) -> None:
    (ids, ends), (other_ids, other_ends) = (token_ends(tokenizer, text) for tokenizer in BOTH)
    one, other = common_ends(ends, other_ends)
    assert one[-1] == len(ids) - 1
    assert other[-1] == len(other_ids) - 1
    for i, j in zip(one, other, strict=True):
        assert BOTH[0].decode(ids[: i + 1]) == BOTH[1].decode(other_ids[: j + 1])
        assert text.startswith(BOTH[0].decode(ids[: i + 1]))


def test_sampled_tokens_have_read_the_same_characters() -> None:
    found = matched()
    texts = [document.text for document in corpus().documents]
    assert found.first_tokens.shape[1] == 40
    assert found.second_tokens.shape[1] == 24
    assert (found.second_tokens[:, 0] == BOS).all()
    for passage, i, j in zip(
        found.passages.ravel(),
        found.first_positions.ravel(),
        found.second_positions.ravel(),
        strict=True,
    ):
        first = FINE.decode(found.first_tokens[passage, : i + 1])
        second = COARSE.decode(found.second_tokens[passage, 1 : j + 1])
        assert first == second
        assert any(first in text for text in texts)


def test_no_token_is_sampled_twice_and_no_passage_serves_two_samples() -> None:
    found = matched(count=39, samples=3)
    assert found.passages.shape == (3, 39)
    assert len(found.common) == 3 * PASSAGES
    for sample, passages in enumerate(found.passages):
        assert set(passages) == set(range(sample * PASSAGES, (sample + 1) * PASSAGES))
        counts = np.bincount(passages)[sample * PASSAGES :]
        assert set(counts) == {2, 3}
        pairs = set(zip(passages, found.first_positions[sample], strict=True))
        assert len(pairs) == 39
    rows = np.unique(found.first_tokens, axis=0)
    assert len(rows) == len(found.first_tokens)


@pytest.mark.parametrize("skip", [0, 1, 3])
@pytest.mark.parametrize("bos", [None, BOS])
def test_skipped_positions_and_the_bos_are_never_sampled(skip: int, bos: int | None) -> None:
    found = matched(count=16, samples=1, skip=skip, coarse_bos=bos)
    assert found.first_positions.min() >= skip
    assert found.second_positions.min() >= max(skip, 0 if bos is None else 1)
    assert found.first_positions.max() < 40
    assert found.second_positions.max() < 24


def test_passages_begin_with_a_word_and_come_from_many_documents() -> None:
    found = matched()
    starts = [FINE.decode(row).split(" ")[0] for row in found.first_tokens]
    assert set(starts) <= set(WORDS)
    assert len(starts) == len(found.first_tokens)


def test_same_seed_matches_the_same_tokens_and_another_seed_others() -> None:
    first, second, other = matched(), matched(), matched(seed=1)
    np.testing.assert_array_equal(first.first_positions, second.first_positions)
    np.testing.assert_array_equal(first.second_tokens, second.second_tokens)
    assert not np.array_equal(first.first_tokens, other.first_tokens)


def test_one_tokenizer_matches_itself_everywhere() -> None:
    reader = Reader("coarse", COARSE, 24, None)
    found = match_tokens(corpus(), reader, reader, 1, 60, 1, np.random.default_rng(0))
    np.testing.assert_array_equal(found.first_positions, found.second_positions)
    np.testing.assert_array_equal(found.first_tokens, found.second_tokens)
    assert np.median(found.common) > 15


def splitting(behaviour: str) -> Any:
    """A tokenizer of whole words, with the space that follows or the one that leads."""
    tokenizer = Tokenizer(models.WordLevel({"[u]": 0}, "[u]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(" "), behaviour)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer)


def test_tokenizers_that_never_end_together_are_refused() -> None:
    first = Reader("leads", splitting("merged_with_next"), 8, None)
    second = Reader("follows", splitting("merged_with_previous"), 8, None)
    with pytest.raises(NotMeasurableError, match=r"leads and follows have no common end position"):
        match_tokens(corpus(), first, second, 1, 20, 2, np.random.default_rng(0))


def test_too_few_matches_are_refused_with_the_numbers() -> None:
    reader = Reader("coarse", COARSE, 24, None)
    with pytest.raises(NotMeasurableError, match=r"0 of \d+ have the 63 .*\(the most is 23\)"):
        match_tokens(corpus(), reader, reader, 1, 1000, 1, np.random.default_rng(0))
    with pytest.raises(NotMeasurableError, match=r"and 1600 passages are needed"):
        match_tokens(corpus(), reader, reader, 1, 100, 100, np.random.default_rng(0))


def test_a_text_of_short_documents_is_refused_with_the_lengths() -> None:
    short = make_corpus("short", [Document(str(i), "a layer of tokens") for i in range(9)])
    first, second = Reader("fine", FINE, 40, None), Reader("coarse", COARSE, 24, BOS)
    with pytest.raises(NotMeasurableError, match="fills the 40 tokens of fine and the 23 of"):
        match_tokens(short, first, second, 1, 20, 2, np.random.default_rng(0))


def test_a_tokenizer_that_says_not_where_its_tokens_end_is_refused() -> None:
    with pytest.raises(NotMeasurableError, match="the tokenizer of slow does not say where"):
        untrimmed(Reader("slow", object(), 8, None))
