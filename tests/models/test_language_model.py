"""The rows of the unembedding that count, and the token that starts a sequence."""

from typing import Literal

import numpy as np
import pytest

from layergeom.corpora.documents import Document, make_corpus
from layergeom.corpora.packing import bank_and_query
from layergeom.errors import LayergeomError
from layergeom.models.language_model import LanguageModel, wrap
from tiny_models import BOS, ROWS, TOKENS, tiny_network, tiny_tokenizer

BosRule = Literal["yes", "no", "as the tokenizer does"]


def model(bos: BosRule, has_bos: bool = True, adds_bos: bool = False) -> LanguageModel:
    return wrap("mine", tiny_network("llama"), tiny_tokenizer(has_bos, adds_bos), bos)


def test_padding_rows_are_dropped_from_the_unembedding() -> None:
    wrapped = model("no")
    weight = wrapped.network.lm_head.weight.numpy()
    assert len(weight) == ROWS
    np.testing.assert_array_equal(wrapped.real_unembedding(), weight[:TOKENS])


def test_a_tokenizer_with_more_tokens_than_rows_leaves_every_row() -> None:
    wrapped = model("no")
    wrapped.tokenizer.add_tokens([f"<extra{i}>" for i in range(ROWS)])
    assert wrapped.real_unembedding().shape == (ROWS, wrapped.width)


@pytest.mark.parametrize(
    ("bos", "has_bos", "adds_bos", "expected"),
    [
        ("yes", True, True, BOS),
        ("yes", True, False, BOS),
        ("no", True, True, None),
        ("no", False, False, None),
        ("as the tokenizer does", True, True, BOS),
        ("as the tokenizer does", True, False, None),
        ("as the tokenizer does", False, False, None),
    ],
)
def test_bos_is_the_catalogues_choice_or_the_tokenizers(
    bos: BosRule, has_bos: bool, adds_bos: bool, expected: int | None
) -> None:
    assert model(bos, has_bos, adds_bos).bos_id() == expected


def test_bos_asked_of_a_tokenizer_without_one_is_an_error() -> None:
    with pytest.raises(LayergeomError, match="mine needs a BOS token"):
        model("yes", has_bos=False).bos_id()


@pytest.mark.parametrize("adds_bos", [True, False])
def test_bos_starts_every_packed_sequence_and_is_nowhere_else(adds_bos: bool) -> None:
    wrapped = model("yes", adds_bos=adds_bos)
    corpus = make_corpus("text", [Document(str(i), "some plain words. " * 9) for i in range(8)])
    # All of the text: a second BOS would be in the first sequence of each document.
    roles = bank_and_query(
        corpus, wrapped.encode, 16, 40, 40, wrapped.bos_id(), np.random.default_rng(0)
    )
    for sequences in (roles.bank, roles.query):
        assert (sequences.tokens[:, 0] == BOS).all()
        assert (sequences.tokens[:, 1:] != BOS).all()
