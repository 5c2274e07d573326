"""One position replaced at a time, at a sample of positions."""

from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int

from layergeom.errors import UsageError
from layergeom.progress import track
from layergeom.studies.code_version import code_version
from layergeom.studies.fits import CONTROLLED, FitsStudy
from layergeom.studies.settings import generator
from layergeom.studies.store import Artefact, Results, compute_or_load


class SinglePositionsStudy:
    """Computes or loads the effect of each block's residual at one position at a time."""

    def __init__(self, fits: FitsStudy) -> None:
        """Bind the study to the fits whose predictions are put in place."""
        self.fits = fits

    @cached_property
    def places(self) -> tuple[Int[np.ndarray, " tokens"], Int[np.ndarray, " tokens"]]:
        """Sequence and position of the sampled tokens, grouped by position.

        The same positions in every replaced sequence, so that these run together; one is drawn
        from each of as many equal stretches.

        Raises:
            UsageError: more tokens than are replaced, with both numbers.
        """
        asked = self.fits.settings.sizes.single_positions
        sequences, positions = self.fits.replaced_places
        count = int(sequences.max()) + 1
        shared = int(np.bincount(sequences).min())
        each = -(-asked // count)
        if each > shared:
            raise UsageError(
                f"{asked} single positions asked for from {count} sequences, which share {shared} "
                "replaced positions each. Ask for fewer."
            )
        rng = generator(self.fits.settings.seed, "single positions")
        stretches = np.array_split(np.unique(positions)[:shared], each)
        chosen = np.array([rng.choice(stretch) for stretch in stretches])
        return (
            np.tile(np.arange(count), each)[:asked],
            np.repeat(chosen, count)[:asked],
        )

    def inputs(self) -> dict[str, Any]:
        """Everything that the result depends on."""
        fits = self.fits
        return {
            "fits": [fits.fit_inputs(block) for block in range(fits.states.depth)],
            "sequences": fits.settings.sizes.replaced_sequences,
            "positions": fits.settings.sizes.single_positions,
            "map": CONTROLLED,
            "mode": "single",
            "seed": fits.settings.seed,
            "code": code_version(__name__, "layergeom.models.single_position"),
        }

    @property
    def artefact(self) -> Artefact:
        """The stored result, computed first if it is not there."""
        return compute_or_load("single", self.inputs(), self._measure)

    @property
    def sampled(self) -> int:
        """Number of tokens that were replaced, each alone."""
        return int(self.artefact.facts["tokens"])

    def table(self) -> pd.DataFrame:
        """One row per block and sampled token.

        Columns: ``block``, ``sequence``, ``position``, ``length`` (``|h'|``), ``rel_err_state``,
        ``kl``, nats.
        """
        return self.artefact.table("kl")

    def _measure(self) -> Results:
        from layergeom.models.single_position import single_perturbation

        fits, states, rows = self.fits, self.fits.states, self.fits.replaced_rows
        sequences, positions = self.places
        index = _rows_of(fits.replaced_places, self.places)
        outputs, own = (
            np.stack([pick(block) for block in range(states.depth)])
            for pick in (
                lambda block: fits.predicted(block, CONTROLLED)[index],
                lambda block: states.at(f"H_{block + 1}")[rows][sequences, positions],
            )
        )
        kl = np.empty(outputs.shape[:2])
        tokens, out = states.tokens[rows], states.at("out")[rows]
        for position in track(np.unique(positions), f"Single positions {fits.session.files.name}"):
            at = np.flatnonzero(positions == position)
            kl[:, at] = single_perturbation(
                fits.session.model,
                tokens[sequences[at]],
                int(position),
                out[sequences[at], position],
                outputs[:, at],
            )
        length = np.linalg.norm(own.astype(np.float64), axis=2)
        error = np.linalg.norm(own.astype(np.float64) - outputs, axis=2)
        tables = [
            pd.DataFrame(
                {
                    "block": block,
                    "sequence": sequences,
                    "position": positions,
                    "length": length[block],
                    "rel_err_state": error[block] / length[block],
                    "kl": kl[block],
                }
            )
            for block in range(states.depth)
        ]
        facts = {"tokens": len(sequences), "positions": len(np.unique(positions))}
        return Results(tables={"kl": pd.concat(tables, ignore_index=True)}, facts=facts)


def _rows_of(
    places: tuple[Int[np.ndarray, " tokens"], Int[np.ndarray, " tokens"]],
    wanted: tuple[Int[np.ndarray, " wanted"], Int[np.ndarray, " wanted"]],
) -> Int[np.ndarray, " wanted"]:
    """Where each wanted sequence and position is among the places."""
    row = {place: i for i, place in enumerate(zip(*places, strict=True))}
    return np.array([row[place] for place in zip(*wanted, strict=True)])
