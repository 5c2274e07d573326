"""Errors as long as the residual that point elsewhere, and what they do to the output."""

from typing import Any

import numpy as np
import pandas as pd

from layergeom.geometry.controls import along_tokenwise, other_tokens, random_direction
from layergeom.studies.code_version import code_version
from layergeom.studies.fits import CONTROLLED, FitsStudy
from layergeom.studies.settings import generator
from layergeom.studies.store import Results, compute_or_load

#: Errors of the residual's length: in a random direction, along another token's residual, and
#: along the tokenwise update.
CONTROLS = ("random", "other_token", "along_tokenwise")


class ControlsStudy:
    """Computes or loads the controls' replacements, one stored result per block."""

    def __init__(self, fits: FitsStudy) -> None:
        """Bind the study to the fits whose residuals set the lengths."""
        self.fits = fits

    def inputs(self, block: int) -> dict[str, Any]:
        """Everything that a block's controls depend on."""
        return {
            "replacement": self.fits.kl_inputs(block),
            "map": CONTROLLED,
            "controls": list(CONTROLS),
            "code": code_version(__name__),
        }

    def block(self, block: int) -> pd.DataFrame:
        """KL of each replaced token under each control at one block.

        Columns: ``class`` (the control), ``sequence``, ``position``, ``length``, ``kl``.
        """
        return compute_or_load("controls", self.inputs(block), lambda: self._measure(block)).table(
            "kl"
        )

    def _measure(self, block: int) -> Results:
        fits, rows = self.fits, self.fits.replaced_rows
        places = fits.replaced_places
        below, above = (
            fits.states.at(f"H_{layer}")[rows][places].astype(np.float64)
            for layer in (block, block + 1)
        )
        predicted = fits.predicted(block, CONTROLLED)[: len(above)].astype(np.float64)
        residual = above - predicted
        rng = generator(fits.settings.seed, f"controls {block}")
        errors = {
            "random": random_direction(residual, rng),
            "other_token": other_tokens(residual, rng),
            "along_tokenwise": along_tokenwise(residual, predicted - below),
        }
        # The tokenwise part is h' - r: a control takes another error away from h'.
        outputs = {name: above - error for name, error in errors.items()}
        return Results(tables={"kl": fits.perturb(block, outputs)})
