"""z under other choices than the method's: what a conclusion hangs on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from layergeom.corpora.packing import spread_tokens
from layergeom.errors import UsageError
from layergeom.geometry.components import leading_components, remove_common_components
from layergeom.geometry.errors import GeometryError
from layergeom.geometry.nulls import orthogonal_subspaces, variance_matched_subspaces
from layergeom.geometry.pga import PGASample, estimate_z, subspace_pga
from layergeom.geometry.subspaces import (
    centre_vocabulary,
    fold_norm,
    random_subspaces,
    readout_basis,
)
from layergeom.geometry.threads import map_threads
from layergeom.progress import track
from layergeom.studies.code_version import code_version
from layergeom.studies.pga import PGAStudy
from layergeom.studies.samples import depth_of
from layergeom.studies.settings import generator
from layergeom.studies.states import Session
from layergeom.studies.store import Results, compute_or_load

#: Components removed: the document's default.
CCR = 1
#: Disjoint token samples of each alternative, at most: enough for an interval.
SAMPLES = 3
#: Layers compared, evenly spread down to the last; the point after the final norm comes on top.
LAYERS = 3
#: Tokens of the larger sample; the smaller has half as many as the default.
MANY_TOKENS = 1000

States = Float[np.ndarray, "tokens width"]
Basis = Float[np.ndarray, "width k"]
Bases = Float[np.ndarray, "count width k"]
Places = tuple[Int[np.ndarray, "samples n"], Int[np.ndarray, "samples n"]]


@dataclass(frozen=True)
class Alternative:
    """One way to measure z.

    Attributes:
        choice: what is chosen.
        name: how, in words.
        unembedding: how it is prepared: plain, folded or centred.
        null: family of the random subspaces: haar, orthogonal or variance_matched.
        dim: dimension of the readout, k.
        tokens: tokens a sample.
        seed: seed of the tokens and the random subspaces.
    """

    choice: str
    name: str
    unembedding: str
    null: str
    dim: int
    tokens: int
    seed: int

    @property
    def setting(self) -> tuple[str, int, int, int]:
        """What the null's correlations depend on; alternatives that share it share them."""
        return self.null, self.dim, self.tokens, self.seed


@dataclass(frozen=True)
class Prepared:
    """Alternatives of one setting, ready to be measured.

    Attributes:
        alternatives: which.
        readouts: the basis of each.
        null: the null's subspaces, from the states of a sample.
        places: sequence and position of each sample's tokens.
    """

    alternatives: Sequence[Alternative]
    readouts: Sequence[Basis]
    null: Callable[[States], Bases]
    places: Places


class ChoicesStudy:
    """Computes or loads z with one choice moved at a time."""

    def __init__(self, session: Session) -> None:
        """Bind the study to a model and text."""
        self.session = session
        self.settings = session.settings
        self.pga = PGAStudy(session)

    @property
    def points(self) -> list[str]:
        """The capture points compared."""
        layers = np.unique(np.round(np.linspace(0, self.pga.states.depth, LAYERS + 1)).astype(int))
        return [*(f"H_{layer}" for layer in layers[1:]), "out"]

    @property
    def samples(self) -> int:
        """Disjoint token samples of each alternative."""
        return min(SAMPLES, self.settings.sizes.pga_samples)

    @property
    def alternatives(self) -> list[Alternative]:
        """The default, then one choice moved at a time."""
        k, seed = self.pga.readout_dim, self.settings.seed
        count = self.settings.sizes.pga_tokens
        default = Alternative("default", "as everywhere", "plain", "haar", k, count, seed)

        def moved(choice: str, name: str, **change: Any) -> Alternative:
            return replace(default, choice=choice, name=name, **change)

        null = "random subspaces (uniform)"
        return [
            default,
            moved("gain of the final norm (left out)", "folded in", unembedding="folded"),
            moved("mean row of the vocabulary (kept)", "subtracted", unembedding="centred"),
            *(moved(f"readout dimension ({k})", str(dim), dim=dim) for dim in (k // 2, 2 * k)),
            moved(null, "orthogonal to the removed component", null="orthogonal"),
            moved(null, "with the readout's variance", null="variance_matched"),
            *(
                moved(f"tokens a sample ({count})", str(tokens), tokens=tokens)
                for tokens in dict.fromkeys((count // 2, MANY_TOKENS))
            ),
            moved(f"seed ({seed})", str(seed + 1), seed=seed + 1),
        ]

    @property
    def inputs(self) -> dict[str, Any]:
        """Everything that the comparison depends on."""
        sizes = self.settings.sizes
        return {
            "states": dict(self.pga.states.inputs),
            "points": self.points,
            "tokens": sizes.pga_tokens,
            "samples": self.samples,
            "null_subspaces": sizes.null_subspaces,
            "readout_dim": self.pga.readout_dim,
            "seed": self.settings.seed,
            "code": code_version(__name__),
        }

    def table(self) -> pd.DataFrame:
        """The figure z at CCR-1 by choice and point, the default first.

        Columns: ``choice``, ``alternative``, ``default``, ``point``, ``depth``, ``rho_readout``,
        ``null_mean``, ``z``, ``ci_low``, ``ci_high``; ``reason`` why a row is a gap, or empty;
        ``sign_changes`` and ``verdict_changes``, whether z has another sign than under the
        default and whether its interval lies elsewhere (below -2, above +2, or neither).
        """
        table = compute_or_load("choices", self.inputs, self._measure).table("z")
        default = table[table["default"]].set_index("point").loc[table["point"]]
        measured = table["z"].notna().to_numpy() & default["z"].notna().to_numpy()
        for name, judge in (("sign_changes", _signs), ("verdict_changes", _verdicts)):
            table[name] = measured & (judge(table) != judge(default))
        return table

    @cached_property
    def gain(self) -> Float[np.ndarray, " width"]:
        """Gain of the final norm, stored or taken from the model now."""
        files = self.session.files
        inputs = {
            "model": files.name,
            "revision": files.revision,
            "dtype": self.settings.dtype,
            "weights": files.weights_hash,
            "code": code_version("layergeom.models.norm_gain"),
        }

        def take() -> Results:
            from layergeom.models.norm_gain import final_norm_gain

            return Results(arrays={"gain": final_norm_gain(self.session.model)})

        return compute_or_load("norm_gain", inputs, take).array("gain")

    def _measure(self) -> Results:
        rows: list[dict[str, Any]] = []
        prepared = []
        for _, group in groupby(self.alternatives, lambda alternative: alternative.setting):
            alternatives = list(group)
            try:
                prepared.append(self._prepare(alternatives))
            except (GeometryError, UsageError) as error:
                rows += [self._gap(a, p, str(error)) for a in alternatives for p in self.points]
        for point in track(self.points, f"Choices {self.session.files.name}"):
            states = self.pga.states.at(point)
            for setting in prepared:
                rows += self._at(point, states, setting)
        order = [(alternative.choice, alternative.name) for alternative in self.alternatives]
        rows.sort(key=lambda row: order.index((row["choice"], row["alternative"])))
        return Results(tables={"z": pd.DataFrame(rows)})

    def _prepare(self, alternatives: list[Alternative]) -> Prepared:
        first = alternatives[0]
        states = self.pga.states
        sequences, length = states.tokens.shape
        places = spread_tokens(
            sequences,
            length,
            states.skip,
            first.tokens,
            self.samples,
            generator(first.seed, "pga tokens"),
        )
        readouts = [readout_basis(self._unembedding(a.unembedding), a.dim) for a in alternatives]
        return Prepared(alternatives, readouts, self._null(first, readouts[0]), places)

    def _unembedding(self, kind: str) -> Float[np.ndarray, "vocabulary width"]:
        plain = self.pga.states.artefact.array("unembedding")
        if kind == "folded":
            return fold_norm(plain, self.gain)
        return centre_vocabulary(plain) if kind == "centred" else plain

    def _null(self, alternative: Alternative, readout: Basis) -> Callable[[States], Bases]:
        """The null's subspaces, from one stream of random numbers for all samples and points."""
        count, dim = self.settings.sizes.null_subspaces, alternative.dim

        def stream() -> np.random.Generator:
            return generator(alternative.seed, "null subspaces")

        if alternative.null == "orthogonal":
            return lambda states: orthogonal_subspaces(
                leading_components(remove_common_components(states, 0), CCR), dim, count, stream()
            )
        if alternative.null == "variance_matched":
            return lambda states: variance_matched_subspaces(
                remove_common_components(states, CCR), readout, count, stream()
            )
        # Where the dimension allows, the profile's own subspaces, cut to their leading directions.
        widest = max(dim, self.pga.readout_dim)
        bases = random_subspaces(self.pga.states.width, widest, count, stream())[:, :, :dim]
        return lambda _: bases

    def _at(
        self, point: str, states: Float[np.ndarray, "sequences length width"], setting: Prepared
    ) -> list[dict[str, Any]]:
        sampled = [states[where] for where in zip(*setting.places, strict=True)]
        try:
            # In threads of one BLAS thread each: small factorisations wait for each other in more.
            nulls = map_threads(setting.null, sampled)
            samples = [
                _against_one_null(own, setting.readouts, null)
                for own, null in zip(sampled, nulls, strict=True)
            ]
        except GeometryError as error:
            return [
                self._gap(alternative, point, str(error)) for alternative in setting.alternatives
            ]
        return [
            self._row(alternative, point, own)
            for alternative, own in zip(
                setting.alternatives, zip(*samples, strict=True), strict=True
            )
        ]

    def _row(
        self, alternative: Alternative, point: str, samples: Sequence[PGASample]
    ) -> dict[str, Any]:
        estimate = estimate_z(samples)
        return self._gap(
            alternative, point, "" if np.isfinite(estimate.z) else "the null has no spread"
        ) | {
            "rho_readout": float(np.mean([sample.rho_readout for sample in samples])),
            "null_mean": float(np.mean([sample.null_mean for sample in samples])),
            "z": estimate.z,
            "ci_low": estimate.ci_low,
            "ci_high": estimate.ci_high,
        }

    def _gap(self, alternative: Alternative, point: str, reason: str) -> dict[str, Any]:
        numbers = ("rho_readout", "null_mean", "z", "ci_low", "ci_high")
        return {
            "choice": alternative.choice,
            "alternative": alternative.name,
            "default": alternative.choice == "default",
            "point": point,
            "depth": depth_of(point, self.pga.states.depth),
            **dict.fromkeys(numbers, float("nan")),
            "reason": reason,
        }


def _against_one_null(states: States, readouts: Sequence[Basis], null: Bases) -> list[PGASample]:
    """Subspace PGA of several readouts; the null they share is projected on once."""
    first, *others = readouts
    bases = np.concatenate([null, *(basis[None] for basis in others)])
    found = subspace_pga(states, first, bases, CCR)
    own = found.rho_null[: len(null)]
    return [PGASample(float(rho), own) for rho in (found.rho_readout, *found.rho_null[len(null) :])]


def _signs(table: pd.DataFrame) -> np.ndarray:
    return np.sign(table["z"].to_numpy())


def _verdicts(table: pd.DataFrame) -> np.ndarray:
    """1 where the interval lies above +2, -1 where it lies below -2, 0 elsewhere."""
    above, below = table["ci_low"].to_numpy() > 2.0, table["ci_high"].to_numpy() < -2.0
    return above.astype(np.int64) - below.astype(np.int64)
