"""The hidden states that all other studies share: one pass of the model over bank and query."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from layergeom.corpora import Corpus, held_out, load_corpus
from layergeom.models.sources import ModelFiles, resolve
from layergeom.studies.code_version import code_version
from layergeom.studies.settings import Settings, generator, named_sizes
from layergeom.studies.store import Artefact, Results, stream_or_load
from layergeom.studies.streams import append_rows, read_rows

if TYPE_CHECKING:  # torch takes seconds to import, and stored results are read without it
    from layergeom.models.language_model import LanguageModel


class Session:
    """A model and a text of one measurement, loaded only when something is not stored yet."""

    def __init__(self, settings: Settings) -> None:
        """Remember the settings; nothing is read yet."""
        self.settings = settings

    @cached_property
    def files(self) -> ModelFiles:
        """The model's verified files."""
        return resolve(self.settings.model, self.settings.revision)

    @cached_property
    def corpus(self) -> Corpus:
        """The text; only its held-out documents for a model that was trained on it here."""
        corpus = self.corpus_as_given
        return held_out(corpus) if self.files.trained_on == self.settings.corpus else corpus

    @cached_property
    def corpus_as_given(self) -> Corpus:
        """The text as the settings name it."""
        return load_corpus(self.settings.corpus)

    @cached_property
    def model(self) -> "LanguageModel":
        """The loaded model."""
        from layergeom.models.language_model import load_files
        from layergeom.progress import say

        say(f"Loading {self.files.name} ...")
        return load_files(self.files, self.settings.device, self.settings.dtype)

    @property
    def sequence_length(self) -> int:
        """Tokens a sequence: as asked, or the model's context where that is shorter."""
        asked = self.settings.sizes.sequence_length
        return min(asked, self.files.context or asked)

    @cached_property
    def states(self) -> "States":
        """The captured states, stored or captured now."""
        return States(stream_or_load("states", self._states_inputs(), self._capture))

    def _states_inputs(self) -> dict[str, Any]:
        sizes = self.settings.sizes
        corpus = self.corpus_as_given  # first: a bad text is said before a model is fetched
        return {
            "corpus_as_given": corpus.name,
            "model": self.files.name,
            "revision": self.files.revision,
            "weights": self.files.weights_hash,
            "bos": self.files.bos,
            "dtype": self.settings.dtype,
            "corpus": self.corpus.name,
            "text": self.corpus.sha256,
            "sequence_length": self.sequence_length,
            "skip_positions": sizes.skip_positions,
            "bank_sequences": sizes.bank_sequences,
            "query_sequences": sizes.query_sequences,
            "seed": self.settings.seed,
            "code": code_version("layergeom.models.capture", "layergeom.corpora.packing", __name__),
            "torch": version("torch"),
            "transformers": version("transformers"),
        }

    def _capture(self, folder: Path) -> Results:
        from layergeom.corpora.packing import bank_and_query
        from layergeom.models.capture import stream_states

        sizes, model = self.settings.sizes, self.model
        roles = bank_and_query(
            self.corpus,
            model.encode,
            self.sequence_length,
            sizes.bank_sequences,
            sizes.query_sequences,
            model.bos_id(),
            generator(self.settings.seed, "sequences"),
        )
        tokens = np.concatenate([roles.bank.tokens, roles.query.tokens])
        keep = partial(append_rows, folder, total=len(tokens))
        captured = stream_states(model, tokens, keep)
        arrays = {
            "tokens": tokens,
            "documents": np.concatenate([roles.bank.documents, roles.query.documents]),
            "unembedding": model.real_unembedding(),
        }
        facts = {
            "depth": model.depth,
            "width": model.width,
            "vocabulary": len(arrays["unembedding"]),
            "model_type": model.network.config.model_type,
            "contract_error": captured.contract_error,
            "loss": captured.loss,
            "bos": model.bos_id(),
            "device": model.device.type,
            "skipped_variance": [
                _skipped_variance(read_rows(folder, f"H_{layer}"), sizes.skip_positions)
                for layer in range(model.depth + 1)
            ],
        }
        return Results(arrays=arrays, facts=facts)


def _skipped_variance(states: Float[np.ndarray, "sequences length width"], skip: int) -> float:
    """Share of a layer's variance that the skipped positions hold."""
    centred = states - states.mean(axis=(0, 1), dtype=np.float64)
    energy = np.square(centred).sum(axis=(0, 2))
    return float(energy[:skip].sum() / energy.sum())


def open_session(
    model: str,
    corpus: str = "wikipedia-sample",
    sizes: str = "default",
    seed: int = 0,
    dtype: str = "float32",
    readout_dim: int = 0,
) -> Session:
    """A measurement by what a notebook's parameters say.

    Args:
        model: catalogue name, hub id or local folder.
        corpus: corpus name or path of a text file.
        sizes: name of the sizes.
        seed: seed of every random choice.
        dtype: arithmetic of the forward pass.
        readout_dim: readout dimension k; 0 for the default rule.

    Raises:
        UsageError: no such sizes, or a seed out of range.
    """
    return Session(
        Settings(model, corpus, named_sizes(sizes), seed, readout_dim or None, dtype=dtype)
    )


@dataclass(frozen=True)
class States:
    """Stored hidden states of bank and query sequences."""

    artefact: Artefact

    @property
    def inputs(self) -> Mapping[str, Any]:
        """Everything that the states depend on."""
        return self.artefact.inputs

    @property
    def facts(self) -> Mapping[str, Any]:
        """Facts about the model on this text: loss, contract error, skipped variance and sizes."""
        return self.artefact.facts

    @property
    def depth(self) -> int:
        """Number of blocks, L."""
        return int(self.artefact.facts["depth"])

    @property
    def width(self) -> int:
        """Width, d."""
        return int(self.artefact.facts["width"])

    @property
    def skip(self) -> int:
        """First positions left out of every statistic."""
        return int(self.inputs["skip_positions"])

    @property
    def points(self) -> list[str]:
        """Names of the capture points: ``H_0`` to ``H_L`` and ``out``."""
        return [*(f"H_{layer}" for layer in range(self.depth + 1)), "out"]

    def at(self, point: str) -> Float[np.ndarray, "sequences length width"]:
        """States of all sequences at a capture point."""
        return self.artefact.array(point)

    @property
    def tokens(self) -> Int[np.ndarray, "sequences length"]:
        """Token ids of all sequences, the bank's first."""
        return self.artefact.array("tokens")

    def bank(self, states: np.ndarray) -> np.ndarray:
        """Bank tokens of an array over all sequences, the skipped positions left out, flat."""
        return self._flat(states[: self.inputs["bank_sequences"]])

    def query(self, states: np.ndarray) -> np.ndarray:
        """Query tokens likewise."""
        return self._flat(states[self.inputs["bank_sequences"] :])

    def _flat(self, states: np.ndarray) -> np.ndarray:
        kept = states[:, self.skip :]
        return kept.reshape(-1, *kept.shape[2:])

    def sequence_of(self, role: Callable[[np.ndarray], np.ndarray]) -> Int[np.ndarray, " tokens"]:
        """Index of each token's sequence within its role, from 0."""
        tokens = self.tokens
        index = np.broadcast_to(np.arange(len(tokens))[:, None], tokens.shape)
        flat = role(index)
        return flat - flat.min()
