"""Where the two documents meet: how much of the residual the readout sees, and what goes with it.

Ours: the residual and the tokenwise update are split into the part inside the readout subspace
and the dark part outside it.
"""

from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from layergeom.geometry.bootstrap import (
    Estimate,
    bootstrap_medians,
    median_estimate,
    spearman_estimates,
)
from layergeom.geometry.over_layers import spearman_over_layers
from layergeom.geometry.subspaces import captured_share
from layergeom.progress import track
from layergeom.studies.code_version import code_version
from layergeom.studies.fits import CONTROLLED
from layergeom.studies.pga import PGAStudy
from layergeom.studies.samples import sample_draws, z_by_layer
from layergeom.studies.settings import generator
from layergeom.studies.states import Session
from layergeom.studies.store import Artefact, Results, compute_or_load
from layergeom.studies.updates import UpdatesStudy

#: Shares that are set beside z and KL over the blocks.
SHARES = (
    "readout_share_residual",
    "readout_share_update",
    "readout_share_residual_minus_update",
)


class BridgeStudy:
    """Computes or loads the readout's shares of residual and tokenwise update by block."""

    def __init__(self, session: Session) -> None:
        """Bind the study to a model and text."""
        self.session = session
        self.updates = UpdatesStudy(session)
        self.pga = PGAStudy(session)

    def inputs(self) -> dict[str, Any]:
        """Everything that the result depends on."""
        fits = self.updates.fits
        return {
            "fits": [fits.fit_inputs(block) for block in range(fits.states.depth)],
            "replacement": fits.kl_inputs(0),
            "pga": dict(self.pga.profile().inputs),
            "map": CONTROLLED,
            "draws": self.session.settings.sizes.bootstrap_draws,
            "code": code_version(__name__),
        }

    @property
    def artefact(self) -> Artefact:
        """The stored result, computed first if it is not there."""
        return compute_or_load("bridge", self.inputs(), self._measure)

    @property
    def chance(self) -> float:
        """The readout's share of a random direction, k/d."""
        return self.pga.readout_dim / self.pga.states.width

    def table(self) -> pd.DataFrame:
        """Medians over tokens and correlations over tokens by block, with intervals.

        Quantities: ``readout_share_residual`` and ``readout_share_update``, the dark shares being
        one less these; ``readout_share_residual_minus_update``, token by token;
        ``spearman_readout_share_kl``, of the residual's share and the KL it causes, and
        ``partial_spearman_readout_share_kl``, the same given relative error and ``|h'|``.

        Columns: ``block``, ``quantity``, ``value``, ``ci_low``, ``ci_high``.
        """
        return self.artefact.table("blocks")

    def correlations(self) -> pd.DataFrame:
        """Spearman over blocks of the shares with z above the block and with median KL.

        Columns: ``quantity``, ``against`` (z, kl), ``value``, ``ci_low``, ``ci_high``.
        """
        return self.artefact.table("correlations")

    def _measure(self) -> Results:
        updates = self.updates
        depth = updates.fits.states.depth
        sequences, _ = updates.fits.query_places
        rows, kl = [], []
        shares: dict[str, list[np.ndarray]] = {name: [] for name in SHARES}
        for block in track(range(depth), f"Bridge {self.session.files.name}"):
            by_token = self._shares(block)
            for name, values in by_token.items():
                shares[name].append(_drawn(values, sequences, updates.decomposed_draws))
            effects = updates.fits.block(block).effects(CONTROLLED)
            replaced = effects["sequence"].to_numpy()
            kl.append(_drawn(effects["kl"].to_numpy(), replaced, updates.replaced_draws))
            rows += [
                {
                    "block": block,
                    "quantity": quantity,
                    "value": estimate.value,
                    "ci_low": estimate.ci_low,
                    "ci_high": estimate.ci_high,
                }
                for quantity, estimate in self._estimates(by_token, effects).items()
            ]
        profiles = {name: np.stack(columns, axis=1) for name, columns in shares.items()}
        return Results(
            tables={
                "blocks": pd.DataFrame(rows),
                "correlations": self._over_blocks(profiles, np.stack(kl, axis=1)),
            }
        )

    def _shares(self, block: int) -> dict[str, Float[np.ndarray, " tokens"]]:
        """The readout's share of each query token's parts at one block."""
        states = self.updates.fits.states
        places = self.updates.fits.query_places
        first = int(states.inputs["bank_sequences"])
        below, above = (
            states.at(f"H_{layer}")[first:][places].astype(np.float64)
            for layer in (block, block + 1)
        )
        tokenwise = self.updates.fits.predicted(block, CONTROLLED)
        residual = captured_share(above - tokenwise, self.pga.readout)
        update = captured_share(tokenwise - below, self.pga.readout)
        return dict(zip(SHARES, (residual, update, residual - update), strict=True))

    def _estimates(
        self, by_token: dict[str, Float[np.ndarray, " tokens"]], effects: pd.DataFrame
    ) -> dict[str, Estimate]:
        updates = self.updates
        sequences, _ = updates.fits.query_places
        found = {
            name: median_estimate(values, sequences, updates.decomposed_draws)
            for name, values in by_token.items()
        }
        share = by_token["readout_share_residual"][: len(effects)]  # the first are replaced
        nats, given = effects["kl"].to_numpy(), effects[["rel_err_state", "length"]].to_numpy()
        replaced, draws = effects["sequence"].to_numpy(), updates.replaced_draws
        found["spearman_readout_share_kl"], found["partial_spearman_readout_share_kl"] = (
            spearman_estimates(share, nats, given, replaced, draws)
        )
        return found

    def _over_blocks(
        self,
        shares: dict[str, Float[np.ndarray, "one_and_draws blocks"]],
        kl: Float[np.ndarray, "one_and_draws blocks"],
    ) -> pd.DataFrame:
        settings = self.session.settings
        z = z_by_layer(self.pga.profile())[1:]  # a block's residual is an error in H_(block + 1)
        weights = sample_draws(
            z.shape[1],
            settings.sizes.bootstrap_draws,
            generator(settings.seed, "bootstrap samples"),
        )
        against = {"z": np.vstack([z.mean(axis=1), weights @ z.T]), "kl": kl}
        rows = []
        for name, drawn in shares.items():
            for other, values in against.items():
                estimate = spearman_over_layers(
                    drawn[0],
                    values[0],
                    drawn[1:],
                    values[1:],
                    generator(settings.seed, "bootstrap layers"),
                )
                rows.append(
                    {
                        "quantity": name,
                        "against": other,
                        "value": estimate.value,
                        "ci_low": estimate.ci_low,
                        "ci_high": estimate.ci_high,
                    }
                )
        return pd.DataFrame(rows)


def _drawn(
    values: Float[np.ndarray, " tokens"],
    sequences: Int[np.ndarray, " tokens"],
    draws: Int[np.ndarray, "draws sequences"],
) -> Float[np.ndarray, " one_and_draws"]:
    """Median over tokens as measured and in each bootstrap draw."""
    once = np.ones((1, draws.shape[1]), dtype=draws.dtype)
    return bootstrap_medians(values, sequences, np.concatenate([once, draws]))
