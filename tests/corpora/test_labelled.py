"""Labelled texts: passages of articles, CSV files in both forms, and what is refused."""

from pathlib import Path

import numpy as np
import pytest

from layergeom.corpora.documents import Corpus, Document, make_corpus
from layergeom.corpora.labelled import (
    ARTICLES,
    CHARACTERS,
    PASSAGES,
    article_passages,
    check_folds,
    evenly_over_classes,
    read_labelled_csv,
)
from layergeom.errors import NotMeasurableError, UsageError

AG_NEWS = Path(__file__).parents[2].parent / "shared/data/ag_news/sample.csv"


def article(title: str, characters: int) -> Document:
    words, text = 0, ""
    while len(text) < characters:
        text += f"{title}{words} "
        words += 1
    return Document(title, text[:characters])


def articles(count: int, characters: int = 2 * PASSAGES * CHARACTERS) -> Corpus:
    return make_corpus("some", [article(f"w{i}x", characters) for i in range(count)])


def write(folder: Path, content: str) -> Path:
    path = folder / "texts.csv"
    path.write_text(content, encoding="utf-8")
    return path


def test_each_article_gives_as_many_passages_of_whole_words() -> None:
    corpus = articles(4)
    found = article_passages(corpus, np.random.default_rng(0))
    assert found.classes == ("w0x", "w1x", "w2x", "w3x")
    np.testing.assert_array_equal(np.bincount(found.labels), [PASSAGES] * 4)
    assert found.chance == 0.25
    for text, label in zip(found.texts, found.labels, strict=True):
        whole = corpus.documents[label].text
        assert CHARACTERS / 2 < len(text) <= CHARACTERS
        assert set(text.split(" ")) <= set(whole.split(" "))
        assert text in whole


def test_passages_of_an_article_share_no_word() -> None:
    found = article_passages(articles(2), np.random.default_rng(0))
    words = [word for text in found.texts for word in text.split(" ")]
    assert len(words) == len(set(words))


def test_no_more_articles_than_the_measure_takes_and_none_that_is_short() -> None:
    many = make_corpus(
        "many",
        [*articles(ARTICLES + 5).documents, article("short", PASSAGES * CHARACTERS // 2)],
    )
    found = article_passages(many, np.random.default_rng(0))
    assert len(found.classes) == ARTICLES
    assert "short" not in found.classes
    other = article_passages(many, np.random.default_rng(1))
    assert other.classes != found.classes
    assert article_passages(many, np.random.default_rng(0)).sha256 == found.sha256
    assert other.sha256 != found.sha256


def test_too_few_articles_are_refused_with_the_numbers() -> None:
    corpus = make_corpus("few", [article("long", 9000), article("short", 900)])
    with pytest.raises(NotMeasurableError, match=r"1 of the 2 documents of 'few' have 12 passages"):
        article_passages(corpus, np.random.default_rng(0))


def test_a_header_names_the_columns(tmp_path: Path) -> None:
    path = write(tmp_path, 'id,Label,Text\n1,b,"first, with a comma"\n2,a,second\n\n3,b,third\n')
    found = read_labelled_csv(path)
    assert found.texts == ("first, with a comma", "second", "third")
    assert [found.classes[i] for i in found.labels] == ["b", "a", "b"]
    assert found.chance == pytest.approx(2 / 3)
    assert found.name == "texts.csv"


@pytest.mark.parametrize(
    "header", ["", "Class Index,Title,Description\n", "\ufeffclass,title,description\n"]
)
def test_the_form_of_ag_news_is_read_with_or_without_header(tmp_path: Path, header: str) -> None:
    path = write(tmp_path, header + '"3","A title","Its text."\n"1","Other","More."\n')
    found = read_labelled_csv(path)
    assert found.texts == ("A title Its text.", "Other More.")
    assert [found.classes[i] for i in found.labels] == ["3", "1"]


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ("", "is empty"),
        ("one,two\n1,2\n", "has the columns 'one, two'.*'label' and 'text'"),
        ("label,text\na,first\nb\n", "text 2 has 1 columns"),
        ("label,text\na,first\nb,  \n", "1 of 2 texts are empty"),
        ("label,text\n", "0 of 0 texts"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path: Path, content: str, wanted: str) -> None:
    with pytest.raises(UsageError, match=wanted):
        read_labelled_csv(write(tmp_path, content))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read the labelled texts .*absent\.csv"):
        read_labelled_csv(tmp_path / "absent.csv")
    path = tmp_path / "latin.csv"
    path.write_bytes("label,text\na,caf\xe9\n".encode("latin-1"))
    with pytest.raises(UsageError, match="is not UTF-8 text"):
        read_labelled_csv(path)


def test_one_class_only_is_refused_with_its_name(tmp_path: Path) -> None:
    path = write(tmp_path, "label,text\nsport,first\nsport,second\n")
    with pytest.raises(NotMeasurableError, match=r"one class only \('sport', 2 texts\)"):
        read_labelled_csv(path)


def test_fewer_texts_of_a_class_than_folds_are_refused_with_both_numbers(tmp_path: Path) -> None:
    path = write(tmp_path, "label,text\n" + "a,x\n" * 9 + "b,y\n" * 4)
    labelled = read_labelled_csv(path)
    check_folds(labelled, 4)
    with pytest.raises(NotMeasurableError, match=r"class 'b' .* has 4 texts, fewer than the 5 "):
        check_folds(labelled, 5)


def test_a_smaller_set_keeps_the_classes_even(tmp_path: Path) -> None:
    rows = [f"{'abc'[i % 3]},text {i}" for i in range(60)] + ["d,few 1", "d,few 2"]
    labelled = read_labelled_csv(write(tmp_path, "label,text\n" + "\n".join(rows) + "\n"))
    found = evenly_over_classes(labelled, 20, np.random.default_rng(0))
    np.testing.assert_array_equal(np.bincount(found.labels), [5, 5, 5, 2])
    own = dict(zip(labelled.texts, labelled.labels, strict=True))
    assert [own[text] for text in found.texts] == list(found.labels)
    everything = evenly_over_classes(labelled, 1000, np.random.default_rng(0))
    assert everything.texts == labelled.texts
    again = evenly_over_classes(labelled, 20, np.random.default_rng(0))
    assert again.texts == found.texts
    assert evenly_over_classes(labelled, 20, np.random.default_rng(1)).texts != found.texts


@pytest.mark.skipif(not AG_NEWS.is_file(), reason="no copy of AG News beside the checkout")
def test_real_ag_news_has_its_four_classes() -> None:
    found = read_labelled_csv(AG_NEWS)
    assert found.classes == ("1", "2", "3", "4")
    assert len(found.texts) == 3800
    assert found.texts[0].startswith("Rapidly expanding Vietnam Airlines ready to take on America ")
