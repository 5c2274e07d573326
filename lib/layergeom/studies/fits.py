"""Each block's tokenwise fits, what they leave, and what that does to the output."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from layergeom.errors import UsageError, unknown
from layergeom.geometry.decomposition import (
    READINGS,
    EnergyShares,
    alignment,
    dominant_subspace_energy,
)
from layergeom.geometry.local_maps import fit_local_maps, global_linear_map
from layergeom.geometry.neighbours import nearest_neighbours
from layergeom.geometry.threads import map_threads
from layergeom.progress import track
from layergeom.studies.code_version import code_version
from layergeom.studies.settings import Settings
from layergeom.studies.states import Session, States
from layergeom.studies.store import Artefact, Results, compute_or_load

#: Restricted classes of tokenwise map, and the baselines beside them.
CLASSES = ("diagonal", "orthogonal", "low_rank", "identity_low_rank", "mlp")
BASELINES = ("identity", "mean_update", "global_linear")
#: The class that is measured against controls and one position at a time as well.
CONTROLLED = "orthogonal"
_LOCAL = ("diagonal", "orthogonal", "low_rank", "identity_low_rank", "mean_update")


def check_class(name: str) -> str:
    """A class of map by name.

    Raises:
        UsageError: no such class.
    """
    if name not in (*CLASSES, *BASELINES):
        raise unknown("map", name, [*CLASSES, *BASELINES])
    return name


@dataclass(frozen=True)
class BlockUpdate:
    """What is stored for one block.

    Attributes:
        block: index of the block.
        fits: predictions, neighbours and energies.
        tokens: one row per query token and class: both readings' cosines, angles and errors.
        kl: one row per replaced token and class: ``kl`` in nats, and ``length``, ``|h'|``.
    """

    block: int
    fits: Artefact
    tokens: pd.DataFrame
    kl: pd.DataFrame

    def effects(self, name: str) -> pd.DataFrame:
        """Error and effect of each replaced token for a class.

        Columns: ``sequence``, ``position``, ``length`` (``|h'|``), ``rel_err_state``, ``kl``.
        """
        where = ["sequence", "position"]
        kl = self.kl.loc[self.kl["class"] == name, [*where, "length", "kl"]]
        errors = self.tokens.loc[self.tokens["class"] == name, [*where, "rel_err_state"]]
        return kl.merge(errors, on=where, validate="one_to_one")

    def energy(self, name: str, reading: str) -> EnergyShares:
        """Energy of the parts in the dominant tokenwise subspace."""
        return EnergyShares(
            self.fits.array(f"inside_{reading}_{name}"), self.fits.array(f"total_{reading}_{name}")
        )


class FitsStudy:
    """Computes or loads fits and replacements, one stored result each per block."""

    def __init__(self, session: Session, classes: tuple[str, ...] = CLASSES + BASELINES) -> None:
        """Bind the study to a model and text, for some classes of map.

        Raises:
            UsageError: an unknown class, or sizes that leave nothing to fit or evaluate.
        """
        self.session = session
        self.settings: Settings = session.settings
        self.classes = tuple(check_class(name) for name in classes)
        sizes = self.settings.sizes
        if sizes.query_sequences < 2:
            raise UsageError(
                f"{sizes.query_sequences} query sequences: intervals need 2 or more. "
                "Ask for more tokens."
            )

        if "mlp" in self.classes and sizes.bank_sequences < 2:
            raise UsageError("the mlp holds bank sequences out: it needs 2 or more.")

    @cached_property
    def query_index(self) -> Int[np.ndarray, " tokens"]:
        """The query tokens among all positions of the query sequences that are not skipped."""
        sizes = self.settings.sizes
        positions = self.states.tokens.shape[1] - self.states.skip
        available = sizes.query_sequences * positions
        count = sizes.query_tokens or available
        if count > available:
            raise UsageError(
                f"{count} query tokens asked for from {sizes.query_sequences} sequences, which "
                f"have {available}."
            )
        share, rest = divmod(count, sizes.query_sequences)
        return np.concatenate(
            [
                sequence * positions + np.arange(share + (sequence < rest))
                for sequence in range(sizes.query_sequences)
            ]
        )

    @property
    def query_places(self) -> tuple[Int[np.ndarray, " tokens"], Int[np.ndarray, " tokens"]]:
        """Sequence, from 0, and position of the query tokens."""
        positions = self.states.tokens.shape[1] - self.states.skip
        sequences, offsets = np.divmod(self.query_index, positions)
        return sequences, offsets + self.states.skip

    @property
    def replaced_places(self) -> tuple[Int[np.ndarray, " tokens"], Int[np.ndarray, " tokens"]]:
        """Sequence and position of the replaced tokens: the first of the query tokens."""
        sequences, positions = self.query_places
        count = np.count_nonzero(sequences < self.settings.sizes.replaced_sequences)
        return sequences[:count], positions[:count]

    @property
    def replaced_rows(self) -> slice:
        """The replaced sequences among all of them."""
        first = int(self.states.inputs["bank_sequences"])
        return slice(first, first + self.settings.sizes.replaced_sequences)

    @property
    def states(self) -> States:
        """The shared hidden states."""
        return self.session.states

    def blocks(self) -> Iterator[BlockUpdate]:
        """Every block's fits and replacement, in order."""
        name = self.session.files.name
        self._check_bank()
        for block in track(range(self.states.depth), f"Updates {name}"):
            yield self.block(block)

    def fits(self, block: int) -> Artefact:
        """One block's predictions, neighbours and energies."""
        return compute_or_load("fits", self.fit_inputs(block), lambda: self._fit(block))

    def predicted(self, block: int, name: str) -> Float[np.ndarray, "tokens width"]:
        """``T(h)`` of the query tokens at one block, for a class that is kept in full."""
        return self.fits(block).array(f"predicted_{name}")

    def block(self, block: int) -> BlockUpdate:
        """One block's fits and replacement."""
        fits = self.fits(block)
        kl = compute_or_load(
            "replacement", self.kl_inputs(block), lambda: self._replace(block, fits)
        )
        return BlockUpdate(block, fits, fits.table("tokens"), kl.table("kl"))

    def in_full(self, name: str) -> bool:
        """Whether a class has energies and is replaced: a baseline only if asked for alone."""
        return name not in BASELINES or len(self.classes) == 1

    def undertrained(self) -> list[int]:
        """Blocks whose ``mlp`` ended above one linear map on its held-out part."""
        return [
            update.block for update in self.blocks() if update.fits.facts.get("mlp_undertrained")
        ]

    def _check_bank(self) -> None:
        tokens = int(self.states.inputs["bank_sequences"]) * (
            int(self.states.inputs["sequence_length"]) - self.states.skip
        )
        if tokens < self.settings.sizes.neighbours:
            raise UsageError(
                f"{self.settings.sizes.neighbours} neighbours asked for from a bank of {tokens} "
                "tokens. Ask for fewer neighbours, or give a larger bank."
            )

    def fit_inputs(self, block: int) -> dict[str, Any]:
        """Everything that a block's fits depend on."""
        return {
            "states": dict(self.states.inputs),
            "block": block,
            "classes": list(self.classes),
            "neighbours": self.settings.sizes.neighbours,
            "rank": self.settings.sizes.rank,
            "query_tokens": self.settings.sizes.query_tokens,
            "metric": self.settings.metric,
            "exclude_same_token": self.settings.exclude_same_token,
            "seed": self.settings.seed,
            "code": code_version(__name__, "layergeom.models.mlp_map"),
        }

    def kl_inputs(self, block: int) -> dict[str, Any]:
        """Everything that a block's replacement depends on."""
        return {
            "fits": self.fit_inputs(block),
            "sequences": self.settings.sizes.replaced_sequences,
            "mode": "all",
            "code": code_version("layergeom.models.replacement"),
        }

    def _fit(self, block: int) -> Results:
        states, sizes = self.states, self.settings.sizes
        below, above = states.at(f"H_{block}"), states.at(f"H_{block + 1}")
        index = self.query_index
        query, query_above = states.query(below)[index], states.query(above)[index]
        bank, bank_above = states.bank(below), states.bank(above)
        exclude = self.settings.exclude_same_token
        neighbours = nearest_neighbours(
            query,
            bank,
            sizes.neighbours,
            self.settings.metric,
            states.query(states.tokens)[index] if exclude else None,
            states.bank(states.tokens) if exclude else None,
        )
        local = tuple(name for name in _LOCAL if name in self.classes)
        predicted: dict[str, np.ndarray] = dict(
            fit_local_maps(local, query, bank, bank_above, neighbours, sizes.rank)
        )
        facts: dict[str, Any] = {}
        if "identity" in self.classes:
            predicted["identity"] = query
        if "global_linear" in self.classes:
            predicted["global_linear"] = global_linear_map(query, bank, bank_above)
        if "mlp" in self.classes:
            from layergeom.models.mlp_map import fit_mlp_map

            fit = fit_mlp_map(
                query, bank, bank_above, states.sequence_of(states.bank), self.settings.seed
            )
            predicted["mlp"] = fit.predicted
            facts = {
                "mlp_curve": fit.curve,
                "mlp_global_linear": fit.global_linear,
                "mlp_undertrained": fit.undertrained,
            }
        sequences, positions = self.query_places
        arrays: dict[str, np.ndarray] = {"neighbours": neighbours.astype(np.int32)}

        def measure(name: str) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
            # Whatever is measured is measured on the float32 predictions that are stored.
            t = predicted[name].astype(np.float32)
            columns: dict[str, Any] = {"class": name, "sequence": sequences, "position": positions}
            kept: dict[str, np.ndarray] = {}
            for reading in READINGS:
                found = alignment(query, query_above, t, reading)
                columns |= {f"{key}_{reading}": value for key, value in found.items()}
                if self.in_full(name):
                    shares = dominant_subspace_energy(query, query_above, t, sequences, reading)
                    kept[f"inside_{reading}_{name}"] = shares.inside
                    kept[f"total_{reading}_{name}"] = shares.total
            if self.in_full(name):
                kept[f"predicted_{name}"] = t
            return pd.DataFrame(columns), kept

        tables = []
        for table, kept in map_threads(measure, self.classes):
            tables.append(table)
            arrays |= kept
        return Results(arrays, {"tokens": pd.concat(tables, ignore_index=True)}, facts)

    def _replace(self, block: int, fits: Artefact) -> Results:
        count = len(self.replaced_places[0])
        outputs = {
            name: fits.array(f"predicted_{name}")[:count]
            for name in self.classes
            if self.in_full(name)
        }
        return Results(tables={"kl": self.perturb(block, outputs)})

    def perturb(
        self, block: int, outputs: Mapping[str, Float[np.ndarray, "tokens width"]]
    ) -> pd.DataFrame:
        """KL of each replaced token when a block puts out other states at all of them.

        Args:
            block: index of the block.
            outputs: its outputs at the replaced tokens, by name; the skipped positions keep the
                model's own.

        Returns:
            Columns ``class`` (the output's name), ``sequence``, ``position``, ``length`` (of the
            model's own output) and ``kl``, nats.
        """
        from layergeom.models.replacement import perturbation

        states, rows = self.states, self.replaced_rows
        own = states.at(f"H_{block + 1}")[rows]
        sequences, positions = self.replaced_places
        replacements = {}
        for name, output in outputs.items():
            replaced = own.copy()
            replaced[sequences, positions] = output
            replacements[name] = replaced
        kl = perturbation(
            self.session.model, states.tokens[rows], block, states.at("out")[rows], replacements
        )
        length = np.linalg.norm(own[sequences, positions].astype(np.float64), axis=1)
        tables = [
            pd.DataFrame(
                {
                    "class": name,
                    "sequence": sequences,
                    "position": positions,
                    "length": length,
                    "kl": values[sequences, positions],
                }
            )
            for name, values in kl.items()
        ]
        return pd.concat(tables, ignore_index=True)
