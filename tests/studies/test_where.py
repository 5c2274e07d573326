"""The words beside the blocks are those of the text, with the figures stored for them."""

from typing import Any

import numpy as np
import pytest

from layergeom.studies import Session, WhereStudy
from layergeom.studies.where import sentence_start
from tiny_models import DEPTH

BANK = 9


@pytest.fixture(scope="module")
def study(tiny_settings: Any) -> WhereStudy:
    return WhereStudy(Session(tiny_settings))


def test_words_read_as_the_text(study: WhereStudy) -> None:
    words = study.words()
    tokenizer = study.session.model.tokenizer
    for sequence, rows in words.groupby("sequence"):
        tokens = study.updates.fits.states.tokens[BANK + sequence]
        assert list(rows["position"]) == list(range(len(tokens)))
        assert "".join(rows["word"]) == tokenizer.decode(tokens)


def test_each_row_has_the_tokens_own_error_and_effect(study: WhereStudy) -> None:
    table = study.table()
    places = list(zip(*study.updates.fits.replaced_places, strict=True))
    assert len(table) == DEPTH * len(places)
    for block in range(DEPTH):
        effects = study.updates.fits.block(block).effects("orthogonal")
        rows = table[table["block"] == block]
        assert list(zip(rows["sequence"], rows["position"], strict=True)) == places
        np.testing.assert_array_equal(rows["kl"], effects["kl"])
        np.testing.assert_array_equal(rows["rel_err_state"], effects["rel_err_state"])


@pytest.mark.parametrize(("tokens", "shown"), [(5, 5), (13, 13), (40, 13)])
def test_a_passage_is_contiguous_and_as_long_as_it_can_be(
    study: WhereStudy, tokens: int, shown: int
) -> None:
    passage = study.passage(tokens, sequence=1)
    assert len(passage) == shown * DEPTH
    first = passage[passage["block"] == 0]
    assert list(first["place"]) == list(range(shown))
    assert (np.diff(first["position"]) == 1).all()
    whole = study.table()
    whole = whole[(whole["sequence"] == 1) & (whole["block"] == 2)].set_index("position")
    last = passage[passage["block"] == 2]
    np.testing.assert_array_equal(last["kl"], whole.loc[last["position"], "kl"])
    assert list(last["word"]) == list(whole.loc[last["position"], "word"])


@pytest.mark.parametrize(
    ("words", "latest", "start"),
    [
        (["a", " b.", " C", " d"], 3, 2),
        (["a", " b.", " C", " d"], 1, 0),
        (["a", " b", "?", "\n"], 3, 3),
        (["a", "b", "c."], 0, 0),
        ([".", "A"], 2, 1),
    ],
)
def test_a_passage_begins_with_a_sentence_where_it_can(
    words: list[str], latest: int, start: int
) -> None:
    assert sentence_start(words, latest) == start
