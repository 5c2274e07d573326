"""Texts as documents: what is packed, split and sampled is always whole documents."""

import re
from dataclasses import dataclass
from pathlib import Path

from layergeom.errors import UsageError
from layergeom.files import sha256_of_text

#: About two or three sequences of 128 tokens: long enough to pack, short enough that a file of a
#: few pages has several stretches to choose from.
STRETCH_CHARACTERS = 2000

_WIKITEXT_TITLE = re.compile(r"^ = ([^=\n]+) = $", re.MULTILINE)


@dataclass(frozen=True)
class Document:
    """One document: an article, or a stretch of a text file."""

    title: str
    text: str


@dataclass(frozen=True)
class Corpus:
    """Named documents.

    Attributes:
        name: name of the corpus, or the file's name.
        documents: the documents in order.
        sha256: hash of all titles and texts.
    """

    name: str
    documents: tuple[Document, ...]
    sha256: str

    @property
    def characters(self) -> int:
        """Characters in all documents together."""
        return sum(len(document.text) for document in self.documents)


def make_corpus(name: str, documents: list[Document]) -> Corpus:
    """A corpus with its hash."""
    joined = "\x1e".join(f"{document.title}\x1f{document.text}" for document in documents)
    return Corpus(name, tuple(documents), sha256_of_text(joined))


def is_held_out(document: Document) -> bool:
    """Whether a document is kept from the training of the models trained here.

    Decided by the title alone, one document in eight, so that it never depends on the others.
    """
    return int(sha256_of_text(document.title)[:8], 16) % 8 == 0


def held_out(corpus: Corpus) -> Corpus:
    """The held-out part of a corpus, as a corpus of its own."""
    kept = [document for document in corpus.documents if is_held_out(document)]
    return make_corpus(f"{corpus.name} (held out)", kept)


def _stretches(name: str, text: str) -> list[Document]:
    """Cut a text at paragraph breaks into stretches of about ``STRETCH_CHARACTERS``."""
    documents: list[Document] = []
    pending: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        pending.append(paragraph)
        if sum(map(len, pending)) >= STRETCH_CHARACTERS:
            documents.append(Document(f"{name} {len(documents) + 1}", "\n\n".join(pending)))
            pending = []
    if any(part.strip() for part in pending):
        documents.append(Document(f"{name} {len(documents) + 1}", "\n\n".join(pending)))
    return documents


def read_text_corpus(path: Path) -> Corpus:
    """A text file as a corpus.

    A file in WikiText's form is cut at its article titles, any other at paragraph breaks, into
    stretches of about 2,000 characters.

    Raises:
        UsageError: the file is missing, not UTF-8 text, or empty.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text (byte {error.start}).") from error
    except OSError as error:
        raise UsageError(f"cannot read the text file {path}: {error.strerror}.") from error
    if not text.strip():
        raise UsageError(f"the text file {path} is empty: there is nothing to measure.")
    titles = list(_WIKITEXT_TITLE.finditer(text))
    if titles:
        ends = [match.start() for match in titles[1:]] + [len(text)]
        documents = [
            Document(match.group(1), text[match.start() : end].strip())
            for match, end in zip(titles, ends, strict=True)
        ]
        before = text[: titles[0].start()].strip()
        if before:
            documents.insert(0, Document(path.name, before))
    else:
        documents = _stretches(path.name, text)
    return make_corpus(path.name, documents)
