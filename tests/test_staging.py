"""How a book is laid out: comparisons first, a page a question, an overview a model."""

import json
from pathlib import Path

import nbformat
import pytest
import yaml

from layergeom.naming import ACROSS
from layergeom.notebooks import output_path
from layergeom.profiles import Profile
from layergeom.staging import stage

TEXT = """# ---
# jupyter:
#   kernelspec: {{display_name: Python 3, language: python, name: python3}}
#   layergeom: {{scope: {scope}, studies: []}}
# ---

# %% [markdown]
# # {question}
#
# Some context.

# %% tags=["parameters"]
{parameter}
"""
MODELS = ("owner/one", "owner/<two>")


def write_page(root: Path, notebook: str, subject: str, missing: bool) -> None:
    page = output_path(root / "pages", notebook, subject)
    page.parent.mkdir(parents=True, exist_ok=True)
    cell = nbformat.v4.new_code_cell("plot()")
    if not missing:
        cell.metadata["mystnb"] = {"image": {"alt": "A line\nrises."}}
        page.with_suffix(".svg").write_text("<svg/>")
        record = {"width": 32, "loss": 3.14159, "corpus": "some | text"}
        page.with_suffix(".json").write_text(json.dumps(record))
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), page)


@pytest.fixture
def book(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    for name, scope, question in (
        ("readout/b_first", "per model", "Is it first?"),
        ("readout/z_compared", "across", "Which is larger?"),
        ("bridge/third", "per model", "Is it third?"),
    ):
        parameter = 'model: str = "m"  # m' if scope == "per model" else "models: list = []  # m"
        path = root / "notebooks" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TEXT.format(scope=scope, question=question, parameter=parameter))
        for subject in MODELS if scope == "per model" else [ACROSS]:
            write_page(root, name, subject, missing=(name, subject) == ("bridge/third", MODELS[0]))
    (root / "book").mkdir()
    (root / "_config.yml").write_text("title: t\n")
    chapters = [{"file": "book/readout"}, {"file": "book/bridge"}]
    toc = {"root": "book/intro", "parts": [{"chapters": chapters}, {"chapters": []}]}
    (root / "_toc.yml").write_text(yaml.safe_dump(toc))
    staging = tmp_path / "staging"
    staging.mkdir()
    profile = Profile(
        models=MODELS, notebooks=("readout/b_first", "readout/z_compared", "bridge/third")
    )
    stage(root, root / "pages", profile, staging)
    return staging


def test_comparisons_come_first_and_every_model_has_its_page_below_the_question(
    book: Path,
) -> None:
    toc = yaml.safe_load((book / "_toc.yml").read_text())
    readout, bridge = toc["parts"][0]["chapters"]
    assert readout["sections"] == [
        {"file": "pages/readout/z_compared--all-models"},
        {
            "file": "pages/readout/b_first",
            "sections": [
                {"file": "pages/readout/b_first--owner-one"},
                {"file": "pages/readout/b_first--owner-two"},
            ],
        },
    ]
    assert [row["file"] for row in bridge["sections"]] == ["pages/bridge/third"]
    overviews = [row["file"] for row in toc["parts"][1]["chapters"]]
    assert overviews == ["pages/models/owner-one", "pages/models/owner-two"]


def test_every_file_that_the_contents_name_is_there(book: Path) -> None:
    def files(row: dict) -> list[str]:
        return [row["file"], *(f for s in row.get("sections", []) for f in files(s))]

    toc = yaml.safe_load((book / "_toc.yml").read_text())
    named = [f for part in toc["parts"] for chapter in part["chapters"] for f in files(chapter)]
    pages = [name for name in named if name.startswith("pages/")]
    assert len(pages) == 1 + 3 + 3 + 2
    assert [
        n for n in pages if not list(book.glob(f"{n}.md")) + list(book.glob(f"{n}.ipynb"))
    ] == []


def test_a_question_leads_to_each_models_figure(book: Path) -> None:
    text = (book / "pages" / "readout" / "b_first.md").read_text()
    assert text.startswith("# Is it first?\n\nSome context.\n")
    assert ":link: b_first--owner-one" in text
    assert ":img-bottom: b_first--owner-one.svg\n:img-alt: A line rises.\n" in text
    assert "&lt;two&gt;" in text
    assert "<two>" not in text


def test_a_missing_result_is_marked_where_it_would_be_seen(book: Path) -> None:
    text = (book / "pages" / "bridge" / "third.md").read_text()
    one, two = text.split(":link: third--owner-two")
    assert "Not measured" in one
    assert "img-bottom" not in one
    assert "Not measured" not in two


def test_an_overview_has_all_figures_of_its_model_and_its_facts(book: Path) -> None:
    text = (book / "pages" / "models" / "owner-two.md").read_text()
    assert text.startswith("(model--owner-two)=\n# owner/&lt;two&gt; at a glance\n")
    assert "| loss on the text, nats a token | 3.142 |" in text
    assert "some \\| text" in text
    assert ":img-bottom: ../readout/b_first--owner-two.svg" in text
    assert ":img-bottom: ../bridge/third--owner-two.svg" in text
    assert "owner-one" not in text
