"""Lay out a book: the prose spine, every page of a profile, and the pages that lead to them."""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from layergeom.files import make_folder
from layergeom.models.sources import display_name
from layergeom.naming import ACROSS, slug
from layergeom.notebooks import Notebook, output_path, read_notebook
from layergeom.pages import escape, page_label
from layergeom.profiles import Profile

#: What a model's overview says of it, from its pages' provenance: key and words.
_FACTS = {
    "model_type": "architecture",
    "depth": "blocks, $L$",
    "width": "width, $d$",
    "vocabulary": "tokens of the vocabulary",
    "loss": "loss on the text, nats a token",
    "revision": "revision",
    "corpus": "text",
    "sequence_length": "tokens a sequence",
}


@dataclass(frozen=True)
class StagedPage:
    """One page of the book, as the pages that lead to it need it.

    Attributes:
        section: folder of its notebook.
        label: label and file name.
        question: title of its notebook.
        subject: the model's name, or that of all of them.
        alt: text of its figure; None for a table or a missing result.
        missing: whether there was nothing to show.
        provenance: the record of its numbers; empty where there are none.
    """

    section: str
    label: str
    question: str
    subject: str
    alt: str | None
    missing: bool
    provenance: Mapping[str, Any]


def stage(root: Path, pages: Path, profile: Profile, staging: Path) -> None:
    """Write the book's sources into a fresh folder.

    Args:
        root: the checkout.
        pages: where the profile's executed pages are.
        profile: the profile.
        staging: the folder.
    """
    shutil.copy(root / "_config.yml", staging)
    shutil.copytree(root / "book", staging / "book")
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    sections: dict[str, list[dict[str, Any]]] = {}
    every: list[StagedPage] = []
    notebooks = [read_notebook(root, name) for name in profile.notebooks]
    # Pages that compare models come first in their chapter.
    for notebook in sorted(notebooks, key=lambda n: (n.scope != "across", n.order)):
        section = notebook.name.split("/")[0]
        subjects = (
            [ACROSS]
            if notebook.scope == "across"
            else [display_name(model) for model in profile.every_model]
        )
        staged = [_stage_page(pages, notebook, subject, staging) for subject in subjects]
        every += staged
        files: list[dict[str, Any]] = [{"file": f"pages/{section}/{page.label}"} for page in staged]
        if notebook.scope == "per model":
            _write_question(notebook, staged, staging)
            files = [{"file": f"pages/{notebook.name}", "sections": files}]
        sections.setdefault(section, []).extend(files)
    overviews = [
        _write_overview(display_name(model), every, staging) for model in profile.every_model
    ]
    _insert(toc, sections, overviews)
    (staging / "_toc.yml").write_text(yaml.safe_dump(toc, sort_keys=False), encoding="utf-8")


def _stage_page(pages: Path, notebook: Notebook, subject: str, staging: Path) -> StagedPage:
    source = output_path(pages, notebook.name, subject)
    section = notebook.name.split("/")[0]
    target = make_folder(staging / "pages" / section)
    label = page_label(notebook.name, subject)
    for path in sorted(source.parent.glob(f"{label}.*")):
        shutil.copy(path, target)
    cells = json.loads(source.read_text(encoding="utf-8"))["cells"]
    images = [cell["metadata"]["mystnb"]["image"] for cell in cells if "mystnb" in cell["metadata"]]
    record = source.with_suffix(".json")
    return StagedPage(
        section=section,
        label=label,
        question=notebook.question,
        subject=subject,
        alt=images[0]["alt"] if images else None,
        missing=not record.is_file(),
        provenance=json.loads(record.read_text(encoding="utf-8")) if record.is_file() else {},
    )


def _card(page: StagedPage, title: str, folder: str) -> str:
    """A small picture of a page that leads to it."""
    lines = [f":::{{grid-item-card}} {title}", f":link: {page.label}", ":link-type: ref"]
    if page.alt is not None:
        # Options end with their line, whatever a model is called.
        lines += [
            f":img-bottom: {folder}{page.label}.svg",
            f":img-alt: {' '.join(page.alt.split())}",
        ]
    says = "Not measured; the page says why." if page.missing else "A table."
    lines += ["", "" if page.alt is not None else says, ":::"]
    return "\n".join(lines)


def _grid(cards: Sequence[str]) -> str:
    return "\n".join(["::::{grid} 1 1 2 2", ":gutter: 2", "", *cards, "::::"])


def _write_question(notebook: Notebook, staged: Sequence[StagedPage], staging: Path) -> None:
    cards = [_card(page, escape(page.subject), "") for page in staged]
    text = f"# {notebook.question}\n\n{notebook.context}\n\n{_grid(cards)}\n"
    (staging / "pages" / f"{notebook.name}.md").write_text(text, encoding="utf-8")


def _write_overview(model: str, every: Sequence[StagedPage], staging: Path) -> str:
    """One page with all of a model's figures, small."""
    pages = [page for page in every if page.subject == model]
    records: dict[str, Any] = {}
    for page in pages:
        records = {**page.provenance, **records}
    facts = "\n".join(
        f"| {words} | {escape(_fact(records[key]))} |"
        for key, words in _FACTS.items()
        if records.get(key) is not None
    )
    cards = [_card(page, page.question, f"../{page.section}/") for page in pages]
    target = make_folder(staging / "pages" / "models") / f"{slug(model)}.md"
    target.write_text(
        f"(model--{slug(model)})=\n# {escape(model)} at a glance\n\n| | |\n|---|---|\n{facts}\n\n"
        f"{_grid(cards)}\n",
        encoding="utf-8",
    )
    return f"pages/models/{target.stem}"


def _fact(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _insert(
    toc: dict[str, Any], sections: Mapping[str, list[dict[str, Any]]], overviews: Sequence[str]
) -> None:
    """Put each section's pages under its chapter ``book/<section>``, and the models after them."""
    for part in toc["parts"]:
        for chapter in part["chapters"]:
            name = chapter["file"].removeprefix("book/")
            if name in sections:
                chapter["sections"] = sections[name]
    toc["parts"].insert(
        1, {"caption": "The models", "chapters": [{"file": file} for file in overviews]}
    )
