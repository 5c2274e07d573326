"""The studies by name, to be computed before the notebooks that read them run."""

from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import Any

from layergeom.errors import unknown
from layergeom.studies.pga import PGAStudy
from layergeom.studies.states import Session
from layergeom.studies.updates import UpdatesStudy

STUDIES: MappingProxyType[str, Callable[[Session], Any]] = MappingProxyType(
    {
        "pga": lambda session: PGAStudy(session).profile(),
        "updates": lambda session: UpdatesStudy(session).summary(),
    }
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
