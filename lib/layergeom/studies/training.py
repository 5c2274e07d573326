"""Everything that is measured of a layer, at each checkpoint of a model's training.

Source: Readout (arXiv 2605.17084), section 4.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from layergeom.corpora.packing import spread_tokens
from layergeom.geometry.components import component_shares
from layergeom.geometry.pga import estimate_z, subspace_pga
from layergeom.geometry.spectral import spectral_metrics
from layergeom.geometry.subspaces import readout_basis
from layergeom.geometry.threads import map_threads
from layergeom.models.checkpoints import Checkpoint, checkpoints
from layergeom.progress import track
from layergeom.studies.code_version import code_version
from layergeom.studies.pga import PGAStudy
from layergeom.studies.samples import depth_of, over_samples
from layergeom.studies.settings import Settings, generator
from layergeom.studies.states import Session
from layergeom.studies.store import Artefact, Results, compute_or_load

#: Most token samples a checkpoint, of half the size that Subspace PGA has: pairs are the cost, and
#: four samples of half the tokens cost a third of three whole ones, with narrower intervals.
SAMPLES = 4
#: Most checkpoints that are measured.
CHECKPOINTS = 9


class TrainingStudy:
    """Computes or loads what each checkpoint's layers are like, one stored result each.

    Of many checkpoints, ``CHECKPOINTS`` are measured, evenly along their list, with the first and
    the last. They all read the same tokens and have the same random subspaces, so that steps
    compare; the readout is each one's own. Equal weights are measured once.
    """

    def __init__(self, session: Session) -> None:
        """Bind the study to a model and text."""
        self.session = session
        self.settings: Settings = session.settings
        self.pga = PGAStudy(session)

    @cached_property
    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """The model's checkpoints, in order of their steps.

        Raises:
            NotMeasurableError: it has none.
        """
        return checkpoints(self.settings.model)

    @property
    def measured(self) -> tuple[Checkpoint, ...]:
        """The checkpoints whose layers are measured."""
        last, count = len(self.checkpoints) - 1, min(CHECKPOINTS, len(self.checkpoints))
        return tuple(self.checkpoints[round(i)] for i in np.linspace(0, last, count))

    @property
    def facts(self) -> dict[str, int]:
        """How many checkpoints are measured and there are, and on how many tokens."""
        return {
            "checkpoints": len(self.measured),
            "checkpoints_kept": len(self.checkpoints),
            "samples_at_each": self.samples,
            "tokens": self.sample_tokens,
            "null_subspaces": self.settings.sizes.null_subspaces,
        }

    @property
    def samples(self) -> int:
        """Token samples at each checkpoint."""
        return min(SAMPLES, self.settings.sizes.pga_samples)

    @property
    def sample_tokens(self) -> int:
        """Tokens a sample at each checkpoint."""
        return max(3, self.settings.sizes.pga_tokens // 2)

    @property
    def inputs(self) -> dict[str, Any]:
        """Everything that the last checkpoint's figures depend on."""
        return self._inputs(self.checkpoints[-1])

    def quantities(self) -> pd.DataFrame:
        """Every quantity at every measured checkpoint and layer, with 95 % intervals over samples.

        ``z`` at CCR-1, its interval with the null's own error; ``dark_share`` of the first
        component; the spectral metrics; ``lens_kl`` (median, nats) and ``lens_agreement`` at the
        layers.

        Columns: ``step``, ``tokens_seen``, ``point``, ``depth``, ``quantity``, ``value``,
        ``ci_low``, ``ci_high``.
        """
        tables = []
        for checkpoint in track(self.measured, f"Training of {self.session.files.name}"):
            table = self._at(checkpoint).table("quantities")
            table.insert(0, "step", checkpoint.step)
            table.insert(1, "tokens_seen", checkpoint.tokens_seen)
            tables.append(table)
        return pd.concat(tables, ignore_index=True)

    def table(self) -> pd.DataFrame:
        """Values of z by step and layer.

        Columns: ``step``, ``tokens_seen``, ``point``, ``depth``, ``z``, ``ci_low``, ``ci_high``.
        """
        every = self.quantities()
        z = every[every["quantity"] == "z"].rename(columns={"value": "z"})
        return z.drop(columns="quantity").reset_index(drop=True)

    def late_layers(self) -> pd.DataFrame:
        """The rows of ``table`` at intermediate layers beyond two thirds of the depth."""
        table, depth = self.table(), self.pga.states.depth
        late = (table["depth"] > 2 * depth / 3) & (table["depth"] < depth)
        return table[late].reset_index(drop=True)

    def losses(self) -> pd.DataFrame:
        """What is known of each checkpoint, measured or not.

        Columns: ``step``, ``tokens_seen``, ``validation_loss`` (nats a token),
        ``weights_hash``, ``same_as`` (the first step with equal weights, or -1).
        """
        first_with: dict[str, int] = {}
        rows = []
        for checkpoint in self.checkpoints:
            earlier = first_with.setdefault(checkpoint.weights_hash, checkpoint.step)
            rows.append(
                {
                    "step": checkpoint.step,
                    "tokens_seen": checkpoint.tokens_seen,
                    "validation_loss": checkpoint.validation_loss,
                    "weights_hash": checkpoint.weights_hash,
                    "same_as": -1 if earlier == checkpoint.step else earlier,
                }
            )
        return pd.DataFrame(rows)

    @cached_property
    def tokens(self) -> tuple[Int[np.ndarray, "samples n"], Int[np.ndarray, "samples n"]]:
        """Sequence and position of the sampled tokens, from as few sequences as hold them."""
        length, skip = self.pga.states.tokens.shape[1], self.pga.states.skip
        count = self.sample_tokens
        needed = -(-self.samples * count // (length - skip))
        return spread_tokens(
            min(needed, len(self.pga.states.tokens)),
            length,
            skip,
            count,
            self.samples,
            generator(self.settings.seed, "training tokens"),
        )

    def _inputs(self, checkpoint: Checkpoint) -> dict[str, Any]:
        sizes = self.settings.sizes
        return {
            "states": dict(self.pga.states.inputs),
            "checkpoint": checkpoint.weights_hash,
            "tokens": self.sample_tokens,
            "samples_at_each": self.samples,
            "null_subspaces": sizes.null_subspaces,
            "readout_dim": self.pga.readout_dim,
            "seed": self.settings.seed,
            "code": code_version(__name__),
            "torch": version("torch"),
            "transformers": version("transformers"),
        }

    def _at(self, checkpoint: Checkpoint) -> Artefact:
        return compute_or_load(
            "training", self._inputs(checkpoint), lambda: self._measure(checkpoint.revision)
        )

    def _measure(self, revision: str) -> Results:
        from layergeom.models.capture import capture
        from layergeom.models.lens import logit_lens

        model = Session(replace(self.settings, revision=revision)).model
        sequences, positions = self.tokens
        captured = capture(model, self.pga.states.tokens[: sequences.max() + 1])
        # A layer l beside its states at the sampled tokens; the input of block 0 is left out.
        layers = {
            f"H_{layer}": states[sequences, positions]
            for layer, states in enumerate(captured.hidden)
            if layer > 0
        }
        out = captured.out[sequences, positions]
        lens = logit_lens(model, list(layers.values()), out)
        readout = readout_basis(model.real_unembedding(), self.pga.readout_dim)
        rows = [
            row
            for point, states in {**layers, "out": out}.items()
            for row in self._of_point(point, states, readout)
        ]
        spread = pd.DataFrame(
            [
                {"point": point, "sample": sample, "quantity": quantity, "value": value}
                for quantity, values in (
                    ("lens_kl", np.median(lens.kl, axis=2)),
                    ("lens_agreement", lens.agreement.mean(axis=2)),
                )
                for point, of_samples in zip(layers, values, strict=True)
                for sample, value in enumerate(of_samples)
            ]
        )
        table = pd.concat([pd.DataFrame(rows), _means(spread)], ignore_index=True)
        table.insert(1, "depth", [depth_of(point, model.depth) for point in table["point"]])
        return Results(tables={"quantities": table})

    def _of_point(
        self,
        point: str,
        states: Float[np.ndarray, "samples n width"],
        readout: Float[np.ndarray, "width k"],
    ) -> Iterator[dict[str, Any]]:
        pga = [subspace_pga(sample, readout, self.pga.subspaces, 1) for sample in states]
        estimate = estimate_z(pga)
        yield {
            "point": point,
            "quantity": "z",
            "value": estimate.z,
            "ci_low": estimate.ci_low,
            "ci_high": estimate.ci_high,
        }

        def measure(sample: Float[np.ndarray, "n width"]) -> dict[str, float]:
            dark = component_shares(sample, readout, 1).dark_share[0]
            return {"dark_share": float(dark), **spectral_metrics(sample)}

        spread = pd.DataFrame(
            [
                {"point": point, "sample": number, "quantity": quantity, "value": value}
                for number, measured in enumerate(map_threads(measure, states))
                for quantity, value in measured.items()
            ]
        )
        for row in _means(spread).to_dict("records"):
            yield {str(column): value for column, value in row.items()}


def _means(spread: pd.DataFrame) -> pd.DataFrame:
    """Means over samples, by point and quantity."""
    means = over_samples(spread, ["point", "quantity"], ["value"])
    return means.rename(columns={"value_low": "ci_low", "value_high": "ci_high"})
