"""Do two models agree on which points of a text are close, and more so along the readout?

Source: Readout (arXiv 2605.17084), section 5.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from layergeom.corpora import Corpus
from layergeom.errors import NotMeasurableError, UsageError
from layergeom.geometry.bootstrap import Estimate
from layergeom.geometry.convergence import (
    ConvergenceSample,
    LayersAgreement,
    ModelLayers,
    layers_agreement,
)
from layergeom.geometry.means import half_width_factor
from layergeom.geometry.subspaces import random_subspaces
from layergeom.progress import track
from layergeom.studies.code_version import code_version
from layergeom.studies.pga import PGAStudy
from layergeom.studies.settings import generator
from layergeom.studies.states import Session
from layergeom.studies.store import Artefact, Results, compute_or_load

SIDES = ("first", "second")
#: Most samples of matched tokens: each has passages of its own, and a model reads them all.
SAMPLES = 4
#: Most steps from the first layer to the last along matched relative depth.
STEPS = 10
#: Common-component removal in each model.
CCR = 1


class ConvergenceStudy:
    """Computes or loads the agreement of two models on matched tokens of one text.

    Intervals are over disjoint samples of tokens, each from passages of its own, with the error
    of the mean over random subspaces that the samples share. A bootstrap over passages would
    hold a token several times; its copies are at distance zero in both models, and agreement on
    that is no finding.
    """

    def __init__(self, first: Session, second: Session) -> None:
        """Bind the study to two models that are measured on the same text.

        Raises:
            UsageError: the two differ in corpus, sizes or seed.
        """
        for name in ("corpus", "sizes", "seed"):
            one, other = (getattr(session.settings, name) for session in (first, second))
            if one != other:
                raise UsageError(f"two models are compared with one {name}; got {one} and {other}.")
        self.sessions = (first, second)
        self.settings = first.settings

    @property
    def names(self) -> tuple[str, str]:
        """Names of the two models."""
        first, second = self.sessions
        return first.files.name, second.files.name

    @property
    def corpus(self) -> Corpus:
        """The text that neither model was trained on here."""
        # A session's corpus is the text as given or its held-out part: the smaller holds for both.
        return min((s.corpus for s in self.sessions), key=lambda corpus: len(corpus.documents))

    @property
    def samples(self) -> int:
        """Number of disjoint samples of matched tokens."""
        return min(SAMPLES, self.settings.sizes.pga_samples)

    @property
    def inputs(self) -> dict[str, Any]:
        """Everything that the agreement depends on."""
        return {
            "matched": self._matched_inputs(),
            "null_subspaces": self.settings.sizes.null_subspaces,
            "ccr": CCR,
            **{
                f"{side}_readout_dim": session.settings.readout_dim
                for side, session in zip(SIDES, self.sessions, strict=True)
            },
            "code": code_version(__name__),
        }

    @property
    def facts(self) -> dict[str, Any]:
        """How much was matched: tokens, passages, and common ends in a passage."""
        return dict(self.matched.facts)

    def along_depth(self) -> pd.DataFrame:
        """Agreement of layers at the same relative depth.

        Columns: ``relative_depth``, ``first_point``, ``second_point``, ``quantity`` (``full``,
        ``readout``, ``random``, ``readout_minus_full``, ``readout_minus_random``), ``value``,
        ``ci_low``, ``ci_high``.
        """
        return self._agreement.table("along_depth")

    def matrix(self) -> pd.DataFrame:
        """Agreement of each layer of one model with each of the other, mean over samples.

        Columns: ``first_point``, ``second_point``, ``space`` (``full``, ``readout``, ``random``),
        ``value``.
        """
        return self._agreement.table("matrix")

    @cached_property
    def matched(self) -> Artefact:
        """States of both models at the matched tokens, ``first_H_0`` to ``second_out``."""
        return compute_or_load("matched", self._matched_inputs(), self._match)

    @cached_property
    def _agreement(self) -> Artefact:
        return compute_or_load("convergence", self.inputs, self._measure)

    def _matched_inputs(self) -> dict[str, Any]:
        sizes = self.settings.sizes
        read: dict[str, Any] = {}
        for side, session in zip(SIDES, self.sessions, strict=True):
            read |= {
                f"{side}_model": session.files.name,
                f"{side}_revision": session.files.revision,
                f"{side}_dtype": session.settings.dtype,
                f"{side}_weights": session.files.weights_hash,
                f"{side}_bos": session.files.bos,
                f"{side}_length": session.sequence_length,
            }
        return {
            **read,
            "corpus": self.corpus.name,
            "text": self.corpus.sha256,
            "skip_positions": sizes.skip_positions,
            "tokens": sizes.pga_tokens,
            "samples": self.samples,
            "seed": self.settings.seed,
            "code": code_version("layergeom.models.capture", "layergeom.corpora.matching"),
            "torch": version("torch"),
            "transformers": version("transformers"),
        }

    def _match(self) -> Results:
        from layergeom.corpora.matching import Reader, match_tokens
        from layergeom.models.capture import capture

        sizes = self.settings.sizes
        first, second = (
            Reader(s.files.name, s.model.tokenizer, s.sequence_length, s.model.bos_id())
            for s in self.sessions
        )
        found = match_tokens(
            self.corpus,
            first,
            second,
            sizes.skip_positions,
            sizes.pga_tokens,
            self.samples,
            generator(self.settings.seed, "matched tokens"),
        )
        arrays: dict[str, np.ndarray] = {}
        facts: dict[str, Any] = {}
        for side, session, tokens, positions in zip(
            SIDES,
            self.sessions,
            (found.first_tokens, found.second_tokens),
            (found.first_positions, found.second_positions),
            strict=True,
        ):
            captured = capture(session.model, tokens)
            by_point = {f"H_{layer}": states for layer, states in enumerate(captured.hidden)}
            by_point["out"] = captured.out
            for point, states in by_point.items():
                arrays[f"{side}_{point}"] = states[found.passages, positions]
            facts[f"{side}_depth"] = session.model.depth
            facts[f"{side}_width"] = session.model.width
        facts["passages"] = len(found.common)
        facts["common_ends"] = float(np.median(found.common))
        return Results(arrays=arrays, facts=facts)

    def _points(self, side: str) -> list[str]:
        depth = int(self.matched.facts[f"{side}_depth"])
        return [*(f"H_{layer}" for layer in range(depth + 1)), "out"]

    def _depth_pairs(self) -> Iterator[tuple[float, str, str]]:
        """Relative depths with the nearest layer of each model, each layer at most once."""
        depths = [int(self.matched.facts[f"{side}_depth"]) for side in SIDES]
        steps = min(STEPS, *depths)
        for step in range(steps + 1):
            share = step / steps
            first, second = (f"H_{int(share * depth + 0.5)}" for depth in depths)
            yield share, first, second

    def _layers(self, side: str) -> list[ModelLayers]:
        """A model's layers and bases, for each sample."""
        study = PGAStudy(self.sessions[SIDES.index(side)])
        # Each model draws its own: two models of one width would otherwise share their subspaces.
        nulls = random_subspaces(
            len(study.readout),
            study.readout_dim,
            self.settings.sizes.null_subspaces,
            generator(self.settings.seed, f"null subspaces of the {side} model"),
        )
        states = [self.matched.array(f"{side}_{point}") for point in self._points(side)]
        return [
            ModelLayers([layer[sample] for layer in states], study.readout, nulls)
            for sample in range(self.samples)
        ]

    def _measure(self) -> Results:
        models = list(zip(*(self._layers(side) for side in SIDES), strict=True))
        points = [self._points(side) for side in SIDES]
        found = [
            layers_agreement(first, second, CCR)
            for first, second in track(models, f"Agreement of {' and '.join(self.names)}")
        ]
        rows = [
            {
                "relative_depth": share,
                "first_point": first,
                "second_point": second,
                "quantity": quantity,
                "value": estimate.value,
                "ci_low": estimate.ci_low,
                "ci_high": estimate.ci_high,
            }
            for share, first, second in self._depth_pairs()
            for quantity, estimate in estimates(
                [a.at(points[0].index(first), points[1].index(second)) for a in found]
            ).items()
        ]
        return Results(
            tables={"along_depth": pd.DataFrame(rows), "matrix": _matrix(found, *points)}
        )


def _matrix(
    samples: Sequence[LayersAgreement], first: Sequence[str], second: Sequence[str]
) -> pd.DataFrame:
    """Means over samples, and over the random subspaces, of every pair of layers."""
    by_space = {
        "full": [sample.full for sample in samples],
        "readout": [sample.readout for sample in samples],
        "random": [sample.random.mean(axis=0) for sample in samples],
    }
    return pd.DataFrame(
        {"first_point": one, "second_point": other, "space": space, "value": value[i, j]}
        for space, values in by_space.items()
        for value in [np.mean(values, axis=0)]
        for i, one in enumerate(first)
        for j, other in enumerate(second)
    )


def estimates(samples: Sequence[ConvergenceSample]) -> dict[str, Estimate]:
    """Agreement in each space and the paired differences, with 95 % intervals over samples.

    ``t(0.975, S-1) * sqrt(s^2/S + sigma^2/m)``, ``s`` the standard deviation over the ``S``
    samples and ``sigma`` that over the ``m`` random subspaces, where they enter: the samples
    share them, and would otherwise hide the error of their mean.
    """
    full = np.array([sample.full for sample in samples])
    readout = np.array([sample.readout for sample in samples])
    random = np.array([sample.random for sample in samples])
    means = random.mean(axis=1)
    null_variance = float(random.mean(axis=0).var(ddof=1)) / random.shape[1]
    return {
        "full": _mean_estimate(full, 0.0),
        "readout": _mean_estimate(readout, 0.0),
        "random": _mean_estimate(means, null_variance),
        "readout_minus_full": _mean_estimate(readout - full, 0.0),
        "readout_minus_random": _mean_estimate(readout - means, null_variance),
    }


def _mean_estimate(values: Float[np.ndarray, " samples"], shared_variance: float) -> Estimate:
    """Mean over samples; one sample has no interval."""
    count, mean = len(values), float(values.mean())
    if count < 2:
        return Estimate(mean, float("nan"), float("nan"))
    error = np.sqrt(float(values.var(ddof=1)) / count + shared_variance)
    half = half_width_factor(count - 1) * float(error)
    return Estimate(mean, mean - half, mean + half)


@dataclass(frozen=True)
class PairsCompared:
    """The pairs of models that could be compared, and why others could not.

    Attributes:
        studies: one per pair that has a result.
        left_out: reason by pair.
    """

    studies: list[ConvergenceStudy]
    left_out: dict[tuple[str, str], str]

    def along_depth(self) -> pd.DataFrame:
        """The pairs' tables under each other, with ``first_model`` and ``second_model``."""
        return pd.concat([_named(s, s.along_depth()) for s in self.studies], ignore_index=True)

    def matrices(self) -> pd.DataFrame:
        """Likewise for the layer by layer matrices."""
        return pd.concat([_named(s, s.matrix()) for s in self.studies], ignore_index=True)

    def common_ends(self) -> dict[str, float]:
        """Median number of tokens in a passage that end together, by pair."""
        return {" and ".join(s.names): float(s.facts["common_ends"]) for s in self.studies}


def _named(study: ConvergenceStudy, table: pd.DataFrame) -> pd.DataFrame:
    first, second = study.names
    named = table.copy()
    named.insert(0, "first_model", first)
    named.insert(1, "second_model", second)
    return named


def compare_pairs(sessions: Sequence[Session]) -> PairsCompared:
    """Compute or load the agreement of each model with the next in the list.

    Raises:
        NotMeasurableError: fewer than two models, or no pair has tokens that match.
    """
    if len(sessions) < 2:
        raise NotMeasurableError(
            f"{len(sessions)} model given: agreement between models needs 2 or more."
        )
    studies: list[ConvergenceStudy] = []
    left_out: dict[tuple[str, str], str] = {}
    for study in (ConvergenceStudy(*pair) for pair in pairwise(sessions)):
        try:
            study.along_depth()
            studies.append(study)
        except NotMeasurableError as error:
            left_out[study.names] = str(error)
    if not studies:
        raise NotMeasurableError("; ".join(left_out.values()))
    return PairsCompared(studies, left_out)
