"""The embedded corpus: 107 articles, clean, and the same from the cache as from the dump."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from layergeom.corpora import Corpus, load_corpus, wikipedia
from layergeom.errors import LayergeomError
from layergeom.paths import home


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return load_corpus("wikipedia-sample")


@pytest.fixture(scope="module")
def damaged_then_read(
    corpus: Corpus, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Corpus, Path]]:
    """The corpus read where one character of the cached copy was changed, and the copy."""
    (cached,) = (home() / "corpora").glob("*.json")
    with pytest.MonkeyPatch.context() as patch:
        other = tmp_path_factory.mktemp("home")
        patch.setenv("LAYERGEOM_HOME", str(other))
        copy = other / "corpora" / cached.name
        copy.parent.mkdir()
        shutil.copy(cached, copy)
        text = copy.read_text(encoding="utf-8")
        at = text.index("the ", len(text) // 2)
        copy.write_text(text[:at] + "tha " + text[at + 4 :], encoding="utf-8")
        yield load_corpus("wikipedia-sample"), copy


def test_has_its_articles_and_characters(corpus: Corpus) -> None:
    assert len(corpus.documents) == 107
    assert len({d.title for d in corpus.documents}) == 107
    assert corpus.characters == pytest.approx(3.05e6, rel=0.01)


@pytest.mark.parametrize(
    "markup",
    [
        r"'''?",
        r"(?m)^\s*==",
        r"(?i)#redirect",
        r"\[\[|\]\]",
        r"\{\{|\}\}",
        r"(?i)<ref|</ref",
        r"\n{3}",
        r"&nbsp;|&amp;",
    ],
)
def test_leaves_no_mark_up(corpus: Corpus, markup: str) -> None:
    found = {
        document.title: match.group(0)
        for document in corpus.documents
        if (match := re.search(markup, document.text))
    }
    assert found == {}


def test_cached_copy_equals_a_fresh_parse(
    corpus: Corpus, damaged_then_read: tuple[Corpus, Path]
) -> None:
    fresh, _ = damaged_then_read  # parsed anew, see below
    assert fresh == corpus
    assert load_corpus("wikipedia-sample") == corpus


def test_damaged_copy_is_parsed_anew_and_replaced(
    corpus: Corpus, damaged_then_read: tuple[Corpus, Path]
) -> None:
    read, copy = damaged_then_read
    assert read.sha256 == corpus.sha256
    assert json.loads(copy.read_text(encoding="utf-8"))["sha256"] == corpus.sha256
    (whole,) = (home() / "corpora").glob("*.json")
    assert copy.read_bytes() == whole.read_bytes()


def test_cached_copy_is_read_without_the_dump(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> None:
        raise AssertionError("the dump was parsed again")

    monkeypatch.setattr(wikipedia, "_parse", refuse)
    assert load_corpus("wikipedia-sample") == corpus


def test_another_dump_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LAYERGEOM_HOME", str(tmp_path))
    monkeypatch.setattr(wikipedia, "sha256_of", lambda _: "0" * 64)
    with pytest.raises(LayergeomError, match="gensim does not ship the expected"):
        load_corpus("wikipedia-sample")
    assert not list(tmp_path.rglob("*.json"))
