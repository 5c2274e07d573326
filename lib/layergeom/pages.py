"""From an executed notebook to a page of the book."""

import copy
import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from layergeom.errors import LayergeomError
from layergeom.naming import ACROSS, METADATA, slug

#: Parameters that every page's command leaves out: they say where files go and what other pages
#: there are, not what is in them.
_PLACES = {"folder", "notebooks"}


def verify_executed(content: NotebookNode, name: str) -> None:
    """Check that every cell ran to its end.

    A cell that calls ``sys.exit(0)`` ends the run without an error, and the cells after it have
    never run: their missing counts tell.

    Raises:
        LayergeomError: an error output, or a code cell that has not run.
    """
    for cell in content.cells:
        if cell.cell_type != "code" or not cell.source.strip():
            continue
        for output in cell.outputs:
            if output.output_type == "error":
                raise LayergeomError(f"{name} failed: {output.ename}: {output.evalue}")
        if cell.execution_count is None:
            first = cell.source.strip().splitlines()[0]
            raise LayergeomError(f"{name} stopped early: a cell never ran, beginning {first!r}.")


def page_label(notebook: str, subject: str) -> str:
    """A page's label and file name: the notebook's own name and what it is about."""
    return f"{notebook.split('/')[-1]}--{slug(subject)}"


def make_page(
    content: NotebookNode,
    name: str,
    subject: str,
    parameters: Mapping[str, Any],
    folder: Path,
) -> NotebookNode:
    """A page with its subject in title and label, captions, alt text and downloads.

    Whatever changes from run to run (times, random cell ids) is dropped: two builds of the same
    inputs give the same bytes.

    Args:
        content: the executed notebook.
        name: section and name of the notebook.
        subject: the model's name on pages, or that of all of them.
        parameters: what it was run with.
        folder: where its figure and data lie.

    Raises:
        LayergeomError: it publishes no figure or table, or more than one.
    """
    page = copy.deepcopy(content)
    page.cells = [c for c in page.cells if "injected-parameters" not in c.metadata.get("tags", [])]
    label = page_label(name, subject)
    published = 0
    for cell in page.cells:
        cell.metadata.pop("papermill", None)
        cell.metadata.pop("execution", None)
    for count, cell in enumerate((c for c in page.cells if c.cell_type == "code"), start=1):
        _number(cell, count)
        published += _finish_code_cell(cell, label)
    if published != 1:
        raise LayergeomError(f"{name} shows {published} figures or tables; a page has one.")
    _name_title(page, subject, label)
    page.cells.append(_footer(name, parameters, label, folder))
    return _plain(page)


def missing_page(content: NotebookNode, name: str, subject: str, reason: str) -> NotebookNode:
    """A page with the notebook's question and, in the place of an answer, why there is none."""
    page = copy.deepcopy(content)
    page.cells = page.cells[:1]
    _name_title(page, subject, page_label(name, subject))
    page.cells.append(
        new_markdown_cell(f":::{{admonition}} Not measured\n:class: missing\n{escape(reason)}\n:::")
    )
    return _plain(page)


def _plain(page: NotebookNode) -> NotebookNode:
    for index, cell in enumerate(page.cells):
        cell["id"] = f"cell-{index}"
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    page.metadata = NotebookNode(kernelspec=page.metadata.get("kernelspec", kernel))
    return page


def _number(cell: NotebookNode, count: int) -> None:
    """Count cells from 1, whatever a kernel ran before."""
    cell.execution_count = count
    for output in cell.outputs:
        if "execution_count" in output:
            output.execution_count = count


def _finish_code_cell(cell: NotebookNode, label: str) -> int:
    """Hide the code behind a button; give the figure or table its caption, name and alt text."""
    cell.metadata["tags"] = sorted({*cell.metadata.get("tags", []), "hide-input"})
    # Warnings of libraries are for the terminal, not for readers.
    cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
    published = 0
    for output in cell.outputs:
        page = output.get("metadata", {}).pop(METADATA, None)
        if page is None:
            continue
        published += 1
        output["metadata"] = {}
        if page["kind"] == "table":
            output["data"]["text/markdown"] = (
                f"````{{table}} {page['caption']}\n:name: tab-{label}\n\n"
                f"{output['data']['text/markdown']}\n````"
            )
            continue
        cell.metadata["mystnb"] = {
            "image": {"alt": page["alt"], "width": "100%"},
            "figure": {"caption": page["caption"], "name": f"fig-{label}"},
        }
    return published


def _name_title(page: NotebookNode, subject: str, label: str) -> None:
    first = page.cells[0]
    title, _, rest = first.source.partition("\n")
    if first.cell_type != "markdown" or not title.startswith("# "):
        raise LayergeomError("a notebook must begin with a title, as a question.")
    about = "" if subject == ACROSS else f" ({escape(subject)})"
    first.source = f"({label})=\n{title}{about}\n{rest}"


def escape(text: str) -> str:
    """Text that Markdown and HTML show as it is."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_{}\[\]()#!|$])", r"\\\1", text)


def command(name: str, parameters: Mapping[str, Any]) -> str:
    """The command that makes a page again."""
    words = ["layergeom", "run", name]
    for model in parameters.get("models", [parameters.get("model")]):
        words += ["--model", str(model)]
    for key, value in sorted(parameters.items()):
        if key not in {"model", "models", *_PLACES}:
            words += ["-p", f"{key}={_text(value)}"]
    return shlex.join(words)


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _footer(name: str, parameters: Mapping[str, Any], label: str, folder: Path) -> NotebookNode:
    record = json.loads((folder / f"{label}.json").read_text(encoding="utf-8"))
    downloads = " · ".join(
        f"{{download}}`{text} <{label}.{suffix}>`"
        for suffix, text in (
            ("csv", "data (CSV)"),
            ("svg", "figure (SVG)"),
            ("png", "figure (PNG)"),
            ("pdf", "figure (PDF)"),
            ("json", "provenance (JSON)"),
        )
        if (folder / f"{label}.{suffix}").is_file()
    )
    rows = "\n".join(f"| {key} | {escape(_short(value))} |" for key, value in record.items())
    return new_markdown_cell(
        f"## Take it with you\n\n{downloads}\n\n"
        f"Make this page again, or with another model in place of this one:\n\n"
        f"```bash\n{command(name, parameters)}\n```\n\n"
        f"````{{dropdown}} Where these numbers come from\n"
        f"| | |\n|---|---|\n{rows}\n````\n"
    )


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{k} {v}" for k, v in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "none" if value is None else str(value)
