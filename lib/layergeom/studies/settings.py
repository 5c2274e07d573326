"""What a study is asked to measure: model, text, sizes and seed."""

import zlib
from dataclasses import dataclass
from typing import Annotated, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from layergeom.errors import UsageError, unknown
from layergeom.geometry.memory import DEFAULT_MEMORY
from layergeom.geometry.neighbours import Metric
from layergeom.models.devices import Dtype

LARGEST_SEED = 2**32 - 1

Positive = Annotated[int, Field(ge=1)]


class Sizes(BaseModel):
    """How much is measured; the defaults are those that the time budgets hold for.

    Attributes:
        sequence_length: tokens a sequence.
        skip_positions: first positions left out of every statistic (attention sinks).
        pga_tokens: tokens a sample of Subspace PGA.
        pga_samples: disjoint samples.
        null_subspaces: random subspaces of the null.
        bank_sequences: sequences to fit the local maps on.
        query_sequences: sequences to evaluate them on.
        query_tokens: exact number of query tokens, spread evenly over the sequences; 0 for all.
        replaced_sequences: query sequences in which block outputs are replaced.
        single_positions: query tokens replaced one at a time, spread over those sequences.
        bootstrap_draws: bootstrap draws over sequences.
        neighbours: nearest neighbours of a local fit, K.
        rank: rank of the low-rank maps, q.
        subspace_dim: dimension at which energy shares are shown.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    sequence_length: Annotated[int, Field(ge=4)] = 128
    skip_positions: Annotated[int, Field(ge=0)] = 1
    pga_tokens: Annotated[int, Field(ge=3)] = 600
    pga_samples: Positive = 8
    null_subspaces: Annotated[int, Field(ge=2)] = 100
    bank_sequences: Positive = 32
    query_sequences: Annotated[int, Field(ge=0)] = 16
    query_tokens: Annotated[int, Field(ge=0)] = 0
    replaced_sequences: Positive = 8
    single_positions: Positive = 64
    bootstrap_draws: Annotated[int, Field(ge=2)] = 1000
    neighbours: Positive = 64
    rank: Positive = 8
    subspace_dim: Positive = 8


SIZES: dict[str, Sizes] = {
    "default": Sizes(),
    "smoke": Sizes(
        sequence_length=32,
        pga_tokens=120,
        pga_samples=3,
        null_subspaces=20,
        bank_sequences=16,
        query_sequences=8,
        replaced_sequences=4,
        single_positions=8,
        bootstrap_draws=100,
        neighbours=16,
        rank=4,
        subspace_dim=4,
    ),
}


def named_sizes(name: str) -> Sizes:
    """Sizes by name.

    Raises:
        UsageError: no such name.
    """
    if name not in SIZES:
        raise unknown("sizes", name, list(SIZES))
    return SIZES[name]


@dataclass(frozen=True)
class Settings:
    """One model measured on one text.

    Attributes:
        model: catalogue name, hub id or local folder.
        corpus: corpus name or path of a text file.
        sizes: how much is measured.
        seed: seed of every random choice.
        readout_dim: readout dimension k, or None for the default rule.
        metric: distance between states when neighbours are chosen.
        exclude_same_token: whether neighbours must have another token id than the query; in
            layer 0 a token's own copies make its fit trivially exact.
        revision: a checkpoint or hub revision of the model, such as ``step64``; empty for the
            model as it stands.
        dtype: arithmetic of the model's forward pass, one of ``models.devices.Dtype``.
        device: where the model runs, one of ``models.devices.Device``; no part of what a result
            depends on.
        memory: bytes that ranking distances may take; beyond, a sample of the pairs is ranked.
    """

    model: str
    corpus: str = "wikipedia-sample"
    sizes: Sizes = SIZES["default"]
    seed: int = 0
    readout_dim: int | None = None
    metric: Metric = "euclidean"
    exclude_same_token: bool = False
    revision: str = ""
    dtype: str = "float32"
    device: str = "auto"
    memory: int = DEFAULT_MEMORY

    def __post_init__(self) -> None:
        """Refuse what would be refused late or not at all.

        Raises:
            UsageError: a seed below 0 or of more than 32 bits, or an unknown dtype.
        """
        if self.dtype not in get_args(Dtype):
            raise unknown("dtype", self.dtype, list(get_args(Dtype)))
        if not 0 <= self.seed <= LARGEST_SEED:
            raise UsageError(f"a seed lies between 0 and {LARGEST_SEED}, got {self.seed}.")


def generator(seed: int, purpose: str) -> np.random.Generator:
    """A random generator of its own for each purpose, so that one choice cannot move another."""
    return np.random.default_rng([seed, zlib.crc32(purpose.encode())])
