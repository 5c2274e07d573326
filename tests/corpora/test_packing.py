"""Sequences without padding, bank and query of different documents, tokens spread evenly."""

import numpy as np
import pytest

from layergeom.corpora.documents import Corpus, Document, make_corpus
from layergeom.corpora.packing import Roles, Sequences, bank_and_query, spread_tokens
from layergeom.errors import UsageError

BOS = 1
LENGTH = 8


def encode(text: str) -> list[int]:
    return [int(number) for number in text.split()]


def corpus(tokens: list[int]) -> Corpus:
    """Documents of so many tokens; token ids tell document and place: 1000 d + place + 100."""
    documents = [
        Document(f"d{d}", " ".join(str(1000 * d + place + 100) for place in range(count)))
        for d, count in enumerate(tokens)
    ]
    return make_corpus("numbers", documents)


MANY = corpus([20, 50, 3, 90, 33, 64, 70, 41, 7, 88, 15, 60])


def pack(bank: int, query: int, bos: int | None = None, seed: int = 0) -> Roles:
    return bank_and_query(MANY, encode, LENGTH, bank, query, bos, np.random.default_rng(seed))


@pytest.mark.parametrize("bos", [None, BOS])
@pytest.mark.parametrize("seed", range(5))
def test_each_sequence_is_a_run_of_one_document_without_padding(bos: int | None, seed: int) -> None:
    payload = LENGTH if bos is None else LENGTH - 1
    roles = pack(12, 8, bos, seed)
    for sequences in (roles.bank, roles.query):
        assert sequences.tokens.shape[1] == LENGTH
        for row, document in zip(sequences.tokens, sequences.documents, strict=True):
            text = row if bos is None else row[1:]
            assert bos is None or row[0] == bos
            place = text[0] - 1000 * document - 100
            assert place % payload == 0
            np.testing.assert_array_equal(text, text[0] + np.arange(payload))
            assert text[-1] // 1000 == document


@pytest.mark.parametrize("seed", range(10))
def test_bank_and_query_share_no_document_and_repeat_no_sequence(seed: int) -> None:
    roles = pack(14, 9, seed=seed)
    assert (len(roles.bank), len(roles.query)) == (14, 9)
    assert not set(roles.bank.documents) & set(roles.query.documents)
    rows = np.concatenate([roles.bank.tokens, roles.query.tokens])
    assert len(np.unique(rows, axis=0)) == 23


def test_sequences_come_from_as_many_documents_as_possible() -> None:
    roles = pack(5, 4)
    assert len(set(roles.bank.documents)) == 5
    assert len(set(roles.query.documents)) == 4


def test_same_seed_packs_the_same_and_another_seed_otherwise() -> None:
    first, second, other = pack(9, 9), pack(9, 9), pack(9, 9, seed=1)
    np.testing.assert_array_equal(first.bank.tokens, second.bank.tokens)
    np.testing.assert_array_equal(first.query.tokens, second.query.tokens)
    assert not np.array_equal(first.query.tokens, other.query.tokens)


def test_without_a_query_all_documents_serve_the_bank() -> None:
    every = sum(len(d.text.split()) // LENGTH for d in MANY.documents)
    roles = pack(10_000, 0)
    assert (len(roles.bank), len(roles.query)) == (every, 0)
    assert roles.query.tokens.shape == (0, LENGTH)
    assert len(pack(7, 0).bank) == 7


def test_a_text_too_short_is_refused_with_both_numbers() -> None:
    short = corpus([LENGTH * 2 + 3, LENGTH + 1, LENGTH - 1])
    with pytest.raises(UsageError, match="gives 3 sequences of 8 tokens, and 6 are needed"):
        bank_and_query(short, encode, LENGTH, 4, 2, None, np.random.default_rng(0))


def test_a_text_without_one_sequence_is_refused_with_both_numbers() -> None:
    with pytest.raises(UsageError, match="gives 0 sequences of 8 tokens, and 5 are needed"):
        bank_and_query(corpus([7, 7]), encode, LENGTH, 5, 0, None, np.random.default_rng(0))


def test_one_long_document_cannot_be_split_and_is_refused_with_both_numbers() -> None:
    with pytest.raises(
        UsageError, match="1 documents leave 0 sequences for the query, and 2 are needed"
    ):
        bank_and_query(corpus([800]), encode, LENGTH, 4, 2, None, np.random.default_rng(0))


def test_no_sequences_have_length_and_no_rows() -> None:
    assert Sequences.none(5).tokens.shape == (0, 5)
    assert len(Sequences.none(5)) == 0


def spread(
    sequences: int, length: int, skip: int, count: int, samples: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    return spread_tokens(sequences, length, skip, count, samples, np.random.default_rng(seed))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("sequences", "length", "skip", "count", "samples"),
    [(6, 9, 1, 16, 3), (48, 128, 1, 600, 8), (5, 7, 0, 7, 5), (3, 40, 2, 10, 1)],
)
def test_samples_are_disjoint_without_replacement_and_past_the_skipped_positions(
    sequences: int, length: int, skip: int, count: int, samples: int, seed: int
) -> None:
    which, where = spread(sequences, length, skip, count, samples, seed)
    assert which.shape == where.shape == (samples, count)
    assert len(set(zip(which.ravel(), where.ravel(), strict=True))) == samples * count
    assert which.min() >= 0
    assert which.max() < sequences
    assert where.min() >= skip
    assert where.max() < length


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("sequences", "count", "samples"),
    [(48, 600, 8), (24, 120, 3), (48, 1000, 1), (8, 6, 3), (10, 13, 4)],
)
def test_each_sample_is_spread_evenly_over_the_sequences(
    sequences: int, count: int, samples: int, seed: int
) -> None:
    which, _ = spread(sequences, 128, 1, count, samples, seed)
    for sample in which:
        counts = np.bincount(sample, minlength=sequences)
        assert counts.max() - counts.min() <= 1


def test_positions_are_spread_too() -> None:
    _, where = spread(48, 128, 1, 600, 8)
    counts = np.bincount(where.ravel(), minlength=128)[1:]
    assert counts.min() > 0
    assert abs(where.mean() - 64.0) < 3.0


def test_every_token_can_be_asked_for() -> None:
    which, where = spread(4, 6, 1, 10, 2)
    assert set(zip(which.ravel(), where.ravel(), strict=True)) == {
        (s, p) for s in range(4) for p in range(1, 6)
    }


def test_same_seed_draws_the_same_and_another_seed_otherwise() -> None:
    first, second, other = (spread(6, 9, 1, 16, 3, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_more_tokens_than_there_are_is_refused_with_both_numbers() -> None:
    with pytest.raises(
        UsageError,
        match=r"samples of 14 tokens, 3 of them, need 42 tokens, and the 5 .* have 40 after",
    ):
        spread(5, 9, 1, 14, 3)
