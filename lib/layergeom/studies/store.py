"""Results on disk: computed once, keyed by everything they depend on, never half written."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from layergeom.errors import LayergeomError
from layergeom.files import lock, sha256_of, sha256_of_text, whole_folder, write_text
from layergeom.paths import home
from layergeom.progress import say

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Results:
    """What a study computes, before it is stored.

    Attributes:
        arrays: by name; each becomes a file of its own, so that one can be read alone.
        tables: by name.
        facts: small values that fit JSON.
    """

    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Artefact:
    """A stored result; its parts are read, and their checksums verified, when asked for."""

    folder: Path
    inputs: Mapping[str, Any]
    facts: Mapping[str, Any]
    checksums: Mapping[str, str]

    def _verified(self, file: str) -> Path:
        path = self.folder / file
        if not path.is_file() or sha256_of(path) != self.checksums.get(file):
            raise DamagedArtefactError(
                f"the stored result {path} is damaged or missing. Delete {self.folder} and run "
                "the command again: it will be computed anew."
            )
        return path

    def array(self, name: str) -> np.ndarray:
        """One array.

        Raises:
            LayergeomError: the file is damaged or missing.
        """
        try:
            return load_file(self._verified(f"{name}.safetensors"))[name]
        except SafetensorError as error:
            raise DamagedArtefactError(f"{self.folder / name}.safetensors: {error}") from error

    def table(self, name: str) -> pd.DataFrame:
        """One table.

        Raises:
            LayergeomError: the file is damaged or missing.
        """
        return pd.read_parquet(self._verified(f"{name}.parquet"))


class DamagedArtefactError(LayergeomError):
    """A stored result whose bytes are not those that were written."""


def _canonical(inputs: Mapping[str, Any]) -> str:
    return json.dumps(inputs, sort_keys=True, ensure_ascii=True, allow_nan=False)


def artefact_folder(study: str, inputs: Mapping[str, Any]) -> Path:
    """Where the result of a study with these inputs is, or will be."""
    return home() / "results" / study / sha256_of_text(_canonical(inputs))[:20]


def find(study: str, inputs: Mapping[str, Any]) -> Artefact | None:
    """The stored result, or None where there is none that is whole.

    A result with files missing or of another length than written is not whole; the bytes are
    verified when they are read.
    """
    folder = artefact_folder(study, inputs)
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        digest = manifest.pop("sha256")
        if digest != sha256_of_text(_canonical(manifest)) or manifest["inputs"] != inputs:
            raise ValueError
        files: dict[str, dict[str, Any]] = manifest["files"]
        if any((folder / name).stat().st_size != entry["bytes"] for name, entry in files.items()):
            raise ValueError
        checksums = {name: entry["sha256"] for name, entry in files.items()}
        return Artefact(folder, manifest["inputs"], manifest["facts"], checksums)
    except FileNotFoundError:
        if folder.exists():
            say(f"The stored result {folder} is incomplete; it is computed anew.")
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        say(f"The stored result {folder} is damaged; it is computed anew.")
        return None


def compute_or_load(
    study: str, inputs: Mapping[str, Any], compute: Callable[[], Results]
) -> Artefact:
    """The stored result of a study, computed and stored first if it is not there.

    Args:
        study: name of the study; a folder of the cache.
        inputs: everything that the result depends on, as JSON values.
        compute: called at most once, while the artefact's lock is held.
    """
    return stream_or_load(study, inputs, lambda _: compute())


def stream_or_load(
    study: str, inputs: Mapping[str, Any], compute: Callable[[Path], Results]
) -> Artefact:
    """As ``compute_or_load``, for results that do not fit into memory.

    Args:
        study: name of the study; a folder of the cache.
        inputs: everything that the result depends on, as JSON values.
        compute: gets the folder in which the result is made. It may write arrays there, each into
            a file of its own, and returns the rest.
    """
    found = find(study, inputs)
    if found is not None:
        return found
    folder = artefact_folder(study, inputs)
    with lock(folder):
        found = find(study, inputs)  # another process may have made it meanwhile
        if found is not None:
            return found
        with whole_folder(folder) as partial:
            _write(partial, inputs, compute(partial))
    stored = find(study, inputs)
    if stored is None:
        raise LayergeomError(f"the result written to {folder} cannot be read back.")
    return stored


def _write(folder: Path, inputs: Mapping[str, Any], results: Results) -> None:
    for name, array in results.arrays.items():
        save_file({name: np.ascontiguousarray(array)}, folder / f"{name}.safetensors")
    for name, table in results.tables.items():
        table.to_parquet(folder / f"{name}.parquet", index=False)
    files = {
        path.name: {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
        for path in sorted(folder.iterdir())
    }
    manifest: dict[str, Any] = {"inputs": inputs, "facts": results.facts, "files": files}
    manifest["sha256"] = sha256_of_text(_canonical(manifest))
    write_text(folder / MANIFEST, json.dumps(manifest, indent=1, sort_keys=True) + "\n")
