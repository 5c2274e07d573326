"""Files that appear whole or not at all."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from layergeom.errors import LayergeomError


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_text(text: str) -> str:
    """SHA-256 of a text's UTF-8 bytes, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def make_folder(folder: Path) -> Path:
    """Create a folder with its parents.

    Raises:
        LayergeomError: the system refuses, with its reason.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LayergeomError(f"cannot create the folder {folder}: {error.strerror}.") from error
    return folder


def check_writable(folder: Path) -> None:
    """Find out that nothing can be written into a folder before anything is computed.

    Raises:
        LayergeomError: the system refuses, with its reason.
    """
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise LayergeomError(f"cannot write into the folder {folder}: {error.strerror}.") from error


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Hold the lock of an artefact, so that two processes do not make it at once."""
    make_folder(path.parent)
    with FileLock(path.with_name(f".{path.name}.lock")):
        yield


def _partial(path: Path) -> Path:
    """The name under which a file or folder is made.

    Always the same for the same target: what a killed process left there is cleared by the next
    one. Two processes never make the same target at once; where they could, they hold its lock.
    """
    return make_folder(path.parent) / f".partial-{path.name}"


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary path that takes the place of ``path`` when the block succeeds."""
    temporary = _partial(path)
    temporary.unlink(missing_ok=True)
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A temporary folder that takes the place of ``path`` when the block succeeds.

    A folder already at ``path`` is replaced.
    """
    temporary = _partial(path)
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        yield temporary
        if path.exists():
            shutil.rmtree(path)
        os.replace(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def scratch_folder(path: Path) -> Iterator[Path]:
    """A folder to work in beside ``path``, gone afterwards whatever happens."""
    temporary = _partial(path)
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file whole."""
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
