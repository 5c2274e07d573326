"""Layer updates of several models side by side."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from layergeom.models.adapters import adapter_for
from layergeom.studies.fits import CONTROLLED
from layergeom.studies.states import Session
from layergeom.studies.updates import UpdatesStudy


def _about(session: Session) -> dict[str, Any]:
    states = session.states
    return {
        "model": session.files.name,
        "kind": adapter_for(states.facts["model_type"]).kind,
        "width": states.width,
        "layers": states.depth,
    }


def updates_overall(sessions: Sequence[Session]) -> pd.DataFrame:
    """What the blocks of each model amount to, by class.

    Columns: ``model``, ``kind`` (transformer, state space), ``width``, ``layers`` (L) and those
    of ``UpdatesStudy.overall``.
    """
    return pd.concat(
        [UpdatesStudy(session).overall().assign(**_about(session)) for session in sessions],
        ignore_index=True,
    )


def updates_profiles(sessions: Sequence[Session]) -> pd.DataFrame:
    """Every model's blocks on one axis of depth, for the class that is measured in full.

    Columns: ``model``, ``kind``, ``width``, ``layers``, ``relative_depth`` (a block's middle:
    the first of L lies at 1/2L, the last at 1 - 1/2L) and those of ``UpdatesStudy.summary``.
    """
    tables = []
    for session in sessions:
        summary = UpdatesStudy(session).summary()
        table = summary[summary["class"] == CONTROLLED].assign(**_about(session))
        tables.append(table.assign(relative_depth=(table["block"] + 0.5) / table["layers"]))
    return pd.concat(tables, ignore_index=True)
