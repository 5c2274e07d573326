"""Spectral metrics by layer, and whether they go with z."""

import pandas as pd

from layergeom.geometry.over_layers import spearman_over_layers
from layergeom.geometry.spectral import spectral_metrics
from layergeom.geometry.threads import map_threads
from layergeom.progress import track
from layergeom.studies.code_version import code_version
from layergeom.studies.pga import PGAStudy
from layergeom.studies.samples import (
    depth_of,
    layers_by_samples,
    over_samples,
    sample_draws,
    sampled_states,
    z_by_layer,
)
from layergeom.studies.settings import generator
from layergeom.studies.states import Session
from layergeom.studies.store import Artefact, Results, compute_or_load


class SpectralStudy:
    """Computes or loads the spectral metrics of the same token samples as z."""

    def __init__(self, session: Session) -> None:
        """Bind the study to a model and text."""
        self.session = session
        self.pga = PGAStudy(session)

    @property
    def artefact(self) -> Artefact:
        """The stored result, computed first if it is not there."""
        sizes = self.session.settings.sizes
        inputs = {
            "states": dict(self.pga.states.inputs),
            "tokens": sizes.pga_tokens,
            "samples": sizes.pga_samples,
            "seed": self.session.settings.seed,
            "code": code_version(__name__),
        }
        return compute_or_load("spectral", inputs, self._measure)

    def samples(self) -> pd.DataFrame:
        """One row per point, metric and sample.

        Columns: ``point``, ``depth``, ``metric``, ``sample``, ``value``.
        """
        return self.artefact.table("samples")

    def table(self) -> pd.DataFrame:
        """Means over samples with Student t intervals.

        Columns: ``point``, ``depth``, ``metric``, ``value``, ``ci_low``, ``ci_high``.
        """
        means = over_samples(self.samples(), ["point", "depth", "metric"], ["value"])
        return means.rename(columns={"value_low": "ci_low", "value_high": "ci_high"})

    def correlations(self) -> pd.DataFrame:
        """Spearman's correlation of each metric with z over the layers ``H_0 ... H_L``.

        Interval: bootstrap over the token samples, the same ones for metric and z, and over runs
        of neighbouring layers (``spearman_over_layers``).

        Columns: ``metric``, ``value``, ``ci_low``, ``ci_high``.
        """
        settings = self.session.settings
        z = z_by_layer(self.pga.profile())
        weights = sample_draws(
            z.shape[1],
            settings.sizes.bootstrap_draws,
            generator(settings.seed, "bootstrap samples"),
        )
        rows = []
        for metric, group in self.samples().groupby("metric", sort=False):
            values = layers_by_samples(group, "value")
            estimate = spearman_over_layers(
                values.mean(axis=1),
                z.mean(axis=1),
                weights @ values.T,
                weights @ z.T,
                generator(settings.seed, "bootstrap layers"),
            )
            rows.append(
                {
                    "metric": metric,
                    "value": estimate.value,
                    "ci_low": estimate.ci_low,
                    "ci_high": estimate.ci_high,
                }
            )
        return pd.DataFrame(rows)

    def _measure(self) -> Results:
        states = self.pga.states
        rows = []
        for point in track(states.points, f"Spectra {self.session.files.name}"):
            found = map_threads(spectral_metrics, sampled_states(self.pga, point))
            rows += [
                {
                    "point": point,
                    "depth": depth_of(point, states.depth),
                    "metric": metric,
                    "sample": sample,
                    "value": value,
                }
                for sample, metrics in enumerate(found)
                for metric, value in metrics.items()
            ]
        return Results(tables={"samples": pd.DataFrame(rows)})
