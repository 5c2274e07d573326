"""How much of the residual and of the tokenwise update lies along attention and MLP."""

from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from layergeom.geometry.bootstrap import median_estimate
from layergeom.geometry.decomposition import share_along
from layergeom.progress import track
from layergeom.studies.code_version import code_version
from layergeom.studies.fits import CONTROLLED
from layergeom.studies.states import Session
from layergeom.studies.store import Artefact, Results, compute_or_load
from layergeom.studies.updates import UpdatesStudy


class SubBlocksStudy:
    """Computes or loads the shares along what the parts of each block add to the stream."""

    def __init__(self, session: Session) -> None:
        """Bind the study to a model and text."""
        self.session = session
        self.updates = UpdatesStudy(session)

    def inputs(self) -> dict[str, Any]:
        """Everything that the result depends on."""
        fits = self.updates.fits
        return {
            "fits": [fits.fit_inputs(block) for block in range(fits.states.depth)],
            "map": CONTROLLED,
            "draws": self.session.settings.sizes.bootstrap_draws,
            "code": code_version(__name__, "layergeom.models.sub_blocks"),
        }

    @property
    def artefact(self) -> Artefact:
        """The stored result, computed first if it is not there.

        Raises:
            NotMeasurableError: the parts' outputs are not what is added to the stream.
        """
        return compute_or_load("sub_blocks", self.inputs(), self._measure)

    @property
    def chance(self) -> float:
        """Share along a random direction: one part in the width."""
        return 1.0 / self.updates.fits.states.width

    def table(self) -> pd.DataFrame:
        """Median shares of squared length over tokens, with intervals over sequences.

        Columns: ``block``, ``part`` (mixer, mlp), ``of`` (residual, update), ``value``,
        ``ci_low``, ``ci_high``.
        """
        return self.artefact.table("shares")

    def _measure(self) -> Results:
        fits = self.updates.fits
        shares = self._shares()
        sequences, _ = fits.query_places
        rows = []
        for (block, part, of), values in shares.items():
            estimate = median_estimate(values, sequences, self.updates.decomposed_draws)
            rows.append(
                {
                    "block": block,
                    "part": part,
                    "of": of,
                    "value": estimate.value,
                    "ci_low": estimate.ci_low,
                    "ci_high": estimate.ci_high,
                }
            )
        return Results(tables={"shares": pd.DataFrame(rows)})

    def _shares(self) -> dict[tuple[int, str, str], Float[np.ndarray, " tokens"]]:
        """Shares of each query token by block, part and what is shared out."""
        from layergeom.models.sub_blocks import sub_block_outputs

        fits = self.updates.fits
        name = self.session.files.name
        sequences, positions = fits.query_places
        first = int(fits.states.inputs["bank_sequences"])
        model = self.session.model
        ids = model.on_device(fits.states.tokens[first:])
        predicted = [
            fits.predicted(block, CONTROLLED)
            for block in track(range(fits.states.depth), f"Updates {name}")
        ]
        found: dict[tuple[int, str, str], np.ndarray] = {}
        for batch in track(sub_block_outputs(model, ids), f"Sub-blocks {name}"):
            at = np.flatnonzero((sequences >= batch.rows.start) & (sequences < batch.rows.stop))
            places = (sequences[at] - batch.rows.start, positions[at])
            for block, parts in enumerate(batch.added):
                below, above = (
                    batch.hidden[layer].float().cpu().numpy()[places].astype(np.float64)
                    for layer in (block, block + 1)
                )
                tokenwise = predicted[block][at]
                shared = {"residual": above - tokenwise, "update": tokenwise - below}
                for part, output in parts.items():
                    along = output.float().cpu().numpy()[places]
                    for of, vectors in shared.items():
                        column = found.setdefault((block, part, of), np.empty(len(sequences)))
                        column[at] = share_along(vectors, along)
        return found
