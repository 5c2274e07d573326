"""Layer updates of a model in figures: medians and correlations by block, with intervals."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from jaxtyping import Float

from layergeom.geometry.bootstrap import (
    Estimate,
    median_estimate,
    percentile_interval,
    sequence_draws,
    spearman_estimate,
)
from layergeom.geometry.decomposition import PARTS, READINGS
from layergeom.studies.code_version import code_version
from layergeom.studies.fits import BASELINES, CLASSES, BlockUpdate, FitsStudy
from layergeom.studies.settings import generator
from layergeom.studies.states import Session
from layergeom.studies.store import Results, compute_or_load


class UpdatesStudy:
    """Summarises a model's fits and replacements."""

    def __init__(self, session: Session, classes: tuple[str, ...] = CLASSES + BASELINES) -> None:
        """Bind the study to a model and text, for some classes of map.

        Raises:
            UsageError: an unknown class, or sizes that leave nothing to fit or evaluate.
        """
        self.fits = FitsStudy(session, classes)
        self.settings = session.settings
        self.classes = classes

    def summary(self) -> pd.DataFrame:
        """Medians and correlations by block and class, with intervals over sequences.

        Columns: ``block``, ``class``, ``quantity``, ``value``, ``ci_low``, ``ci_high``.
        """
        inputs = {
            "fits": [self.fits.fit_inputs(block) for block in range(self.fits.states.depth)],
            "replacement": self.fits.kl_inputs(0),
            "draws": self.settings.sizes.bootstrap_draws,
            "subspace_dim": self.settings.sizes.subspace_dim,
            "seed": self.settings.seed,
            "code": code_version(__name__),
        }
        return compute_or_load("updates", inputs, self._summarise).table("summary")

    def _summarise(self) -> Results:
        sizes, seed = self.settings.sizes, self.settings.seed
        decomposed = sequence_draws(
            sizes.query_sequences, sizes.bootstrap_draws, generator(seed, "bootstrap query")
        )
        replaced = sequence_draws(
            max(2, sizes.replaced_sequences),
            sizes.bootstrap_draws,
            generator(seed, "bootstrap replaced"),
        )
        rows = []
        for update in self.fits.blocks():
            for name in self.classes:
                found = self._estimates(update, name, decomposed, replaced)
                rows += [
                    {
                        "block": update.block,
                        "class": name,
                        "quantity": quantity,
                        "value": estimate.value,
                        "ci_low": estimate.ci_low,
                        "ci_high": estimate.ci_high,
                    }
                    for quantity, estimate in found.items()
                ]
        return Results(tables={"summary": pd.DataFrame(rows)})

    def _estimates(
        self, update: BlockUpdate, name: str, decomposed: np.ndarray, replaced: np.ndarray
    ) -> Mapping[str, Estimate]:
        tokens = update.tokens[update.tokens["class"] == name]
        sequences = tokens["sequence"].to_numpy()
        found: dict[str, Estimate] = {
            str(column): median_estimate(tokens[column].to_numpy(), sequences, decomposed)
            for column in tokens.columns
            if column not in ("class", "sequence", "position")
        }
        if not self.fits.in_full(name):
            return found
        dim = self.settings.sizes.subspace_dim
        for reading in READINGS:
            energy = update.energy(name, reading)
            at = min(dim, energy.inside.shape[1]) - 1
            weights = np.concatenate([np.ones((1, energy.total.shape[1])), decomposed])
            shares = energy.shares(weights.astype(np.float64))[:, at]
            for part, values in zip(PARTS, shares, strict=True):
                found[f"energy_{part}_{reading}"] = _interval(values)
        kl = update.kl[update.kl["class"] == name]
        where = kl["sequence"].to_numpy()
        nats = kl["kl"].to_numpy()
        error = tokens["rel_err_state"].to_numpy()[: len(nats)]
        found["kl"] = median_estimate(nats, where, replaced)
        found["spearman_relerr_kl"] = spearman_estimate(error, nats, where, replaced)
        return found


def _interval(values: Float[np.ndarray, " draws"]) -> Estimate:
    """The first value with the percentile interval of the others."""
    return percentile_interval(float(values[0]), values[1:])
