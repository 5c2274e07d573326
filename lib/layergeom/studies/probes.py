"""Can a text's class be read off one vector of it, layer by layer?

Source: Readout (arXiv 2605.17084), section 6.
"""

from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from layergeom.corpora.labelled import (
    MOST_TEXTS,
    LabelledTexts,
    article_passages,
    check_folds,
    evenly_over_classes,
    read_labelled_csv,
)
from layergeom.errors import UsageError
from layergeom.geometry.over_layers import spearman_over_layers
from layergeom.geometry.probes import probe_accuracy
from layergeom.geometry.threads import map_threads
from layergeom.studies.code_version import code_version
from layergeom.studies.pga import PGAStudy
from layergeom.studies.samples import (
    depth_of,
    layers_by_samples,
    over_samples,
    sample_draws,
    z_by_layer,
)
from layergeom.studies.settings import generator
from layergeom.studies.states import Session
from layergeom.studies.store import Artefact, Results, compute_or_load

#: In place of a file: which article does a passage come from?
ARTICLES = "articles"
FOLDS = 5
POOLINGS = ("mean", "last")


class ProbeStudy:
    """Computes or loads the accuracy of probes on every layer.

    Intervals are Student t over the folds. Every layer has the same folds; folds share training
    texts, so that the intervals are somewhat too short.
    """

    def __init__(self, session: Session, texts: str = ARTICLES) -> None:
        """Bind the study to a model and labelled texts.

        Args:
            session: model, corpus, sizes and seed.
            texts: ``articles``, or the path of a CSV file of labelled texts.
        """
        self.session = session
        self.settings = session.settings
        self.texts = texts

    @cached_property
    def labelled(self) -> LabelledTexts:
        """The texts that are probed.

        Raises:
            UsageError: the file cannot be read.
            NotMeasurableError: one class only, or fewer texts of a class than folds.
        """
        if self.texts == ARTICLES:
            rng = generator(self.settings.seed, "article passages")
            return article_passages(self.session.corpus, rng)
        given = read_labelled_csv(Path(self.texts))
        check_folds(given, FOLDS)
        most = max(MOST_TEXTS, FOLDS * len(given.classes))
        return evenly_over_classes(given, most, generator(self.settings.seed, "labelled texts"))

    @property
    def inputs(self) -> dict[str, Any]:
        """Everything that the accuracies depend on."""
        labelled = self.labelled  # first: a bad file is said before a model is fetched
        files = self.session.files
        return {
            "model": files.name,
            "revision": files.revision,
            "dtype": self.settings.dtype,
            "weights": files.weights_hash,
            "bos": files.bos,
            "labelled_texts": labelled.name,
            "text": labelled.sha256,
            "sequence_length": self.session.sequence_length,
            "skip_positions": self.settings.sizes.skip_positions,
            "folds": FOLDS,
            "seed": self.settings.seed,
            "code": code_version(__name__),
            "torch": version("torch"),
            "transformers": version("transformers"),
        }

    @cached_property
    def artefact(self) -> Artefact:
        """The stored result, computed first if it is not there."""
        return compute_or_load("probes", self.inputs, self._measure)

    @property
    def facts(self) -> dict[str, Any]:
        """``classes``, ``texts``, ``folds``, and the median ``tokens`` of a text."""
        return dict(self.artefact.facts)

    def folds(self) -> pd.DataFrame:
        """One row per point, pooling and fold.

        Columns: ``point``, ``depth``, ``pooling``, ``sample`` (the fold), ``accuracy``.
        """
        return self.artefact.table("folds")

    def table(self) -> pd.DataFrame:
        """Means over folds with Student t intervals.

        Columns: ``point``, ``depth``, ``pooling`` (``mean``, ``last``), ``accuracy``,
        ``ci_low``, ``ci_high``, ``chance``.
        """
        means = over_samples(self.folds(), ["point", "depth", "pooling"], ["accuracy"])
        return means.rename(columns={"accuracy_low": "ci_low", "accuracy_high": "ci_high"}).assign(
            chance=self.labelled.chance
        )

    def correlations(self) -> pd.DataFrame:
        """Spearman's correlation of accuracy with z over the layers ``H_0 ... H_L``.

        Interval: bootstrap over the folds, the token samples of z, and runs of neighbouring
        layers (``spearman_over_layers``).

        Columns: ``pooling``, ``value``, ``ci_low``, ``ci_high``.
        """
        draws, seed = self.settings.sizes.bootstrap_draws, self.settings.seed
        z = z_by_layer(PGAStudy(self.session).profile())
        rng = generator(seed, "bootstrap samples")
        z_draws = sample_draws(z.shape[1], draws, rng) @ z.T
        fold_weights = sample_draws(FOLDS, draws, generator(seed, "bootstrap folds"))
        rows = []
        for pooling, group in self.folds().groupby("pooling", sort=False):
            accuracy = layers_by_samples(group, "accuracy")
            estimate = spearman_over_layers(
                z.mean(axis=1),
                accuracy.mean(axis=1),
                z_draws,
                fold_weights @ accuracy.T,
                generator(seed, "bootstrap layers"),
            )
            rows.append(
                {
                    "pooling": pooling,
                    "value": estimate.value,
                    "ci_low": estimate.ci_low,
                    "ci_high": estimate.ci_high,
                }
            )
        return pd.DataFrame(rows)

    def _sequences(self) -> list[list[int]]:
        model, length = self.session.model, self.session.sequence_length
        bos = model.bos_id()
        start = [] if bos is None else [bos]
        sequences = [(start + model.encode(text))[:length] for text in self.labelled.texts]
        skip = self.settings.sizes.skip_positions
        for number, sequence in enumerate(sequences, start=1):
            if len(sequence) <= skip:
                raise UsageError(
                    f"text {number} of {self.labelled.name} has {len(sequence)} tokens, and the "
                    f"first {skip} positions are left out: nothing remains. Give longer texts."
                )
        return sequences

    def _measure(self) -> Results:
        from layergeom.models.pooling import pooled_states

        sequences = self._sequences()
        pooled = pooled_states(self.session.model, sequences, self.settings.sizes.skip_positions)
        depth, labels = self.session.model.depth, self.labelled.labels
        cases = [
            (pooling, point, getattr(pooled, pooling)[index])
            for pooling in POOLINGS
            for index, point in enumerate(pooled.points)
        ]
        seed = self.settings.seed
        found = map_threads(lambda case: probe_accuracy(case[2], labels, FOLDS, seed), cases)
        rows = [
            {
                "point": point,
                "depth": depth_of(point, depth),
                "pooling": pooling,
                "sample": fold,
                "accuracy": accuracy,
            }
            for (pooling, point, _), accuracies in zip(cases, found, strict=True)
            for fold, accuracy in enumerate(accuracies)
        ]
        facts = {
            "classes": len(self.labelled.classes),
            "texts": len(self.labelled.texts),
            "folds": FOLDS,
            "tokens": sorted(map(len, sequences))[len(sequences) // 2],
        }
        return Results(tables={"folds": pd.DataFrame(rows)}, facts=facts)
