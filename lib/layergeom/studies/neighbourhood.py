"""What changes when the local fits' neighbourhood is chosen the other way."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from layergeom.geometry.bootstrap import median_estimate
from layergeom.geometry.decomposition import alignment
from layergeom.geometry.local_maps import fit_local_maps
from layergeom.geometry.neighbours import Metric, nearest_neighbours
from layergeom.progress import track
from layergeom.studies.code_version import code_version
from layergeom.studies.settings import Sizes
from layergeom.studies.states import Session
from layergeom.studies.store import Artefact, Results, compute_or_load
from layergeom.studies.updates import UpdatesStudy

#: Blocks looked at, evenly over the depth, the first among them; and query tokens at most.
BLOCKS, TOKENS = 5, 256


@dataclass(frozen=True)
class Choice:
    """One way to choose a neighbourhood.

    Attributes:
        choice: what is varied: neighbours, rank, metric or same_token.
        alternative: the value it has, as it is shown.
        default: whether that is the default.
        map_class: the class that is fitted.
        neighbours: number of neighbours, K.
        rank: rank of the map, q.
        metric: distance between states.
        exclude: whether bank tokens with the query's token id are left out.
    """

    choice: str
    alternative: str
    default: bool
    map_class: str
    neighbours: int
    rank: int
    metric: Metric
    exclude: bool


def choices(sizes: Sizes, metric: Metric, exclude: bool) -> list[Choice]:
    """The defaults and, one choice at a time, their alternatives.

    A quarter, half and twice the number of neighbours; a quarter and four times the rank, with
    the low-rank class; the other metric; and the bank with or without the token's own copies.
    """
    k, q = sizes.neighbours, sizes.rank
    neighbours = sorted({max(1, k // 4), max(1, k // 2), k, 2 * k})
    ranks = sorted({max(1, q // 4), q, 4 * q})
    metrics: tuple[Metric, ...] = ("euclidean", "cosine")
    words = {False: "kept", True: "left out"}
    return [
        *(
            Choice("neighbours", str(n), n == k, "orthogonal", n, q, metric, exclude)
            for n in neighbours
        ),
        *(Choice("rank", str(r), r == q, "low_rank", k, r, metric, exclude) for r in ranks),
        *(Choice("metric", m, m == metric, "orthogonal", k, q, m, exclude) for m in metrics),
        *(
            Choice("same_token", word, kept == exclude, "orthogonal", k, q, metric, kept)
            for kept, word in words.items()
        ),
    ]


class NeighbourhoodStudy:
    """Computes or loads the alternatives' fits at a few blocks, one stored result each."""

    def __init__(self, session: Session) -> None:
        """Bind the study to a model and text."""
        self.session = session
        self.settings = session.settings
        self.updates = UpdatesStudy(session)

    @property
    def blocks(self) -> list[int]:
        """The blocks looked at."""
        depth = self.updates.fits.states.depth
        return np.unique(np.linspace(0, depth - 1, BLOCKS).round().astype(int)).tolist()

    @cached_property
    def query(self) -> Int[np.ndarray, " tokens"]:
        """The query tokens looked at, evenly over all of them."""
        every = len(self.updates.fits.query_index)
        return np.unique(np.linspace(0, every - 1, min(TOKENS, every)).round().astype(int))

    @property
    def facts(self) -> dict[str, Any]:
        """What the table stands on: the ``blocks`` and the number of query ``tokens``."""
        return {"blocks": self.blocks, "tokens": len(self.query)}

    def inputs(self, block: int) -> dict[str, Any]:
        """Everything that a block's result depends on."""
        sizes = self.settings.sizes
        return {
            "states": dict(self.updates.fits.states.inputs),
            "block": block,
            "tokens": len(self.query),
            "query_tokens": sizes.query_tokens,
            "neighbours": sizes.neighbours,
            "rank": sizes.rank,
            "metric": self.settings.metric,
            "exclude_same_token": self.settings.exclude_same_token,
            "draws": sizes.bootstrap_draws,
            "seed": self.settings.seed,
            "code": code_version(__name__),
        }

    def table(self) -> pd.DataFrame:
        """Errors, cosines and angles under each choice, medians over the query tokens looked at.

        Columns: ``choice``, ``alternative``, ``default``, ``block``, ``quantity``, ``value``,
        ``ci_low``, ``ci_high``. An alternative that the bank cannot give at a block is left out.
        """
        name = self.session.files.name
        return pd.concat(
            [self._block(block).table("choices") for block in track(self.blocks, f"Near {name}")],
            ignore_index=True,
        )

    def _block(self, block: int) -> Artefact:
        return compute_or_load("neighbourhood", self.inputs(block), lambda: self._measure(block))

    def _measure(self, block: int) -> Results:
        fits, states = self.updates.fits, self.updates.fits.states
        at = fits.query_index[self.query]
        sequences = fits.query_places[0][self.query]
        below, above = states.at(f"H_{block}"), states.at(f"H_{block + 1}")
        query, full = states.query(below)[at], states.query(above)[at]
        rows = []
        for choice, predicted in self._predictions(query, below, above, at):
            found = alignment(query, full, predicted, "state")
            for quantity, values in found.items():
                estimate = median_estimate(values, sequences, self.updates.decomposed_draws)
                rows.append(
                    {
                        "choice": choice.choice,
                        "alternative": choice.alternative,
                        "default": choice.default,
                        "block": block,
                        "quantity": f"{quantity}_state",
                        "value": estimate.value,
                        "ci_low": estimate.ci_low,
                        "ci_high": estimate.ci_high,
                    }
                )
        return Results(tables={"choices": pd.DataFrame(rows)})

    def _predictions(
        self,
        query: Float[np.ndarray, "tokens width"],
        below: Float[np.ndarray, "sequences length width"],
        above: Float[np.ndarray, "sequences length width"],
        at: Int[np.ndarray, " tokens"],
    ) -> Iterator[tuple[Choice, Float[np.ndarray, "tokens width"]]]:
        """Each choice with its predictions; what two choices share is fitted once."""
        states = self.updates.fits.states
        bank, bank_above = states.bank(below), states.bank(above)
        ids, bank_ids = states.query(states.tokens)[at], states.bank(states.tokens)
        eligible = {False: len(bank), True: int((ids[:, None] != bank_ids).sum(axis=1).min())}
        every = [
            choice
            for choice in choices(
                self.settings.sizes, self.settings.metric, self.settings.exclude_same_token
            )
            if choice.neighbours <= eligible[choice.exclude]
        ]
        near: dict[tuple[Metric, bool], np.ndarray] = {}
        fitted: dict[tuple[Any, ...], np.ndarray] = {}
        for choice in every:
            kind = (choice.metric, choice.exclude)
            if kind not in near:
                near[kind] = nearest_neighbours(
                    query,
                    bank,
                    max(c.neighbours for c in every if (c.metric, c.exclude) == kind),
                    choice.metric,
                    ids if choice.exclude else None,
                    bank_ids if choice.exclude else None,
                )
            key = (choice.map_class, choice.neighbours, choice.rank, *kind)
            if key not in fitted:
                # Nearest first: fewer neighbours are the first of more.
                fitted[key] = fit_local_maps(
                    (choice.map_class,),
                    query,
                    bank,
                    bank_above,
                    near[kind][:, : choice.neighbours],
                    choice.rank,
                )[choice.map_class]
            yield choice, fitted[key]
