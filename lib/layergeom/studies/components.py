"""What the leading components hold: how dark they are, and how much of the variance is theirs."""

import pandas as pd

from layergeom.geometry.bootstrap import Estimate
from layergeom.geometry.components import component_shares
from layergeom.geometry.means import sample_mean_estimate
from layergeom.geometry.threads import map_threads
from layergeom.progress import track
from layergeom.studies.code_version import code_version
from layergeom.studies.pga import PGAStudy
from layergeom.studies.samples import depth_of, over_samples, sampled_states
from layergeom.studies.states import Session
from layergeom.studies.store import Artefact, Results, compute_or_load

#: Leading principal components that are followed through the layers.
COMPONENTS = 10


class ComponentsStudy:
    """Computes or loads dark and variance shares of the leading components."""

    def __init__(self, session: Session) -> None:
        """Bind the study to a model and text."""
        self.session = session
        self.pga = PGAStudy(session)

    @property
    def random(self) -> float:
        """Dark share of a random direction, 1 - k/d."""
        return 1.0 - self.pga.readout_dim / self.pga.states.width

    @property
    def artefact(self) -> Artefact:
        """The stored result, computed first if it is not there."""
        sizes = self.session.settings.sizes
        inputs = {
            "states": dict(self.pga.states.inputs),
            "tokens": sizes.pga_tokens,
            "samples": sizes.pga_samples,
            "readout_dim": self.pga.readout_dim,
            "components": COMPONENTS,
            "seed": self.session.settings.seed,
            "code": code_version(__name__),
        }
        return compute_or_load("components", inputs, self._measure)

    def samples(self) -> pd.DataFrame:
        """One row per point, component and sample.

        Columns: ``point``, ``depth``, ``component`` (from 1), ``sample``, ``dark_share``,
        ``variance_share``.
        """
        return self.artefact.table("samples")

    def by_layer(self) -> pd.DataFrame:
        """Means over samples with Student t intervals.

        Columns: ``point``, ``depth``, ``component``, ``dark_share``, ``dark_low``,
        ``dark_high``, ``variance_share``, ``variance_low``, ``variance_high``.
        """
        means = over_samples(
            self.samples(), ["point", "depth", "component"], ["dark_share", "variance_share"]
        )
        return means.rename(columns=lambda name: name.replace("_share_", "_"))

    def rise(self, zone: tuple[int, int]) -> Estimate:
        """Dark share of the first component in a zone of layers, less that of the first third.

        Means over the layers of each, of the same tokens, with the Student t interval over
        samples. The first third are the intermediate layers up to a third of the depth.

        Args:
            zone: first and last layer.
        """
        table = self.samples()
        leading = table[(table["component"] == 1) & (table["point"] != "out")]
        early = leading[leading["depth"].between(1, max(1, self.pga.states.depth // 3))]
        inside = leading[leading["depth"].between(*zone)]
        means = [part.groupby("sample")["dark_share"].mean() for part in (inside, early)]
        return sample_mean_estimate((means[0] - means[1]).to_numpy())

    def _measure(self) -> Results:
        states, readout = self.pga.states, self.pga.readout
        tokens = self.session.settings.sizes.pga_tokens
        count = min(COMPONENTS, min(tokens - 1, states.width) - 1)
        tables = []
        for point in track(states.points, f"Components {self.session.files.name}"):
            found = map_threads(
                lambda sample: component_shares(sample, readout, count),
                sampled_states(self.pga, point),
            )
            tables += [
                pd.DataFrame(
                    {
                        "point": point,
                        "depth": depth_of(point, states.depth),
                        "component": range(1, count + 1),
                        "sample": sample,
                        "dark_share": shares.dark_share,
                        "variance_share": shares.variance_share,
                    }
                )
                for sample, shares in enumerate(found)
            ]
        return Results(tables={"samples": pd.concat(tables, ignore_index=True)})
