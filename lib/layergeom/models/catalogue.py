"""The catalogue of models: data, validated when it is read."""

from functools import cache
from importlib.resources import files
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class WheelSource(_Frozen):
    """A GGUF file inside a wheel of the package index; no code of the wheel runs."""

    kind: Literal["wheel"]
    package: str
    version: str
    member: str
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    architecture: str


class TrainedSource(_Frozen):
    """The recipe of a GPT-NeoX trained on the spot, as Pythia: untied, parallel residual."""

    kind: Literal["trained"]
    corpus: str
    vocabulary: Annotated[int, Field(ge=300)]
    context: Annotated[int, Field(ge=8)]
    width: Annotated[int, Field(ge=8)]
    depth: Annotated[int, Field(ge=2)]
    heads: Annotated[int, Field(ge=1)]
    steps: Annotated[int, Field(ge=1)]
    batch: Annotated[int, Field(ge=1)]
    learning_rate: Annotated[float, Field(gt=0)]
    seed: int


class ModelEntry(_Frozen):
    """One model of the catalogue."""

    title: str
    family: str
    bos: bool
    licence: str
    source: Annotated[WheelSource | TrainedSource, Field(discriminator="kind")]


@cache
def catalogue() -> dict[str, ModelEntry]:
    """All models by name."""
    text = files("layergeom.models").joinpath("catalogue.yml").read_text(encoding="utf-8")
    return {name: ModelEntry.model_validate(row) for name, row in yaml.safe_load(text).items()}
