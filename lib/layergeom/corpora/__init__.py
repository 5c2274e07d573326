"""Texts: documents, packing into sequences, and the tokens that are measured."""

from pathlib import Path

from layergeom.corpora.documents import Corpus, Document, held_out, read_text_corpus
from layergeom.errors import UsageError, unknown

CORPORA = ("wikipedia-sample",)


def load_corpus(name: str) -> Corpus:
    """A corpus by its name, or a text file by its path.

    Raises:
        UsageError: neither a known corpus nor a file; or the file cannot be read.
    """
    if name == "wikipedia-sample":
        from layergeom.corpora.wikipedia import wikipedia_sample

        return wikipedia_sample()
    if Path(name).exists():
        return read_text_corpus(Path(name))
    if Path(name).suffix or len(Path(name).parts) > 1:
        raise UsageError(f"there is no text file {name}.")
    raise unknown("corpus", name, list(CORPORA), " Or give the path of a text file.")


__all__ = ["CORPORA", "Corpus", "Document", "held_out", "load_corpus", "read_text_corpus"]
