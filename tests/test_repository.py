"""What the repository holds and what it must not."""

import json
import re
import subprocess
from pathlib import Path

import jupytext
import pytest
import yaml

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").rglob("*.py"))


def _tracked() -> list[str]:
    done = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip("not a git checkout: what is tracked cannot be told")
    return done.stdout.splitlines()


def test_nothing_generated_is_committed() -> None:
    generated = (".ipynb", ".html", ".safetensors", ".gguf", ".parquet", ".pyc", ".npz")
    assert [name for name in _tracked() if name.endswith(generated)] == []
    assert [name for name in _tracked() if name.startswith(("_build/", ".venv/"))] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_short_and_asks_a_question(path: Path) -> None:
    cells = jupytext.read(path).cells
    code = [line for c in cells if c.cell_type == "code" for line in c.source.splitlines()]
    statements = [line for line in code if line.strip() and not line.strip().startswith("#")]
    prose = [line for line in statements if re.fullmatch(r"\s*f?r?\".*\"\s*[,)]*", line)]
    assert len(statements) - len(prose) < 80
    title = cells[0].source.splitlines()[0]
    assert title.startswith("# ")
    assert title.endswith("?")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_has_one_parameters_cell_of_typed_commented_defaults(path: Path) -> None:
    tagged = [c for c in jupytext.read(path).cells if "parameters" in c.metadata.get("tags", [])]
    assert len(tagged) == 1
    for line in tagged[0].source.splitlines():
        assert re.fullmatch(r"\w+: (str|int|float|list) = \S.*  # \S.*", line), line


def test_the_committed_table_of_contents_names_files_that_exist() -> None:
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    files = [toc["root"], *(c["file"] for part in toc["parts"] for c in part["chapters"])]
    assert [name for name in files if not (ROOT / f"{name}.md").is_file()] == []


def test_the_notebooks_metadata_is_json_safe() -> None:
    for path in NOTEBOOKS:
        json.dumps(jupytext.read(path).metadata)
