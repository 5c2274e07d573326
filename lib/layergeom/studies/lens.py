"""The logit lens by layer, and whether it goes with z."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from layergeom.errors import NotMeasurableError
from layergeom.geometry.bootstrap import bootstrap_medians, percentile_interval, sequence_draws
from layergeom.geometry.means import bootstrap_means
from layergeom.geometry.over_layers import spearman_over_layers
from layergeom.studies.code_version import code_version
from layergeom.studies.pga import PGAStudy
from layergeom.studies.samples import sample_draws, z_by_layer
from layergeom.studies.settings import generator
from layergeom.studies.states import Session
from layergeom.studies.store import Artefact, Results, compute_or_load

#: By quantity: its summary over tokens, and that summary's bootstrap draws. Divergences have a
#: long tail, so theirs is the median.
SUMMARIES: Mapping[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "kl": (np.median, bootstrap_medians),
    "agreement": (np.mean, bootstrap_means),
}


class LensStudy:
    """Computes or loads the lens on the tokens of the sequences that replacements use."""

    def __init__(self, session: Session) -> None:
        """Bind the study to a model and text."""
        self.session = session
        self.settings = session.settings

    @property
    def sequences(self) -> int:
        """Number of query sequences that the lens reads.

        Raises:
            NotMeasurableError: fewer than two, which leave no interval.
        """
        sizes = self.settings.sizes
        count = min(sizes.replaced_sequences, sizes.query_sequences)
        if count < 2:
            raise NotMeasurableError(
                f"{count} query sequences: the lens's intervals need 2 or more. Ask for more "
                "tokens."
            )
        return count

    @property
    def artefact(self) -> Artefact:
        """The stored reading, computed first: ``kl`` and ``agreement`` by layer and token."""
        inputs = {
            "states": dict(self.session.states.inputs),
            "sequences": self.sequences,
            "code": code_version("layergeom.models.lens", __name__),
        }
        return compute_or_load("lens", inputs, self._measure)

    def table(self) -> pd.DataFrame:
        """Median KL in nats and share of agreement at ``H_0 ... H_L``, intervals over sequences.

        Columns: ``point``, ``depth``, ``quantity`` (kl, agreement), ``value``, ``ci_low``,
        ``ci_high``.
        """
        rows = []
        for quantity in SUMMARIES:
            values, draws = self._profile(quantity)
            for depth, value in enumerate(values):
                estimate = percentile_interval(float(value), draws[:, depth])
                rows.append(
                    {
                        "point": f"H_{depth}",
                        "depth": depth,
                        "quantity": quantity,
                        "value": estimate.value,
                        "ci_low": estimate.ci_low,
                        "ci_high": estimate.ci_high,
                    }
                )
        return pd.DataFrame(rows)

    def correlations(self) -> pd.DataFrame:
        """Spearman's correlation of KL and agreement with z over the layers ``H_0 ... H_L``.

        Interval: bootstrap over the sequences of the lens, over the token samples of z, and over
        runs of neighbouring layers (``spearman_over_layers``).

        Columns: ``quantity``, ``value``, ``ci_low``, ``ci_high``.
        """
        draws, seed = self.settings.sizes.bootstrap_draws, self.settings.seed
        z = z_by_layer(PGAStudy(self.session).profile())
        weights = sample_draws(z.shape[1], draws, generator(seed, "bootstrap samples"))
        rows = []
        for quantity in SUMMARIES:
            values, drawn = self._profile(quantity)
            estimate = spearman_over_layers(
                values,
                z.mean(axis=1),
                drawn,
                weights @ z.T,
                generator(seed, "bootstrap layers"),
            )
            rows.append(
                {
                    "quantity": quantity,
                    "value": estimate.value,
                    "ci_low": estimate.ci_low,
                    "ci_high": estimate.ci_high,
                }
            )
        return pd.DataFrame(rows)

    def _profile(
        self, quantity: str
    ) -> tuple[Float[np.ndarray, " layers"], Float[np.ndarray, "draws layers"]]:
        """A quantity by layer, and its bootstrap draws: the same sequences for all layers."""
        summary, bootstrap = SUMMARIES[quantity]
        tokens = self.artefact.array(quantity).astype(np.float64)
        flat = tokens.reshape(len(tokens), -1)
        sequences: Int[np.ndarray, " tokens"] = np.repeat(
            np.arange(tokens.shape[1]), tokens.shape[2]
        )
        drawn = sequence_draws(
            tokens.shape[1],
            self.settings.sizes.bootstrap_draws,
            generator(self.settings.seed, "bootstrap lens"),
        )
        draws = np.stack([bootstrap(layer, sequences, drawn) for layer in flat], axis=1)
        return summary(flat, axis=1), draws

    def _measure(self) -> Results:
        from layergeom.models.lens import logit_lens

        states = self.session.states
        first = int(states.inputs["bank_sequences"])
        rows = slice(first, first + self.sequences)

        def read(point: str) -> np.ndarray:
            return states.at(point)[rows, states.skip :].copy()

        hidden = [read(f"H_{layer}") for layer in range(states.depth + 1)]
        reading = logit_lens(self.session.model, hidden, read("out"))
        return Results(arrays={"kl": reading.kl, "agreement": reading.agreement})
