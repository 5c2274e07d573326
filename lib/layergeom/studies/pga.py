"""Subspace PGA of a model: every capture point, sample and level of removal."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from layergeom.corpora.packing import spread_tokens
from layergeom.geometry.errors import GeometryError
from layergeom.geometry.memory import group_count
from layergeom.geometry.pga import PGASample, estimate_z, subspace_pga_levels
from layergeom.geometry.regimes import RegimeVerdict, classify_regime
from layergeom.geometry.subspaces import default_readout_dim, random_subspaces, readout_basis
from layergeom.progress import track
from layergeom.studies.code_version import code_version
from layergeom.studies.settings import Settings, generator
from layergeom.studies.states import Session, States
from layergeom.studies.store import Artefact, Results, compute_or_load

#: Levels of common-component removal: the document's default and its ablations.
LEVELS = (0, 1, 5, 10)


@dataclass(frozen=True)
class PGAProfile:
    """Subspace PGA by capture point.

    Attributes:
        samples: one row per point, level and sample: ``rho_readout``, ``null_mean``,
            ``null_std``, ``z``, ``p``, and ``z_error``, the standard error of z from ranking
            ``pairs`` of the pairs only.
        rho_null: the null's correlations by point, as (levels, samples, subspaces).
        readout_dim: k.
        depth: number of blocks, L.
        levels: levels of common-component removal, in the order of ``rho_null``.
        inputs: what the figures depend on.
    """

    samples: pd.DataFrame
    rho_null: Mapping[str, Float[np.ndarray, "levels samples subspaces"]]
    readout_dim: int
    depth: int
    levels: tuple[int, ...]
    inputs: Mapping[str, Any]

    def by_layer(self, level: int = 1) -> pd.DataFrame:
        """One row per capture point: means over samples, and z with its 95 % interval."""
        rows = []
        chosen = self.samples[self.samples["level"] == level]
        for order, (point, group) in enumerate(chosen.groupby("point", sort=False)):
            null = self.rho_null[str(point)][self.levels.index(level)]
            estimate = estimate_z(
                [
                    PGASample(rho, nulls, error)
                    for rho, error, nulls in zip(
                        group["rho_readout"], group["z_error"], null, strict=True
                    )
                ]
            )
            rows.append(
                {
                    "point": point,
                    "depth": order if point != "out" else self.depth,
                    "level": level,
                    **group[["rho_readout", "null_mean", "null_std", "z", "p"]].mean(),
                    "ci_low": estimate.ci_low,
                    "ci_high": estimate.ci_high,
                    "null_low": float(np.percentile(null, 2.5)),
                    "null_high": float(np.percentile(null, 97.5)),
                    "samples": estimate.samples,
                }
            )
        return pd.DataFrame(rows)

    def regime(self, level: int = 1) -> RegimeVerdict:
        """Regime and collapse zone, from the intermediate layers' intervals."""
        table = self.by_layer(level)
        hidden = table[table["point"] != "out"]
        return classify_regime(hidden["ci_low"].to_numpy(), hidden["ci_high"].to_numpy())


class PGAStudy:
    """Computes or loads the profile, one stored result per capture point."""

    def __init__(self, session: Session, levels: tuple[int, ...] = LEVELS) -> None:
        """Bind the study to a model and text, for some levels of common-component removal."""
        self.session = session
        self.levels = levels
        self.settings: Settings = session.settings

    @property
    def states(self) -> States:
        """The shared hidden states."""
        return self.session.states

    @property
    def readout_dim(self) -> int:
        """k, as asked or by the default rule; refused before anything is computed."""
        width = self.states.width
        asked = self.settings.readout_dim
        k = default_readout_dim(width) if asked is None else asked
        if not 1 <= k < width:
            raise GeometryError(
                f"readout dimension {k} at width {width}: it must lie between 1 and {width - 1}, "
                "or every random subspace would be the whole space"
            )
        return k

    @cached_property
    def tokens(self) -> tuple[Int[np.ndarray, "samples n"], Int[np.ndarray, "samples n"]]:
        """Sequence and position of the sampled tokens."""
        sequences, length = self.states.tokens.shape
        sizes = self.settings.sizes
        return spread_tokens(
            sequences,
            length,
            self.states.skip,
            sizes.pga_tokens,
            sizes.pga_samples,
            generator(self.settings.seed, "pga tokens"),
        )

    @cached_property
    def readout(self) -> Float[np.ndarray, "width k"]:
        """Basis of the readout subspace."""
        return readout_basis(self.states.artefact.array("unembedding"), self.readout_dim)

    @cached_property
    def subspaces(self) -> Float[np.ndarray, "count width k"]:
        """The null: the same subspaces for every point, level and sample."""
        return random_subspaces(
            self.states.width,
            self.readout_dim,
            self.settings.sizes.null_subspaces,
            generator(self.settings.seed, "null subspaces"),
        )

    def profile(self) -> PGAProfile:
        """The whole profile."""
        points = self.states.points
        artefacts = {
            point: self._point(point) for point in track(points, f"PGA {self.session.files.name}")
        }
        tables = [artefact.table("samples") for artefact in artefacts.values()]
        return PGAProfile(
            samples=pd.concat(tables, ignore_index=True),
            rho_null={point: a.array("rho_null") for point, a in artefacts.items()},
            readout_dim=self.readout_dim,
            depth=self.states.depth,
            levels=self.levels,
            inputs=artefacts[points[0]].inputs,
        )

    def _point(self, point: str) -> Artefact:
        sizes = self.settings.sizes
        inputs = {
            "states": dict(self.states.inputs),
            "point": point,
            "levels": list(self.levels),
            "tokens": sizes.pga_tokens,
            "token_groups": group_count(
                sizes.pga_tokens, self.states.width, len(self.levels), self.settings.memory
            ),
            "samples": sizes.pga_samples,
            "null_subspaces": sizes.null_subspaces,
            "readout_dim": self.readout_dim,
            "seed": self.settings.seed,
            "code": code_version(__name__),
        }
        return compute_or_load("pga", inputs, lambda: self._measure(point))

    def _measure(self, point: str) -> Results:
        states = self.states.at(point)
        rows, nulls = [], []
        for sample, (sequences, positions) in enumerate(zip(*self.tokens, strict=True)):
            by_level = subspace_pga_levels(
                states[sequences, positions],
                self.readout,
                self.subspaces,
                self.levels,
                self.settings.memory,
                self.settings.seed,
            )
            nulls.append([by_level[level].rho_null for level in self.levels])
            for level, result in by_level.items():
                rows.append(
                    {
                        "point": point,
                        "level": level,
                        "sample": sample,
                        "rho_readout": result.rho_readout,
                        "null_mean": result.null_mean,
                        "null_std": result.null_std,
                        "z": result.z,
                        "p": result.p,
                        "z_error": result.z_error,
                        "pairs": result.pairs,
                    }
                )
        return Results(
            arrays={"rho_null": np.array(nulls).transpose(1, 0, 2)},
            tables={"samples": pd.DataFrame(rows)},
        )
