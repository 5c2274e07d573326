"""The papermill runner: what it refuses, what it leaves, and what a page carries."""

import shutil
from pathlib import Path
from typing import Any

import jupytext
import nbformat
import pytest

from layergeom.errors import LayergeomError, NotMeasurableError, UsageError
from layergeom.notebooks import (
    one_kernel,
    publish_missing,
    read_notebook,
    run_notebook,
    subject,
    typed_parameters,
)
from layergeom.pages import command, escape, verify_executed

ROOT = Path(__file__).parents[2]

HEADER = """# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Is it so?

# %% tags=["parameters"]
model: str = "m"  # a model
revision: str = ""  # a text that looks like a number
count: int = 1  # a number
folder: str = "."  # where it goes
"""

GOOD = (
    HEADER
    + """
# %%
import matplotlib.pyplot as plt
import pandas as pd

from layergeom import report

figure, axis = plt.subplots()
axis.plot([1, count])
report.publish_figure(
    figure, pd.DataFrame({"x": [1, count]}), name="good", model=model, caption="A line.",
    alt="A line from 1 to 2.", provenance={"revision": revision}, folder=folder,
)
"""
)

ACROSS = GOOD.replace(
    "# jupyter:", "# jupyter:\n#   layergeom: {scope: across, studies: []}", 1
).replace('model: str = "m"  # a model', 'models: list = ["m"]  # models')
ACROSS = ACROSS.replace(
    ACROSS[ACROSS.index("import matplotlib") :],
    """import pandas as pd

from layergeom import report

data = pd.DataFrame({"model": models, "x|y": range(len(models))})
report.publish_table(
    data, data, name="compared", model=report.ACROSS, caption="All of them.",
    provenance={"models": models}, folder=folder,
)
""",
)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "notebooks" / "trial").mkdir(parents=True)
    shutil.copy(ROOT / "_toc.yml", tmp_path)
    return tmp_path


def write(checkout: Path, name: str, text: str) -> None:
    (checkout / "notebooks" / "trial" / f"{name}.py").write_text(text)


def run(checkout: Path, name: str, kernel: Any = None, **given: str) -> Path:
    notebook = read_notebook(checkout, f"trial/{name}")
    parameters = typed_parameters(notebook, {"model": "m", **given})
    return run_notebook(checkout, notebook, parameters, checkout / "pages", kernel)


def visible(checkout: Path) -> list[str]:
    names = sorted(path.name for path in (checkout / "pages" / "trial").iterdir())
    return [name for name in names if not name.endswith(".lock")]


def test_a_page_has_title_figure_caption_alt_data_and_command(checkout: Path) -> None:
    write(checkout, "good", GOOD)
    page = jupytext.read(run(checkout, "good", count="2"))
    assert page.cells[0].source.startswith("(good--m)=\n# Is it so? (m)\n")
    figure = next(c for c in page.cells if "mystnb" in c.metadata)
    assert figure.metadata["mystnb"]["figure"]["caption"] == "A line."
    assert figure.metadata["mystnb"]["image"]["alt"] == "A line from 1 to 2."
    assert "layergeom run trial/good --model m -p count=2" in page.cells[-1].source
    assert not any("injected-parameters" in c.metadata.get("tags", []) for c in page.cells)
    left = visible(checkout)
    assert left == [f"good--m.{s}" for s in ("csv", "ipynb", "json", "pdf", "png", "svg")]


def test_a_comparison_takes_a_list_of_models_and_shows_a_table(checkout: Path) -> None:
    write(checkout, "compared", ACROSS)
    notebook = read_notebook(checkout, "trial/compared")
    assert notebook.scope == "across"
    parameters = typed_parameters(notebook, {"models": "a, b"})
    assert parameters == {"models": ["a", "b"]}
    page = jupytext.read(run_notebook(checkout, notebook, parameters, checkout / "pages"))
    assert page.cells[0].source.startswith("(compared--all-models)=\n# Is it so?\n")
    shown = next(o for c in page.cells if c.cell_type == "code" for o in c.outputs)
    assert shown["data"]["text/markdown"].startswith(
        "````{table} All of them.\n:name: tab-compared"
    )
    assert "| a | 0 |" in shown["data"]["text/markdown"]
    assert "layergeom run trial/compared --model a --model b\n" in page.cells[-1].source
    assert visible(checkout) == [f"compared--all-models.{s}" for s in ("csv", "ipynb", "json")]


def test_a_notebook_about_one_model_refuses_two() -> None:
    with pytest.raises(UsageError, match="takes one model, got 2: a, b"):
        subject(["a", "b"], "per model")


def test_what_cannot_be_measured_is_told_apart_and_its_page_says_why(checkout: Path) -> None:
    write(checkout, "good", GOOD)
    run(checkout, "good")
    failing = (
        "\n# %%\nfrom layergeom.errors import NotMeasurableError\n"
        "raise NotMeasurableError('m has <no> checkpoints')\n"
    )
    write(checkout, "good", GOOD + failing)
    with pytest.raises(NotMeasurableError, match="m has <no> checkpoints"):
        run(checkout, "good")
    notebook = read_notebook(checkout, "trial/good")
    target = publish_missing(notebook, {"model": "m"}, "m has <no> checkpoints", checkout / "pages")
    page = jupytext.read(target)
    assert page.cells[0].source.startswith("(good--m)=\n# Is it so? (m)\n")
    assert ":class: missing" in page.cells[1].source
    assert "m has &lt;no&gt; checkpoints" in page.cells[1].source
    # The figure of an earlier run is not left beside a page that says there is none.
    assert visible(checkout) == ["good--m.ipynb"]


def test_two_runs_of_the_same_inputs_leave_the_same_bytes(checkout: Path) -> None:
    write(checkout, "good", GOOD)
    folder = run(checkout, "good").parent
    first = {path.name: path.read_bytes() for path in folder.iterdir()}
    shutil.rmtree(folder)
    run(checkout, "good")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == first


def test_notebooks_that_share_a_kernel_leave_what_they_leave_alone(checkout: Path) -> None:
    write(checkout, "good", GOOD)
    write(checkout, "bad", HEADER + "\n# %%\nleft = 1 / 0\n")
    asks = "\n# %%\nassert 'axis' in globals() and 'seen' not in globals()\nseen = 1\n"
    write(checkout, "asks", GOOD.replace('name="good"', 'name="asks"') + asks)
    folder = run(checkout, "good").parent
    alone = {path.name: path.read_bytes() for path in folder.iterdir()}
    shutil.rmtree(folder)
    with one_kernel(checkout) as kernel:
        run(checkout, "asks", kernel)
        with pytest.raises(LayergeomError, match="ZeroDivisionError"):
            run(checkout, "bad", kernel)
        run(checkout, "asks", kernel)
        run(checkout, "good", kernel)
    found = {path.name: path.read_bytes() for path in folder.glob("good--*")}
    assert found == {name: data for name, data in alone.items() if name.startswith("good--")}


def test_a_kernel_that_dies_is_named(checkout: Path) -> None:
    write(checkout, "bad", HEADER + "\n# %%\nimport os\nos._exit(9)\n")
    with pytest.raises(LayergeomError, match="trial/bad failed for m: its kernel died"):
        run(checkout, "bad")
    assert visible(checkout) == []


def test_text_that_looks_like_a_number_stays_text(checkout: Path) -> None:
    write(checkout, "good", GOOD)
    for revision in ("12e3456", "007", "1e5", "null", "'; import os #"):
        page = run(checkout, "good", revision=revision)
        assert f'"revision": "{revision}"' in page.with_suffix(".json").read_text()


FAILURES = {
    "raises": ("x = 1 / 0", "ZeroDivisionError"),
    "exits": ("import sys\nsys.exit(0)\n\n# %%\nprint('after')", "stopped early|SystemExit"),
    "shows nothing": ("x = 1", "shows 0 figures or tables"),
}


@pytest.mark.parametrize(("code", "wanted"), FAILURES.values(), ids=list(FAILURES))
def test_a_failed_notebook_is_named_and_leaves_nothing(
    checkout: Path, code: str, wanted: str
) -> None:
    write(checkout, "bad", HEADER + "\n# %%\n" + code + "\n")
    with pytest.raises(LayergeomError, match=wanted) as caught:
        run(checkout, "bad")
    assert "trial/bad" in str(caught.value)
    assert visible(checkout) == []


def test_a_failure_keeps_the_page_that_was_there(checkout: Path) -> None:
    write(checkout, "good", GOOD)
    page = run(checkout, "good")
    before = page.read_bytes()
    write(checkout, "good", GOOD + "\n# %%\nraise ValueError('late')\n")
    with pytest.raises(LayergeomError, match="late"):
        run(checkout, "good")
    assert page.read_bytes() == before


def test_unknown_parameters_are_refused_with_the_known_ones(checkout: Path) -> None:
    write(checkout, "good", GOOD)
    notebook = read_notebook(checkout, "trial/good")
    with pytest.raises(UsageError, match="Did you mean 'count'") as caught:
        typed_parameters(notebook, {"cuont": "2"})
    assert "model, revision, count, folder" in str(caught.value)


def test_a_notebook_without_its_parameters_tag_is_refused(checkout: Path) -> None:
    write(checkout, "untagged", GOOD.replace(' tags=["parameters"]', ""))
    with pytest.raises(UsageError, match="0 cells tagged 'parameters'"):
        read_notebook(checkout, "trial/untagged")


def test_an_error_output_or_an_unrun_cell_is_found() -> None:
    ran = nbformat.v4.new_code_cell("x = 1", execution_count=1)
    verify_executed(nbformat.v4.new_notebook(cells=[ran]), "n")
    unrun = nbformat.v4.new_code_cell("y = 2")
    with pytest.raises(LayergeomError, match="stopped early"):
        verify_executed(nbformat.v4.new_notebook(cells=[ran, unrun]), "n")
    error = nbformat.v4.new_output("error", ename="ValueError", evalue="no", traceback=[])
    failed = nbformat.v4.new_code_cell("z", execution_count=2, outputs=[error])
    with pytest.raises(LayergeomError, match="ValueError: no"):
        verify_executed(nbformat.v4.new_notebook(cells=[failed]), "n")


def test_names_are_escaped_on_pages_and_quoted_in_commands() -> None:
    assert "<img" not in escape("<img src=x onerror=alert(1)>")
    assert command("a/b", {"model": "x; rm -rf /"}) == "layergeom run a/b --model 'x; rm -rf /'"
