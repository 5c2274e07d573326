"""Where the models trained here are on disk; they are trained when they are first asked for."""

import shutil
from importlib.metadata import version
from pathlib import Path

from layergeom.corpora import load_corpus
from layergeom.errors import LayergeomError
from layergeom.files import lock, make_folder, sha256_of_text
from layergeom.models.catalogue import TrainedSource, base_name
from layergeom.models.records import TrainingRecord, read_record
from layergeom.models.weights import has_weights
from layergeom.paths import home
from layergeom.progress import say

#: Part of a trained model's cache key; raise it whenever the training itself changes.
RECIPE = 4


def trained_model(model: str, recipe: TrainedSource) -> tuple[Path, TrainingRecord]:
    """The folder of a model trained here, with a folder for each checkpoint, and its record.

    It is trained first if it is not there, and gone on with if an earlier training was
    interrupted.
    """
    corpus = load_corpus(recipe.corpus)
    key = sha256_of_text(
        f"{RECIPE} {recipe.model_dump_json()} {corpus.sha256} "
        f"{version('torch')} {version('transformers')} {version('tokenizers')}"
    )
    folder = home() / "models" / f"{base_name(model)}-{key[:16]}"
    with lock(folder):
        record = read_record(folder)
        if record is None:
            from layergeom.models.training import train

            train(model, recipe, corpus, make_folder(folder))
            record = read_record(folder)
        if record is None:
            raise LayergeomError(f"the training record written to {folder} cannot be read back.")
    return folder, record


def checkpoint_folder(model: str, recipe: TrainedSource, revision: str) -> tuple[Path, str]:
    """The folder of one checkpoint, verified, and the hash of its weights.

    Where it is damaged, the model is trained anew.
    """
    for attempt in range(2):
        folder, record = trained_model(model, recipe)
        found = {checkpoint.revision: checkpoint for checkpoint in record.checkpoints}[revision]
        if has_weights(folder / revision, found.weights_hash):
            return folder / revision, found.weights_hash
        if attempt == 0:
            say(f"The trained model {folder} is damaged; it is trained anew.")
            with lock(folder):
                shutil.rmtree(folder)
    raise LayergeomError(f"the model written to {folder / revision} cannot be read back.")
