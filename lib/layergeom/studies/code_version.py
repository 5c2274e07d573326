"""The version of the code that a result depends on: a hash of the modules it can reach."""

import ast
import hashlib
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).parents[1]

#: Modules that move and show results and cannot change them. Where a model comes from, and how it
#: was trained, is in its weights, whose hash every result has among its inputs.
_PLUMBING = frozenset(
    f"layergeom.{name}"
    for name in (
        *("errors", "files", "paths", "progress", "studies.store", "studies.code_version"),
        *("models.sources", "models.checkpoints"),
    )
)


def _source(name: str) -> Path | None:
    """A module's file. Found by its name alone: asking Python for it would import its parents."""
    base = _ROOT.joinpath(*name.split(".")[1:])
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


@cache
def _module(name: str) -> tuple[str, frozenset[str]]:
    """A module's code without its docstrings, and the project's modules that it imports."""
    path = _source(name)
    if path is None:
        return "", frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("layergeom"):
            assert node.module is not None
            imported.add(node.module)
            imported.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            imported.update(a.name for a in node.names if a.name.startswith("layergeom"))
        if isinstance(
            node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef | ast.Module
        ) and isinstance(node.body[0] if node.body else None, ast.Expr):
            first = node.body[0]
            assert isinstance(first, ast.Expr)
            if isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
                # Prose about the code is not the code.
                first.value.value = ""
    return ast.dump(tree), frozenset(name for name in imported if _source(name) is not None)


def code_version(*modules: str) -> str:
    """Hash of the code of these modules and of all of the project's that they import.

    Comments, docstrings and layout do not count, so that editing prose costs no recomputation;
    neither do the modules that only move results.
    """
    pending, seen = list(modules), set[str]()
    while pending:
        name = pending.pop()
        if name not in seen and name not in _PLUMBING:
            seen.add(name)
            pending.extend(_module(name)[1])
    digest = hashlib.sha256()
    for name in sorted(seen):
        digest.update(f"{name}\0{_module(name)[0]}\0".encode())
    return digest.hexdigest()[:16]
