"""The version of a study's code moves with the code that it can reach, and with nothing else."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import layergeom

CORPORA = "layergeom.corpora"
FITS = "layergeom.studies.fits"
STATES = "layergeom.studies.states"
REPLACEMENT = "layergeom.models.replacement"
MODULES = (CORPORA, FITS, STATES, REPLACEMENT)

APPENDED = "\n\nEXTRA = 1\n"

#: Edits of a copy of the package, by name: file, old text (none: the end of the file), new text.
EDITS: dict[str, list[tuple[str, str, str]]] = {
    "none": [],
    "prose": [
        ("corpora/documents.py", "import re\n", "# A comment.\nimport re\n\n\n"),
        ("corpora/documents.py", '"""A corpus with its hash."""', '"""Something else."""'),
        ("corpora/documents.py", '"""Texts as documents', '"""Other words'),
        ("corpora/documents.py", "if not text.strip():", "if not (\n        text.strip()\n    ):"),
    ],
    "plumbing": [
        ("files.py", "", APPENDED),
        ("errors.py", "exit_status = 1", "exit_status = 3"),
        ("studies/store.py", "", APPENDED),
        ("models/sources.py", "", APPENDED),
        ("models/training.py", "", APPENDED),
    ],
    "package": [("corpora/__init__.py", "", APPENDED)],
    "imported": [("corpora/documents.py", "STRETCH_CHARACTERS = 2000", "STRETCH_CHARACTERS = 1")],
    "imported in a function": [("corpora/wikipedia.py", r"\n{3,}", r"\n{4,}")],
    "packing": [("corpora/packing.py", "", APPENDED)],
    "mathematics": [("geometry/local_maps.py", "RIDGE = 1e-3", "RIDGE = 2e-3")],
}

SCRIPT = """
import importlib, json, sys
found = {}
for name, root in json.loads(sys.argv[1]).items():
    for module in [m for m in sys.modules if m.split(".")[0] == "layergeom"]:
        del sys.modules[module]
    sys.path.insert(0, root)
    package = importlib.import_module("layergeom")
    assert package.__file__.startswith(root)
    code_version = importlib.import_module("layergeom.studies.code_version").code_version
    found[name] = {module: code_version(module) for module in sys.argv[2:]}
print(json.dumps(found))
"""


def edited(folder: Path, edits: list[tuple[str, str, str]]) -> Path:
    """A folder that holds an edited copy of the package."""
    ignore = shutil.ignore_patterns("__pycache__")
    package = shutil.copytree(Path(layergeom.__file__).parent, folder / "layergeom", ignore=ignore)
    for file, old, new in edits:
        path = Path(package) / file
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{file} no longer holds {old!r}"
        text = text.replace(old, new, 1) if old else text + new
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """Version of each module under each edit; all in one process, for importing takes seconds."""
    roots = {name: str(edited(tmp_path_factory.mktemp("copy"), EDITS[name])) for name in EDITS}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(roots), *MODULES],
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, dict[str, str]] = json.loads(done.stdout)
    return found


Versions = dict[str, dict[str, str]]


def test_each_module_has_a_version_of_its_own(versions: Versions) -> None:
    assert len(set(versions["none"].values())) == len(MODULES)


@pytest.mark.parametrize("edit", ["prose", "plumbing"])
def test_prose_layout_and_plumbing_do_not_count(versions: Versions, edit: str) -> None:
    assert versions[edit] == versions["none"]


@pytest.mark.parametrize("edit", ["package", "imported", "imported in a function"])
def test_an_edit_of_any_module_in_reach_counts(versions: Versions, edit: str) -> None:
    moved = {m for m in MODULES if versions[edit][m] != versions["none"][m]}
    # What a model passes on does not depend on how texts are read.
    assert moved == {CORPORA, FITS, STATES}


@pytest.mark.parametrize(("edit", "moved"), [("packing", {FITS, STATES}), ("mathematics", {FITS})])
def test_an_edit_moves_those_that_use_it_and_no_other(
    versions: Versions, edit: str, moved: set[str]
) -> None:
    assert {m for m in MODULES if versions[edit][m] != versions["none"][m]} == moved
