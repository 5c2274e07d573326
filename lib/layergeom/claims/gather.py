"""From the studies to the evidence that the claims are judged on."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import pandas as pd

from layergeom.claims.evidence import Agreement, Evidence, Results
from layergeom.errors import NotMeasurableError
from layergeom.models.adapters import adapter_for
from layergeom.progress import say
from layergeom.studies.components import ComponentsStudy
from layergeom.studies.convergence import compare_pairs
from layergeom.studies.fits import FitsStudy
from layergeom.studies.lens import LensStudy
from layergeom.studies.pga import PGAStudy
from layergeom.studies.probes import ProbeStudy
from layergeom.studies.samples import depth_of
from layergeom.studies.scale import family_of
from layergeom.studies.spectral import SpectralStudy
from layergeom.studies.states import Session
from layergeom.studies.training import TrainingStudy
from layergeom.studies.updates import UpdatesStudy


def _pga(session: Session) -> pd.DataFrame:
    profile = PGAStudy(session).profile()
    return pd.concat([profile.by_layer(level) for level in profile.levels], ignore_index=True)


def _pga_samples(session: Session) -> pd.DataFrame:
    profile = PGAStudy(session).profile()
    points = profile.samples["point"]
    return profile.samples.assign(depth=[depth_of(point, profile.depth) for point in points])


def _updates(session: Session) -> pd.DataFrame:
    study = UpdatesStudy(session)
    return pd.concat([study.summary(), study.equal_errors()], ignore_index=True)


#: The tables of one model's evidence, by name.
TABLES: Mapping[str, Callable[[Session], pd.DataFrame]] = MappingProxyType(
    {
        "pga": _pga,
        "pga_samples": _pga_samples,
        "components": lambda session: ComponentsStudy(session).samples(),
        "spectral": lambda session: SpectralStudy(session).table(),
        "updates": _updates,
        "overall": lambda session: UpdatesStudy(session).overall(),
        "lens_correlation": lambda session: LensStudy(session).correlations(),
        "probe": lambda session: ProbeStudy(session).table(),
        "probe_correlation": lambda session: (
            ProbeStudy(session).correlations().rename(columns={"pooling": "quantity"})
        ),
        "losses": lambda session: TrainingStudy(session).losses(),
        "training": lambda session: TrainingStudy(session).table(),
    }
)


def gather(session: Session) -> Evidence:
    """All that is measured of one model, computed first where it is not stored.

    What cannot exist for the model or text is left out, with the reason.
    """
    from layergeom.models.checkpoints import training_record

    tables, missing = {}, {}
    for name, read in TABLES.items():
        try:
            tables[name] = read(session)
        except NotMeasurableError as error:
            missing[name] = str(error)
    record = training_record(session.settings.model)
    states = session.states
    return Evidence(
        name=session.files.name,
        family=family_of(session.settings.model),
        state_space=adapter_for(str(states.facts["model_type"])).kind == "state space",
        width=states.width,
        depth=states.depth,
        random_dark=ComponentsStudy(session).random,
        bigram_loss=None if record is None else record.bigram_loss,
        decides=record is None or record.beats_bigram,
        undertrained=frozenset(FitsStudy(session).undertrained()),
        tables=tables,
        missing=missing,
    )


def gather_all(sessions: Sequence[Session]) -> Results:
    """The evidence of several models, and of each with the next."""
    models = []
    for session in sessions:
        say(f"Claims: reading what is measured of {session.settings.model} ...")
        models.append(gather(session))
    try:
        compared = compare_pairs(sessions)
    except NotMeasurableError as error:
        return Results(models, missing={"all models": str(error)})
    pairs = [Agreement(*study.names, study.along_depth()) for study in compared.studies]
    reasons = {f"{first} and {second}": why for (first, second), why in compared.left_out.items()}
    return Results(models, pairs, reasons)
