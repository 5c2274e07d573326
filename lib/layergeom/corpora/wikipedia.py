"""``wikipedia-sample``: the articles of the dump sample that the gensim package ships."""

import bz2
import json
import re
from pathlib import Path

from layergeom.corpora.documents import Corpus, Document, make_corpus
from layergeom.errors import LayergeomError
from layergeom.files import lock, sha256_of, write_text
from layergeom.paths import home

NAME = "wikipedia-sample"
DUMP = "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
DUMP_SHA256 = "a53f4648dec40467ebdcbc7a1307eddb51fe6e28e9309f6ebde81ba0d04bea2d"
#: Part of the cached file's name; raise it whenever the cleaning changes.
CLEANING = 2

_BOLD_ITALIC = re.compile(r"'{2,5}")
_HEADING = re.compile(r"^[ \t]*=+[ \t]*(.*?)[ \t]*=+[ \t]*$", re.MULTILINE)
_PICTURE = re.compile(r"^(?:File|Image):.*$|__[A-Z]+__", re.MULTILINE)
_EMPTY_ITEM = re.compile(r"^[*#:;\s]*$", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n{3,}")


def _clean(markup: str) -> str:
    """Plain text of an article: gensim's own parser, then what it leaves of the mark-up."""
    from gensim.corpora.wikicorpus import filter_wiki

    text: str = filter_wiki(markup, promote_remaining=True, simplify_links=True)
    text = _BOLD_ITALIC.sub("", text)
    text = _HEADING.sub(r"\1", text)
    text = _PICTURE.sub("", text)
    text = _EMPTY_ITEM.sub("", text)
    return _BLANK_LINES.sub("\n\n", text).strip()


def _parse(dump: Path) -> list[Document]:
    from gensim.corpora.wikicorpus import extract_pages

    with bz2.open(dump, "rb") as file:
        pages = [
            (title, markup)
            for title, markup, _ in extract_pages(file, ("0",))
            if not markup.lstrip().upper().startswith("#REDIRECT")
        ]
    return [Document(title, _clean(markup)) for title, markup in pages]


def wikipedia_sample() -> Corpus:
    """The cleaned articles, parsed once and cached.

    Raises:
        LayergeomError: the installed gensim ships another dump than the one pinned here.
    """
    cached = home() / "corpora" / f"{NAME}-{DUMP_SHA256[:12]}-{CLEANING}.json"
    with lock(cached):
        try:
            rows = json.loads(cached.read_text(encoding="utf-8"))
            corpus = make_corpus(NAME, [Document(*row) for row in rows["documents"]])
            if corpus.sha256 == rows["sha256"]:
                return corpus
        except (OSError, ValueError, KeyError, TypeError):
            pass  # not there yet, or damaged: parsed anew below
        from gensim.test.utils import datapath

        dump = Path(datapath(DUMP))
        if not dump.is_file() or sha256_of(dump) != DUMP_SHA256:
            raise LayergeomError(
                f"the installed gensim does not ship the expected {DUMP} (SHA-256 "
                f"{DUMP_SHA256[:12]}...). Reinstall it under constraints.txt."
            )
        corpus = make_corpus(NAME, _parse(dump))
        rows = {
            "sha256": corpus.sha256,
            "documents": [[d.title, d.text] for d in corpus.documents],
        }
        write_text(cached, json.dumps(rows))
        return corpus
