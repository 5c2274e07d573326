"""Texts with a class each, for probes: passages of articles, or a CSV file of the user's."""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Int

from layergeom.corpora.documents import Corpus
from layergeom.errors import NotMeasurableError, UsageError
from layergeom.files import sha256_of_text

#: Articles to tell apart, passages of each, and their length: 48 to 64 tokens of a tokenizer
#: that knows English well.
ARTICLES = 16
PASSAGES = 12
CHARACTERS = 240
#: Most texts that are taken from a CSV file, over all classes.
MOST_TEXTS = 384


@dataclass(frozen=True)
class LabelledTexts:
    """Texts and their classes.

    Attributes:
        name: of the collection.
        texts: the texts.
        labels: index of each text's class.
        classes: names of the classes.
    """

    name: str
    texts: tuple[str, ...]
    labels: Int[np.ndarray, " texts"]
    classes: tuple[str, ...]

    @property
    def chance(self) -> float:
        """Accuracy of always naming the largest class."""
        return float(np.bincount(self.labels).max() / len(self.labels))

    @property
    def sha256(self) -> str:
        """Hash of all texts and labels."""
        rows = zip(self.labels, self.texts, strict=True)
        return sha256_of_text("\x1e".join(f"{label}\x1f{text}" for label, text in rows))


def article_passages(corpus: Corpus, rng: np.random.Generator) -> LabelledTexts:
    """Passages of articles, to be told by which article they come from.

    ``ARTICLES`` articles, or as many as are long enough, with ``PASSAGES`` passages each that do
    not overlap.

    Raises:
        NotMeasurableError: fewer than two articles are long enough, with the numbers.
    """
    long_enough = {
        document.title: pieces
        for document in corpus.documents
        if len(pieces := _pieces(document.text)) >= PASSAGES
    }
    if len(long_enough) < 2:
        raise NotMeasurableError(
            f"{len(long_enough)} of the {len(corpus.documents)} documents of {corpus.name!r} have "
            f"{PASSAGES} passages of {CHARACTERS} characters; telling articles apart needs 2. "
            "Give a corpus of longer articles, or a CSV file of labelled texts."
        )
    titles = sorted(long_enough)
    chosen = [titles[i] for i in sorted(rng.permutation(len(titles))[:ARTICLES])]
    texts = [
        long_enough[title][i]
        for title in chosen
        for i in sorted(rng.choice(len(long_enough[title]), PASSAGES, replace=False))
    ]
    labels = np.repeat(np.arange(len(chosen)), PASSAGES)
    return LabelledTexts(f"articles of {corpus.name}", tuple(texts), labels, tuple(chosen))


def _pieces(text: str) -> list[str]:
    """Passages of equal length that do not overlap, cut to begin and end with whole words."""
    pieces = [
        text[start : start + CHARACTERS] for start in range(0, len(text) - CHARACTERS, CHARACTERS)
    ]
    whole = [piece.partition(" ")[2].rpartition(" ")[0].strip() for piece in pieces]
    return [piece for piece in whole if len(piece) > CHARACTERS // 2]


def read_labelled_csv(path: Path) -> LabelledTexts:
    """Labelled texts from a CSV file.

    Either a header with the columns ``label`` and ``text``, among others or not; or AG News'
    own form, with or without its header: class, title, description, the last two being the text.

    Raises:
        UsageError: the file cannot be read or has other columns, with the row.
        NotMeasurableError: it has one class only.
    """
    rows = _rows(path)
    label, *text = _columns(path, rows)
    if rows[0][label].strip().lower() in {"label", "class", "class index"}:
        rows = rows[1:]
    pairs = []
    for number, row in enumerate(rows, start=1):
        if len(row) <= max(label, *text):
            raise UsageError(f"{path}: text {number} has {len(row)} columns, too few.")
        pairs.append((row[label].strip(), " ".join(row[i].strip() for i in text).strip()))
    empty = sum(not words for _, words in pairs)
    if empty or not pairs:
        raise UsageError(f"{path}: {empty} of {len(pairs)} texts are empty.")
    classes = sorted({name for name, _ in pairs})
    if len(classes) < 2:
        raise NotMeasurableError(
            f"{path.name} has one class only ({classes[0]!r}, {len(pairs)} texts): a probe tells "
            "classes apart and needs 2 or more."
        )
    return LabelledTexts(
        name=path.name,
        texts=tuple(words for _, words in pairs),
        labels=np.array([classes.index(name) for name, _ in pairs]),
        classes=tuple(classes),
    )


def _rows(path: Path) -> list[list[str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file) if any(cell.strip() for cell in row)]
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text (byte {error.start}).") from error
    except csv.Error as error:
        raise UsageError(f"{path} is not a CSV file: {error}.") from error
    except OSError as error:
        raise UsageError(f"cannot read the labelled texts {path}: {error.strerror}.") from error
    if not rows:
        raise UsageError(f"{path} is empty: there is no labelled text in it.")
    return rows


def _columns(path: Path, rows: list[list[str]]) -> tuple[int, ...]:
    """Columns of the label and of the text."""
    header = [cell.strip().lower() for cell in rows[0]]
    if {"label", "text"} <= set(header):
        return header.index("label"), header.index("text")
    if len(header) == 3:
        return 0, 1, 2
    raise UsageError(
        f"{path} has the columns {', '.join(rows[0][:6])!r}. It needs a header with 'label' and "
        "'text', or AG News' three columns: class, title, description."
    )


def evenly_over_classes(
    labelled: LabelledTexts, most: int, rng: np.random.Generator
) -> LabelledTexts:
    """At most so many texts, equally many of each class where there are enough.

    Args:
        labelled: all texts.
        most: texts that are kept, over all classes.
        rng: decides which.
    """
    share = max(1, most // len(labelled.classes))
    kept = np.concatenate(
        [
            rng.permutation(np.flatnonzero(labelled.labels == index))[:share]
            for index in range(len(labelled.classes))
        ]
    )
    kept.sort()
    return LabelledTexts(
        name=labelled.name,
        texts=tuple(labelled.texts[i] for i in kept),
        labels=labelled.labels[kept],
        classes=labelled.classes,
    )


def check_folds(labelled: LabelledTexts, folds: int) -> None:
    """Refuse fewer texts of a class than folds: some fold would have none to be tested on.

    Raises:
        NotMeasurableError: the smallest class, with both numbers.
    """
    counts = np.bincount(labelled.labels, minlength=len(labelled.classes))
    least = int(counts.argmin())
    if counts[least] < folds:
        raise NotMeasurableError(
            f"class {labelled.classes[least]!r} of {labelled.name} has {counts[least]} texts, "
            f"fewer than the {folds} folds of the probe. Give more texts of each class."
        )
