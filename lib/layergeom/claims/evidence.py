"""What the claims are judged on: the stored results of each model, and of each pair of models.

Layers are counted as everywhere: ``H_l`` is the output of block ``l - 1``, and the intermediate
layers are ``1 ... L-1``. A *layer* of a rule that names no part of the depth is one of
``H_1 ... H_L``: the input of the first block is no layer's work, and the point after the final
norm is a point of its own. Thirds of the depth follow the border of the regime's rule, which puts
the late layers beyond ``2L/3``: the first third ends at ``L/3``, the middle third at ``2L/3``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from layergeom.errors import NotMeasurableError
from layergeom.geometry.bootstrap import Estimate
from layergeom.geometry.regimes import RegimeVerdict, classify_regime


@dataclass(frozen=True)
class Evidence:
    """All that is measured of one model.

    Attributes:
        name: the model.
        family: models of one architecture and training that differ in size alone.
        state_space: whether what crosses tokens is a state instead of attention.
        width: d.
        depth: number of blocks, L.
        random_dark: dark share of a random direction, 1 - k/d.
        bigram_loss: held-out loss of a bigram model; None for a model that came as it is.
        decides: whether the model takes part in the claims.
        undertrained: blocks whose ``mlp`` map decides nothing.
        tables: results by name, in the form in which the studies give them.
        missing: why a table is not there, by its name.
    """

    name: str
    family: str
    state_space: bool
    width: int
    depth: int
    random_dark: float
    bigram_loss: float | None = None
    decides: bool = True
    undertrained: frozenset[int] = frozenset()
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)

    def table(self, name: str) -> pd.DataFrame:
        """A table of results.

        Raises:
            NotMeasurableError: it is not there, with the reason.
        """
        if name not in self.tables:
            raise NotMeasurableError(self.missing.get(name, f"{name}: not measured"))
        return self.tables[name]

    @property
    def size(self) -> int:
        """L d², to which the number of a model's parameters is proportional."""
        return self.depth * self.width**2

    def z(self, level: int = 1) -> pd.DataFrame:
        """The z of ``H_0 ... H_L`` and ``out`` with its interval, at one level.

        Args:
            level: principal components removed.

        Raises:
            NotMeasurableError: Subspace PGA was not measured.
        """
        table = self.table("pga")
        return table[table["level"] == level]

    def regime(self) -> RegimeVerdict:
        """Regime and collapse zone, at CCR-1.

        Raises:
            NotMeasurableError: Subspace PGA was not measured.
        """
        return regime_of(self.z())

    def zone(self) -> tuple[int, int]:
        """First and last layer of the collapse zone.

        Raises:
            NotMeasurableError: there is none.
        """
        found = self.regime().collapse_zone
        if found is None:
            raise NotMeasurableError("no collapse zone")
        return found


@dataclass(frozen=True)
class Agreement:
    """How far two models agree on the same points of a text.

    Attributes:
        first: one model's name.
        second: the other's.
        along_depth: ``relative_depth``, ``quantity``, ``value``, ``ci_low``, ``ci_high``.
    """

    first: str
    second: str
    along_depth: pd.DataFrame


@dataclass(frozen=True)
class Results:
    """Everything that the ledger is computed from.

    Attributes:
        models: the evidence of each model, those that decide nothing included.
        pairs: what was measured between two models.
        missing: why a pair was not measured, by its names.
    """

    models: Sequence[Evidence]
    pairs: Sequence[Agreement] = ()
    missing: Mapping[str, str] = field(default_factory=dict)

    def taking_part(self) -> "Results":
        """The same without the models that decide nothing, and without their pairs."""
        models = [evidence for evidence in self.models if evidence.decides]
        names = {evidence.name for evidence in models}
        pairs = [pair for pair in self.pairs if {pair.first, pair.second} <= names]
        return Results(models, pairs, self.missing)


def regime_of(z: pd.DataFrame) -> RegimeVerdict:
    """Regime and collapse zone from z with its interval by point; ``H_0`` may be left out.

    Raises:
        NotMeasurableError: another layer is left out.
    """
    rows = z[(z["point"] != "out") & (z["depth"] > 0)].sort_values("depth")
    if list(rows["depth"]) != list(range(1, len(rows) + 1)):
        raise NotMeasurableError(f"z at depths {list(rows['depth'])} leaves layers out")
    # The input of block 0 is never judged; it keeps the place of the first layer.
    ends = [np.concatenate([[np.nan], rows[end].to_numpy()]) for end in ("ci_low", "ci_high")]
    return classify_regime(*ends)


def between(table: pd.DataFrame, first: float, last: float) -> pd.DataFrame:
    """Rows of the layers from ``first`` to ``last``, both included, in order of depth."""
    kept = table[(table["point"] != "out") & table["depth"].between(first, last)]
    return kept.sort_values("depth", kind="stable")


def layers(table: pd.DataFrame, depth: int) -> pd.DataFrame:
    """Rows of ``H_1 ... H_L``."""
    return between(table, 1, depth)


def intermediate(table: pd.DataFrame, depth: int) -> pd.DataFrame:
    """Rows of ``H_1 ... H_{L-1}``."""
    return between(table, 1, depth - 1)


def first_third(table: pd.DataFrame, depth: int) -> pd.DataFrame:
    """Rows of the intermediate layers up to ``L/3``; of the first one where that is below 1."""
    return between(table, 1, max(1, depth // 3))


def late(table: pd.DataFrame, depth: int) -> pd.DataFrame:
    """Rows of the intermediate layers beyond ``2L/3``."""
    rows = intermediate(table, depth)
    return rows[rows["depth"] > 2 * depth / 3]


def estimates(rows: pd.DataFrame, column: str = "value") -> list[Estimate]:
    """A column with its interval, row by row."""
    return [
        Estimate(float(value), float(low), float(high))
        for value, low, high in rows[[column, "ci_low", "ci_high"]].itertuples(index=False)
    ]
