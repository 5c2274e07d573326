"""A tokenizer is trained once for a corpus and size, and its cache is never half read."""

from pathlib import Path

import pytest

from layergeom.corpora.documents import Corpus, Document, make_corpus
from layergeom.models import vocabulary
from layergeom.models.vocabulary import END_OF_TEXT, token_stream, trained_tokenizer

SIZE = 280


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("LAYERGEOM_HOME", str(tmp_path))
    return tmp_path


def corpus(*texts: str) -> Corpus:
    return make_corpus("texts", [Document(f"title {i}", text) for i, text in enumerate(texts)])


TEXTS = corpus("the layer and the norm of the layer " * 30, "a state, a block, a café ☕ " * 30)


def test_text_comes_back_from_its_tokens(home: Path) -> None:
    tokenizer = trained_tokenizer(TEXTS, SIZE)
    assert len(tokenizer) == SIZE
    for text in (TEXTS.documents[1].text, "bytes never seen: ÿ 漢\n\n"):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        assert tokenizer.decode(ids) == text


def test_stream_ends_each_document(home: Path) -> None:
    tokenizer = trained_tokenizer(TEXTS, SIZE)
    stream = token_stream(tokenizer, TEXTS)
    ends = [i for i, token in enumerate(stream) if token == tokenizer.eos_token_id]
    assert len(ends) == len(TEXTS.documents)
    assert ends[-1] == len(stream) - 1
    assert tokenizer.decode(stream[: ends[0]]) == TEXTS.documents[0].text
    assert tokenizer.eos_token == END_OF_TEXT


def refuse(*_: object) -> str:
    raise AssertionError("trained a second time")


def test_it_is_trained_once_for_a_corpus_and_size(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = trained_tokenizer(TEXTS, SIZE)
    monkeypatch.setattr(vocabulary, "_train", refuse)
    assert trained_tokenizer(TEXTS, SIZE).get_vocab() == first.get_vocab()
    for other, size in ((TEXTS, SIZE + 1), (corpus("another text"), SIZE)):
        with pytest.raises(AssertionError, match="second time"):
            trained_tokenizer(other, size)


@pytest.mark.parametrize("kind", ["cut short", "changed"])
def test_a_damaged_cache_is_made_anew(home: Path, kind: str) -> None:
    first = trained_tokenizer(TEXTS, SIZE)
    (cached,) = (home / "models").glob("tokenizer-*.json")
    whole = cached.read_text()
    damaged = whole[:-40] if kind == "cut short" else whole.replace("layer", "leyar")
    assert damaged != whole
    cached.write_text(damaged)
    assert trained_tokenizer(TEXTS, SIZE).get_vocab() == first.get_vocab()
    assert cached.read_text() == whole
