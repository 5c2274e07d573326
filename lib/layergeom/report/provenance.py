"""Where a figure comes from: model, text, options, versions and commit."""

import subprocess
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

#: Packages whose versions can move a number.
PACKAGES = ("layergeom", "numpy", "scipy", "numba", "torch", "transformers", "tokenizers", "gensim")


def commit() -> str:
    """The checkout's commit, marked where files differ from it; "not a checkout" elsewhere."""
    folder = Path(__file__).parent
    command = ["git", "-C", str(folder), "describe", "--always", "--abbrev=12", "--dirty"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return "not a checkout"
    return done.stdout.strip() if done.returncode == 0 else "not a checkout"


def provenance(inputs: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    """The record of a result: what it depends on, with versions and commit.

    Args:
        inputs: a stored result's inputs; nested ones are laid flat.
        options: what else was chosen.
    """
    flat: dict[str, Any] = {}
    _flatten(inputs, flat)
    flat.pop("code", None)
    flat |= options
    return {
        **flat,
        "versions": {package: version(package) for package in PACKAGES},
        "commit": commit(),
    }


def _flatten(inputs: Mapping[str, Any], into: dict[str, Any]) -> None:
    for key, value in inputs.items():
        if isinstance(value, Mapping):
            _flatten(value, into)
        elif key not in ("point", "block"):
            into[key] = value
