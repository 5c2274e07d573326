"""The places that name the dependencies agree."""

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
CONDA_NAMES = {"pytorch": "torch"}


def _split(requirement: str) -> tuple[str, str]:
    match = re.match(r"([A-Za-z0-9_.-]+?)((?:[<>=!~].*)?)$", requirement)
    assert match, requirement
    name = match.group(1).lower().replace("_", "-")
    return CONDA_NAMES.get(name, name), match.group(2)


def _pyproject() -> dict[str, str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return dict(map(_split, project["dependencies"]))


def _environment() -> dict[str, str]:
    rows = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    pip = next(row["pip"] for row in rows if isinstance(row, dict))
    names = [row for row in rows if isinstance(row, str)] + [r for r in pip if "editable" not in r]
    found = dict(map(_split, names))
    return {name: spec for name, spec in found.items() if name not in ("python", "pip")}


def test_environment_yml_and_pyproject_name_the_same_packages_and_versions() -> None:
    assert _environment() == _pyproject()


def test_every_dependency_is_justified_in_its_line() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    block = text[text.index("dependencies = [") : text.index("[project.scripts]")]
    lines = [line for line in block.splitlines() if line.strip().startswith('"')]
    assert len(lines) > 20
    assert [line for line in lines if "# " not in line] == []


def test_the_constraints_pin_every_dependency_within_its_bounds() -> None:
    from packaging.specifiers import SpecifierSet

    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = dict(_split(line) for line in lines if line and not line.startswith("#"))
    for name, spec in _pyproject().items():
        assert pinned[name].startswith("=="), name
        assert pinned[name][2:] in SpecifierSet(spec), name


def test_torch_is_pinned() -> None:
    assert _pyproject()["torch"] == "==2.13.0"
