"""The version of the code that a result depends on: a hash of the modules it can reach."""

import ast
import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

#: Modules that move and show results and cannot change them.
_PLUMBING = frozenset(
    f"layergeom.{name}"
    for name in ("errors", "files", "paths", "progress", "studies.store", "studies.code_version")
)


@cache
def _module(name: str) -> tuple[str, frozenset[str]]:
    """A module's code without its docstrings, and the project's modules that it imports."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        return "", frozenset()
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
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
    return ast.dump(tree), frozenset(name for name in imported if _is_module(name))


@cache
def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


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
