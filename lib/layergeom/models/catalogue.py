"""The catalogue of models: data, validated when it is read."""

import re
from functools import cache
from importlib.resources import files
from itertools import count, takewhile
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

#: ``mini-pythia-d64-seed1``: the recipe of ``mini-pythia-d64`` with seed 1.
_SEEDED = re.compile(r"(?P<base>.+)-seed(?P<seed>\d+)")

#: Checkpoints after the doubling ones, evenly spaced.
_EVEN_CHECKPOINTS = 8


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class WheelMember(_Frozen):
    """A file inside a wheel of the package index; no code of the wheel runs."""

    package: str
    version: str
    member: str


class WheelSource(_Frozen):
    """A GGUF file that one wheel ships, or several ship in parts.

    Attributes:
        file: the file's name.
        parts: where its bytes are, in order.
        sha256: hash of the whole file.
    """

    kind: Literal["wheel"]
    file: Annotated[str, Field(pattern=r"^[\w.-]+\.gguf$")]
    parts: Annotated[tuple[WheelMember, ...], Field(min_length=1)]
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class NeoxShape(_Frozen):
    """A GPT-NeoX as Pythia is built: untied, rotary, parallel residual."""

    type: Literal["gpt_neox"]
    width: Annotated[int, Field(ge=8)]
    depth: Annotated[int, Field(ge=2)]
    heads: Annotated[int, Field(ge=1)]


class MambaShape(_Frozen):
    """An untied Mamba; ``state`` is the size of each channel's state."""

    type: Literal["mamba"]
    width: Annotated[int, Field(ge=8)]
    depth: Annotated[int, Field(ge=2)]
    state: Annotated[int, Field(ge=2)]


class TrainedSource(_Frozen):
    """The recipe of a model trained on the spot.

    Attributes:
        corpus: name of the corpus; its held-out documents are kept from the training.
        vocabulary: tokens of its byte-level BPE tokenizer.
        context: tokens a sequence, in training and afterwards.
        network: what is trained.
        steps: updates of the weights.
        batch: sequences an update.
        learning_rate: the highest, after the warm-up.
        seed: seed of the initial weights and of the data's order.
    """

    kind: Literal["trained"]
    corpus: str
    vocabulary: Annotated[int, Field(ge=300)]
    context: Annotated[int, Field(ge=8)]
    network: Annotated[NeoxShape | MambaShape, Field(discriminator="type")]
    steps: Annotated[int, Field(ge=1)]
    batch: Annotated[int, Field(ge=1)]
    learning_rate: Annotated[float, Field(gt=0)]
    seed: Annotated[int, Field(ge=0)] = 0

    @property
    def checkpoint_steps(self) -> tuple[int, ...]:
        """Updates after which the model is kept: 0, 1, 2, 4, 8 ... and then evenly."""
        even = {round(self.steps * i / _EVEN_CHECKPOINTS) for i in range(1, _EVEN_CHECKPOINTS + 1)}
        doubling = takewhile(lambda step: 2 * step <= min(even), (2**i for i in count()))
        return tuple(sorted({0, *doubling, *even}))

    def tokens_seen(self, step: int) -> int:
        """Tokens that the model has been trained on after ``step`` updates."""
        return step * self.batch * self.context


class Terms(_Frozen):
    """Terms of use that a person accepts before a model is fetched.

    Attributes:
        name: what it is accepted by, on the command line and in a profile.
        title: what it is called.
        url: where it can be read.
    """

    name: Annotated[str, Field(pattern="^[a-z0-9]+$")]
    title: str
    url: str


class ModelEntry(_Frozen):
    """One model of the catalogue.

    Attributes:
        title: what it is, in a line.
        family: models of one architecture and training that differ in size alone.
        bos: whether a BOS token starts each sequence.
        licence: under which it may be used.
        terms: what must be accepted before it is fetched, or None.
        source: where it comes from.
    """

    title: str
    family: str
    bos: bool
    licence: str
    terms: Terms | None = None
    source: Annotated[WheelSource | TrainedSource, Field(discriminator="kind")]


@cache
def catalogue() -> dict[str, ModelEntry]:
    """All models by name."""
    text = files("layergeom.models").joinpath("catalogue.yml").read_text(encoding="utf-8")
    return {name: ModelEntry.model_validate(row) for name, row in yaml.safe_load(text).items()}


def base_name(model: str) -> str:
    """A trained model's name without ``-seed1`` and the like; any other name as it is."""
    match = _SEEDED.fullmatch(model)
    base = catalogue().get(match["base"]) if match else None
    trained = base is not None and isinstance(base.source, TrainedSource)
    return match["base"] if match and trained else model


def is_trained(model: str) -> bool:
    """Whether a model is trained on the spot."""
    entry = find_entry(model)
    return entry is not None and isinstance(entry.source, TrainedSource)


def find_entry(model: str) -> ModelEntry | None:
    """A model's entry, that of ``NAME-seed1`` with its seed; None for a name not in here."""
    entry = catalogue().get(base_name(model))
    if entry is None or base_name(model) == model:
        return entry
    seed = int(model.rpartition("-seed")[2])
    return entry.model_copy(update={"source": entry.source.model_copy(update={"seed": seed})})
