"""Text files become whole documents, and mistakes a message."""

from pathlib import Path

import pytest

from layergeom.corpora import held_out, load_corpus, read_text_corpus
from layergeom.corpora.documents import STRETCH_CHARACTERS, Document, is_held_out, make_corpus
from layergeom.errors import UsageError

WIKITEXT = """
 = First Article = 

 Its text , with @-@ marks and = signs = inside .

 = = Heading = = 

 More of the first .

 = = = Deeper = = = 

 = Second = 

 Another text .
"""  # noqa: W291

REAL_WIKITEXT = Path(__file__).parents[2].parent / "shared/data/wikitext-2/valid.txt"


def write(folder: Path, content: str) -> Path:
    path = folder / "text.txt"
    path.write_text(content, encoding="utf-8")
    return path


def test_wikitext_is_cut_at_titles_and_not_at_headings(tmp_path: Path) -> None:
    corpus = read_text_corpus(write(tmp_path, WIKITEXT))
    assert [d.title for d in corpus.documents] == ["First Article", "Second"]
    first, second = (d.text for d in corpus.documents)
    assert "= = Heading = =" in first
    assert "= = = Deeper = = =" in first
    assert first.startswith("= First Article =")
    assert second.endswith("Another text .")
    assert "Another" not in first
    assert corpus.name == "text.txt"


def test_other_text_is_cut_at_paragraphs_into_stretches_that_lose_nothing(tmp_path: Path) -> None:
    paragraphs = [f"Paragraph {i}: " + "words and words. " * (5 + i % 7) for i in range(90)]
    corpus = read_text_corpus(write(tmp_path, "\n\n".join(paragraphs)))
    assert "\n\n".join(d.text for d in corpus.documents) == "\n\n".join(paragraphs)
    longest = max(map(len, paragraphs))
    for document in corpus.documents[:-1]:
        assert STRETCH_CHARACTERS <= len(document.text) < STRETCH_CHARACTERS + 2 * longest
    titles = [d.title for d in corpus.documents]
    assert len(titles) == len(set(titles)) > 5
    assert titles[0] == "text.txt 1"


def test_characters_and_hash_follow_the_documents() -> None:
    corpus = make_corpus("name", [Document("a", "xyz"), Document("b", "é")])
    assert corpus.characters == 4
    assert corpus.sha256 == make_corpus("other", list(corpus.documents)).sha256
    for changed in (
        [Document("a", "xyz"), Document("b", "e")],
        [Document("a", "xyz"), Document("c", "é")],
        [Document("b", "é"), Document("a", "xyz")],
        [Document("a", "xyzb"), Document("", "é")],
    ):
        assert make_corpus("name", changed).sha256 != corpus.sha256


@pytest.mark.parametrize("content", ["", "\n \n\t\n"])
def test_empty_file_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(UsageError, match=r"text\.txt is empty"):
        read_text_corpus(write(tmp_path, content))


def test_missing_file_and_folder_are_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_text_corpus(tmp_path / "nosuch.txt")
    with pytest.raises(UsageError, match="Is a directory"):
        load_corpus(str(tmp_path))


def test_file_that_is_not_utf_8_is_refused_with_the_byte(tmp_path: Path) -> None:
    path = tmp_path / "latin.txt"
    path.write_bytes("abc é".encode("latin-1"))
    with pytest.raises(UsageError, match=r"latin\.txt is not UTF-8 text \(byte 4\)"):
        read_text_corpus(path)


def test_unknown_corpus_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"unknown corpus 'wikipedia'.*Known: wikipedia-sample"):
        load_corpus("wikipedia")


def test_a_path_is_read_by_load_corpus(tmp_path: Path) -> None:
    path = write(tmp_path, WIKITEXT)
    assert load_corpus(str(path)) == read_text_corpus(path)


def test_one_title_in_eight_is_held_out_whatever_the_other_documents() -> None:
    documents = [Document(f"title {i}", "text") for i in range(2000)]
    share = sum(map(is_held_out, documents)) / len(documents)
    assert 0.10 < share < 0.15
    kept = held_out(make_corpus("all", documents))
    alone = held_out(make_corpus("half", documents[::2]))
    assert set(alone.documents) == set(kept.documents) & set(documents[::2])
    assert all(is_held_out(d) for d in kept.documents)
    assert not is_held_out(Document("title 0", "")) or is_held_out(Document("title 0", "other"))


@pytest.mark.skipif(not REAL_WIKITEXT.is_file(), reason="no copy of WikiText-2 beside the checkout")
def test_real_wikitext_is_cut_into_its_60_articles() -> None:
    corpus = read_text_corpus(REAL_WIKITEXT)
    assert len(corpus.documents) == 60
    whole = REAL_WIKITEXT.read_text(encoding="utf-8")
    assert corpus.characters > 0.999 * len(whole)
    assert not any(d.title.startswith("=") for d in corpus.documents)
