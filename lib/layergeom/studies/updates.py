"""Layer updates of a model in figures: medians and correlations by block, with intervals."""

import warnings
from collections.abc import Mapping
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from layergeom.geometry.bootstrap import (
    Estimate,
    bootstrap_medians,
    bootstrap_spearman,
    median_estimate,
    percentile_interval,
    sequence_draws,
    spearman,
    spearman_estimates,
)
from layergeom.geometry.decomposition import PARTS, READINGS, Reading
from layergeom.geometry.threads import map_threads
from layergeom.studies.code_version import code_version
from layergeom.studies.controls import CONTROLS, ControlsStudy
from layergeom.studies.fits import BASELINES, CLASSES, CONTROLLED, BlockUpdate, FitsStudy
from layergeom.studies.settings import generator
from layergeom.studies.single import SinglePositionsStudy
from layergeom.studies.states import Session
from layergeom.studies.store import Results, compute_or_load

Draws = Int[np.ndarray, "draws sequences"]
#: A statistic of each block, first as measured and then in each bootstrap draw.
ByBlock = Float[np.ndarray, "blocks one_and_draws"]


def middle_third(depth: int) -> range:
    """The blocks of the middle third of the depth."""
    return range(depth // 3, depth - depth // 3)


class UpdatesStudy:
    """Summarises a model's fits and replacements."""

    def __init__(self, session: Session, classes: tuple[str, ...] = CLASSES + BASELINES) -> None:
        """Bind the study to a model and text, for some classes of map.

        Single positions are measured with all classes only: one class asked for alone is answered
        without them.

        Raises:
            UsageError: an unknown class, or sizes that leave nothing to fit or evaluate.
        """
        self.fits = FitsStudy(session, classes)
        self.controls = ControlsStudy(self.fits)
        self.single = SinglePositionsStudy(self.fits)
        self.settings = session.settings
        self.classes = classes

    @property
    def whole(self) -> bool:
        """Whether single positions belong to the summary."""
        return self.classes == CLASSES + BASELINES

    @cached_property
    def decomposed_draws(self) -> Draws:
        """Bootstrap draws of the query sequences; the same for every block and class."""
        sizes = self.settings.sizes
        return sequence_draws(
            sizes.query_sequences,
            sizes.bootstrap_draws,
            generator(self.settings.seed, "bootstrap query"),
        )

    @cached_property
    def replaced_draws(self) -> Draws:
        """Bootstrap draws of the replaced sequences."""
        sizes = self.settings.sizes
        return sequence_draws(
            max(2, sizes.replaced_sequences),
            sizes.bootstrap_draws,
            generator(self.settings.seed, "bootstrap replaced"),
        )

    def inputs(self) -> dict[str, Any]:
        """Everything that the summary depends on."""
        blocks = range(self.fits.states.depth)
        inputs = {
            "fits": [self.fits.fit_inputs(block) for block in blocks],
            "replacement": self.fits.kl_inputs(0),
            "draws": self.settings.sizes.bootstrap_draws,
            "subspace_dim": self.settings.sizes.subspace_dim,
            "seed": self.settings.seed,
            "code": code_version(__name__),
        }
        if self.whole:
            inputs |= {"single": self.single.inputs()}
        return inputs

    def summary(self) -> pd.DataFrame:
        """Medians and correlations by block and class, with intervals over sequences.

        Columns: ``block``, ``class``, ``quantity``, ``value``, ``ci_low``, ``ci_high``.
        """
        return compute_or_load("updates", self.inputs(), self._summarise).table("summary")

    def overall(self) -> pd.DataFrame:
        """What the blocks amount to by class, with intervals over sequences.

        Every block is measured on the same drawn sequences, so that a draw moves them together
        as another text would.

        Columns: ``class``, ``quantity``, ``value``, ``ci_low``, ``ci_high``.
        """
        return compute_or_load("updates_overall", self.inputs(), self._overall).table("overall")

    def equal_errors(self) -> pd.DataFrame:
        """KL under errors as long as the residual, and the residual's less theirs, by block.

        Medians over the replaced tokens, the differences being paired, with intervals over
        sequences. Stored apart from the summary: replacing three times more is only paid for
        where it is read.

        Columns: ``block``, ``class`` (the map whose residual it is), ``quantity``, ``value``,
        ``ci_low``, ``ci_high``.
        """
        inputs = self.inputs() | {"controls": self.controls.inputs(0)}
        return compute_or_load("equal_errors", inputs, self._equal_errors).table("equal_errors")

    def energy_by_dimension(self, block: int, name: str, reading: Reading) -> pd.DataFrame:
        """Energy shares of a block against the dimension of the dominant tokenwise subspace.

        Columns: ``block``, ``dimension``, ``part``, ``value``, ``ci_low``, ``ci_high``.
        """
        shares = self._energy_shares(self.fits.block(block), name, reading)
        return pd.DataFrame(
            {"block": block, "dimension": dimension + 1, "part": part, **_columns(_first(values))}
            for part, by_dimension in zip(PARTS, shares, strict=True)
            for dimension, values in enumerate(by_dimension)
        )

    def _summarise(self) -> Results:
        alone = self.single.table() if self.whole else pd.DataFrame()

        def of_block(update: BlockUpdate) -> list[dict[str, Any]]:
            rows = []
            for name in self.classes:
                found = self._decomposition(update, name)
                if self.fits.in_full(name):
                    found |= self._energies(update, name)
                    found |= self._of_error_and_kl(update.effects(name), "")
                if self.whole and name == CONTROLLED:
                    singly = alone[alone["block"] == update.block]
                    found |= self._of_error_and_kl(singly, "_single")
                rows += [
                    {
                        "block": update.block,
                        "class": name,
                        "quantity": quantity,
                        **_columns(estimate),
                    }
                    for quantity, estimate in found.items()
                ]
            return rows

        rows = map_threads(of_block, list(self.fits.blocks()))
        return Results(tables={"summary": pd.DataFrame(chain.from_iterable(rows))})

    def _decomposition(self, update: BlockUpdate, name: str) -> dict[str, Estimate]:
        tokens = update.tokens[update.tokens["class"] == name]
        values = {
            str(column): tokens[column].to_numpy()
            for column in tokens.columns
            if column not in ("class", "sequence", "position")
        }
        values["cos_tokenwise_minus_residual_state"] = (
            values["cos_full_tokenwise_state"] - values["cos_full_residual_state"]
        )
        sequences = tokens["sequence"].to_numpy()
        return {
            quantity: median_estimate(column, sequences, self.decomposed_draws)
            for quantity, column in values.items()
        }

    def _energy_shares(
        self, update: BlockUpdate, name: str, reading: Reading
    ) -> Float[np.ndarray, "parts dims one_and_draws"]:
        energy = update.energy(name, reading)
        draws = self.decomposed_draws
        weights = np.concatenate([np.ones((1, draws.shape[1])), draws])
        return energy.shares(weights.astype(np.float64))

    def _energies(self, update: BlockUpdate, name: str) -> dict[str, Estimate]:
        found: dict[str, Estimate] = {}
        for reading in READINGS:
            shares = self._energy_shares(update, name, reading)
            at = min(self.settings.sizes.subspace_dim, shares.shape[1]) - 1
            by_part = dict(zip(PARTS, shares[:, at], strict=True))
            if reading == "state":
                by_part["tokenwise_minus_residual"] = by_part["tokenwise"] - by_part["residual"]
            found |= {f"energy_{part}_{reading}": _first(v) for part, v in by_part.items()}
        return found

    def _of_error_and_kl(self, table: pd.DataFrame, ending: str) -> dict[str, Estimate]:
        """Median KL, and its correlation with the error, plain and given length and position."""
        nats, sequences = table["kl"].to_numpy(), table["sequence"].to_numpy()
        error = table["rel_err_state"].to_numpy()
        given = table[["length", "position"]].to_numpy(dtype=np.float64)
        draws = self.replaced_draws
        plain, partial = spearman_estimates(error, nats, given, sequences, draws)
        return {
            f"kl{ending}": median_estimate(nats, sequences, draws),
            f"spearman_relerr_kl{ending}": plain,
            f"partial_spearman_relerr_kl{ending}": partial,
        }

    def _equal_errors(self) -> Results:
        rows = [
            {"block": update.block, "class": CONTROLLED, "quantity": quantity, **_columns(estimate)}
            for update in self.fits.blocks()
            for quantity, estimate in self._controls(update).items()
        ]
        return Results(tables={"equal_errors": pd.DataFrame(rows)})

    def _controls(self, update: BlockUpdate) -> dict[str, Estimate]:
        own = update.kl[update.kl["class"] == CONTROLLED]
        table = self.controls.block(update.block)
        sequences, draws = own["sequence"].to_numpy(), self.replaced_draws
        found: dict[str, Estimate] = {}
        for control in CONTROLS:
            nats = table.loc[table["class"] == control, "kl"].to_numpy()
            more = own["kl"].to_numpy() - nats
            found[f"kl_{control}"] = median_estimate(nats, sequences, draws)
            found[f"kl_minus_{control}"] = median_estimate(more, sequences, draws)
        return found

    def _overall(self) -> Results:
        by_block = map_threads(self._drawn, list(self.fits.blocks()))
        middle = np.isin(
            np.arange(self.fits.states.depth), list(middle_third(self.fits.states.depth))
        )
        rows = []
        for name in self.classes:
            error, cosine = (
                np.stack([drawn[name, column] for drawn in by_block])
                for column in ("rel_err_state", "cos_full_tokenwise_state")
            )
            found = {
                "median_rel_err_state": _median_of_blocks(error),
                "middle_minus_rest_rel_err_state": _middle_minus_rest(error, middle),
                "middle_minus_rest_cos_full_tokenwise_state": _middle_minus_rest(cosine, middle),
            }
            if self.fits.in_full(name):
                rho = np.stack([drawn[name, "spearman_relerr_kl"] for drawn in by_block])
                found["median_spearman_relerr_kl"] = _median_of_blocks(rho)
                found["max_spearman_relerr_kl"] = _max_of_blocks(rho)
            rows += [
                {"class": name, "quantity": quantity, **_columns(_first(values))}
                for quantity, values in found.items()
            ]
        return Results(tables={"overall": pd.DataFrame(rows)})

    def _drawn(
        self, update: BlockUpdate
    ) -> dict[tuple[str, str], Float[np.ndarray, " one_and_draws"]]:
        """A block's statistics by class, as measured and in each draw."""
        found = {}
        for label, tokens in update.tokens.groupby("class", sort=False):
            name, sequences = str(label), tokens["sequence"].to_numpy()
            for column in ("rel_err_state", "cos_full_tokenwise_state"):
                found[name, column] = _drawn_median(
                    tokens[column].to_numpy(), sequences, self.decomposed_draws
                )
            if self.fits.in_full(name):
                found[name, "spearman_relerr_kl"] = _drawn_spearman(
                    update.effects(name), self.replaced_draws
                )
        return found


def _columns(estimate: Estimate) -> Mapping[str, float]:
    return {
        "value": estimate.value,
        "ci_low": estimate.ci_low,
        "ci_high": estimate.ci_high,
    }


def _first(values: Float[np.ndarray, " one_and_draws"]) -> Estimate:
    """The first value with the percentile interval of the others."""
    return percentile_interval(float(values[0]), values[1:])


def _drawn_median(
    values: Float[np.ndarray, " tokens"], sequences: Int[np.ndarray, " tokens"], draws: Draws
) -> Float[np.ndarray, " one_and_draws"]:
    once = np.ones((1, draws.shape[1]), dtype=draws.dtype)
    return bootstrap_medians(values, sequences, np.concatenate([once, draws]))


def _drawn_spearman(effects: pd.DataFrame, draws: Draws) -> Float[np.ndarray, " one_and_draws"]:
    kept = effects.dropna()
    error, kl = kept["rel_err_state"].to_numpy(), kept["kl"].to_numpy()
    drawn = bootstrap_spearman(error, kl, kept["sequence"].to_numpy(), draws)
    return np.concatenate([[spearman(error, kl)], drawn])


def _median_of_blocks(values: ByBlock) -> Float[np.ndarray, " one_and_draws"]:
    """Median over the blocks where the statistic is defined."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a draw without any such block is NaN
        return np.nanmedian(values, axis=0)


def _max_of_blocks(values: ByBlock) -> Float[np.ndarray, " one_and_draws"]:
    return np.where(
        np.isnan(values).all(axis=0), np.nan, np.max(np.nan_to_num(values, nan=-np.inf), axis=0)
    )


def _middle_minus_rest(
    values: ByBlock, middle: Bool[np.ndarray, " blocks"]
) -> Float[np.ndarray, " one_and_draws"]:
    """NaN where there is no other block."""
    return _median_of_blocks(values[middle]) - _median_of_blocks(values[~middle])
