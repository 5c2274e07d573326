"""Imports run downwards only, and the mathematics stands alone."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import layergeom

LIB = Path(layergeom.__file__).parent

#: From the bottom up. A module may import its own rung and those below.
RUNGS: tuple[frozenset[str], ...] = (
    frozenset({"geometry"}),
    frozenset({"models", "corpora", "report"}),
    frozenset({"studies"}),
    frozenset({"claims"}),
    frozenset({"notebooks", "book", "profiles", "pages", "direct", "staging"}),
    frozenset({"cli", "__main__"}),
)

#: Plain helpers (messages, files, progress) that import nothing above themselves.
HELPERS = frozenset({"errors", "files", "naming", "paths", "progress", "scan", "jupyter_book"})

#: All that the mathematics needs besides Python.
GEOMETRY_NEEDS = frozenset({"numpy", "scipy", "numba", "jaxtyping", "threadpoolctl", "sklearn"})


def modules(folder: Path = LIB) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def dotted(path: Path) -> str:
    name = ".".join(("layergeom", *path.relative_to(LIB).with_suffix("").parts))
    return name.removesuffix(".__init__")


ALL = {dotted(path) for path in modules()}


def imports(path: Path) -> set[str]:
    """Full names of what a module imports, at its top or inside its functions."""
    found: set[str] = set()
    package = dotted(path) if path.name == "__init__.py" else dotted(path).rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *filter(None, [node.module])])
            names = {f"{base}.{alias.name}" for alias in node.names}
            found |= {name if name in ALL else base for name in names}
    return found


def rung(module: str) -> int | None:
    """Height of a module of the project; None for helpers and the package itself."""
    part = module.split(".")[1] if "." in module else ""
    heights = [height for height, names in enumerate(RUNGS) if part in names]
    return heights[0] if heights else None


def of_the_project(names: set[str]) -> set[str]:
    return {name for name in names if name.split(".")[0] == "layergeom"}


def test_every_part_of_the_package_has_its_place() -> None:
    parts = {name.split(".")[1] for name in ALL if "." in name}
    assert parts - frozenset().union(*RUNGS) - HELPERS == set()


def test_the_scan_sees_imports_inside_functions() -> None:
    assert "layergeom.book" in imports(LIB / "cli.py")
    assert "layergeom.direct" in imports(LIB / "cli.py")


@pytest.mark.parametrize("path", modules(), ids=dotted)
def test_imports_run_downwards_only(path: Path) -> None:
    own = rung(dotted(path))
    for name in of_the_project(imports(path)):
        below = rung(name)
        if below is None:
            continue
        assert own is not None, f"{dotted(path)} is a helper and imports {name}"
        assert below <= own, f"{dotted(path)} imports {name}, which lies above it"


@pytest.mark.parametrize("path", modules(LIB / "geometry"), ids=dotted)
def test_geometry_imports_nothing_else_of_the_project(path: Path) -> None:
    assert {n for n in of_the_project(imports(path)) if rung(n) != 0} == set()


@pytest.mark.parametrize("path", modules(LIB / "geometry"), ids=dotted)
def test_geometry_needs_numerical_packages_only(path: Path) -> None:
    outside = {name.split(".")[0] for name in imports(path)} - set(sys.stdlib_module_names)
    assert outside - {"layergeom"} <= GEOMETRY_NEEDS


def test_importing_geometry_loads_no_model_and_no_plot() -> None:
    heavy = ("torch", "transformers", "pandas", "matplotlib", "sklearn")
    code = (
        "import sys, layergeom.geometry; "
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
