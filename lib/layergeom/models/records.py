"""What is written beside a model that was trained here: its checkpoints and how good it is."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from layergeom.files import write_text

_RECORD = "training.json"
_CHECKPOINT = "checkpoint.json"


@dataclass(frozen=True)
class Checkpoint:
    """A model in the course of its training.

    Attributes:
        step: updates of the weights made so far.
        tokens_seen: tokens trained on so far, repeated ones counted again.
        validation_loss: mean cross-entropy on the held-out documents, nats a token.
        weights_hash: SHA-256 of the weights; equal weights have equal hashes.
    """

    step: int
    tokens_seen: int
    validation_loss: float
    weights_hash: str

    @property
    def revision(self) -> str:
        """What the checkpoint is called as a model's revision, such as ``step64``."""
        return step_name(self.step)


@dataclass(frozen=True)
class TrainingRecord:
    """How a model was trained and what came of it.

    Attributes:
        training_tokens: tokens in the training documents.
        bigram_loss: held-out loss of a smoothed bigram model of the same training tokens.
        checkpoints: in order of their steps; the last one is the model.
    """

    training_tokens: int
    bigram_loss: float
    checkpoints: tuple[Checkpoint, ...]

    @property
    def tokens_seen(self) -> int:
        """Tokens trained on in all, repeated ones counted again."""
        return self.checkpoints[-1].tokens_seen

    @property
    def validation_loss(self) -> float:
        """Held-out loss of the finished model, nats a token."""
        return self.checkpoints[-1].validation_loss

    @property
    def beats_bigram(self) -> bool:
        """Whether the model predicts held-out text better than bigrams; else it decides nothing."""
        return self.validation_loss < self.bigram_loss


def step_name(step: int) -> str:
    """Name of a checkpoint's folder, and of the revision that asks for it."""
    return f"step{step}"


def write_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Write what is known of a checkpoint into its own folder."""
    write_text(folder / _CHECKPOINT, json.dumps(asdict(checkpoint)) + "\n")


def read_checkpoint(folder: Path) -> Checkpoint | None:
    """What a checkpoint's folder says of it, or None where it says nothing that can be read."""
    try:
        return Checkpoint(**json.loads((folder / _CHECKPOINT).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def write_record(folder: Path, record: TrainingRecord) -> None:
    """Write the record of a finished training; a folder without one is unfinished."""
    write_text(folder / _RECORD, json.dumps(asdict(record), indent=1) + "\n")


def read_record(folder: Path) -> TrainingRecord | None:
    """The record of a finished training, or None where there is none that can be read."""
    try:
        row = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        checkpoints = tuple(Checkpoint(**each) for each in row.pop("checkpoints"))
        return TrainingRecord(**row, checkpoints=checkpoints) if checkpoints else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
