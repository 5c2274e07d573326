"""A model's checkpoints, and the record of its training."""

from layergeom.errors import NotMeasurableError
from layergeom.models.catalogue import TrainedSource, find_entry
from layergeom.models.records import Checkpoint, TrainingRecord
from layergeom.models.trained import trained_model


def training_record(model: str) -> TrainingRecord | None:
    """How a model trained here was trained; None for one that came as it is.

    A model that is not there yet is trained first.
    """
    entry = find_entry(model)
    if entry is None or not isinstance(entry.source, TrainedSource):
        return None
    return trained_model(model, entry.source)[1]


def checkpoints(model: str) -> tuple[Checkpoint, ...]:
    """A model's checkpoints in order of their steps.

    Raises:
        NotMeasurableError: the model has none.
    """
    record = training_record(model)
    if record is None:
        raise NotMeasurableError(
            f"{model} has no checkpoints: only models trained here keep the steps of their "
            "training."
        )
    return record.checkpoints


__all__ = ["Checkpoint", "TrainingRecord", "checkpoints", "training_record"]
