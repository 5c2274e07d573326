"""The studies by name, to be computed before the notebooks that read them run."""

from collections.abc import Callable, Iterable, Sequence
from types import MappingProxyType
from typing import Any

from layergeom.errors import NotMeasurableError, unknown
from layergeom.progress import say
from layergeom.studies.bridge import BridgeStudy
from layergeom.studies.choices import ChoicesStudy
from layergeom.studies.components import ComponentsStudy
from layergeom.studies.convergence import compare_pairs
from layergeom.studies.lens import LensStudy
from layergeom.studies.neighbourhood import NeighbourhoodStudy
from layergeom.studies.pga import PGAStudy
from layergeom.studies.probes import ProbeStudy
from layergeom.studies.spectral import SpectralStudy
from layergeom.studies.states import Session
from layergeom.studies.sub_blocks import SubBlocksStudy
from layergeom.studies.training import TrainingStudy
from layergeom.studies.updates import UpdatesStudy
from layergeom.studies.where import WhereStudy


def _updates(study: UpdatesStudy) -> None:
    study.summary()
    study.overall()


STUDIES: MappingProxyType[str, Callable[[Session], Any]] = MappingProxyType(
    {
        "pga": lambda session: PGAStudy(session).profile(),
        "components": lambda session: ComponentsStudy(session).samples(),
        "spectral": lambda session: SpectralStudy(session).samples(),
        "lens": lambda session: LensStudy(session).table(),
        "probes": lambda session: ProbeStudy(session).table(),
        "training": lambda session: TrainingStudy(session).quantities(),
        "choices": lambda session: ChoicesStudy(session).table(),
        "updates": lambda session: _updates(UpdatesStudy(session)),
        "equal_errors": lambda session: UpdatesStudy(session).equal_errors(),
        "sub_blocks": lambda session: SubBlocksStudy(session).table(),
        "neighbourhood": lambda session: NeighbourhoodStudy(session).table(),
        "where": lambda session: WhereStudy(session).words(),
        "bridge": lambda session: BridgeStudy(session).table(),
    }
)

#: What compares models: by name, computed from the sessions of all of them.
ACROSS: MappingProxyType[str, Callable[[Sequence[Session]], Any]] = MappingProxyType(
    {"convergence": compare_pairs}
)


def prepare(session: Session, names: Iterable[str]) -> None:
    """Compute or load studies, with progress on the terminal instead of in a page.

    Raises:
        UsageError: an unknown study.
    """
    for name in names:
        if name not in STUDIES:
            raise unknown("study", name, list(STUDIES))
        STUDIES[name](session)


def prepare_across(sessions: Sequence[Session], names: Iterable[str]) -> None:
    """Compute or load what notebooks read that compare models.

    Raises:
        UsageError: an unknown study.
    """
    for name in names:
        if name in ACROSS:
            ACROSS[name](sessions)
            continue
        for session in sessions:
            try:
                prepare(session, [name])
            except NotMeasurableError as error:
                # The comparison leaves this model out, and says so.
                say(f"Not measured ({name}, {session.settings.model}): {error}")
