"""Models of several sizes and families side by side: what each one's profile of z amounts to."""

import re
from collections.abc import Sequence
from typing import Any

import pandas as pd

from layergeom.models.adapters import adapter_for
from layergeom.models.catalogue import find_entry
from layergeom.models.checkpoints import training_record
from layergeom.studies.pga import PGAStudy
from layergeom.studies.states import Session

#: The size in the name of a model, with whatever stands behind it: ``-1.4b-hf``.
_SIZE = re.compile(r"-\d[^/]*$")


def family_of(model: str) -> str:
    """A model's family in the catalogue; of a hub id or folder, what stands before the size.

    A model whose name has no size is a family of its own.
    """
    entry = find_entry(model)
    return _SIZE.sub("", model) if entry is None else entry.family


def scale_profiles(sessions: Sequence[Session]) -> pd.DataFrame:
    """Values of z at CCR-1 of all models by relative depth.

    Columns: ``model``, ``family``, ``kind`` (transformer, state space), ``width``, ``layers`` (L),
    ``relative_depth`` (0 to 1; 1 for ``out`` as well), and those of ``PGAProfile.by_layer``.
    """
    tables = []
    for session in sessions:
        table = PGAStudy(session).profile().by_layer()
        about = _about(session)
        about["relative_depth"] = table["depth"] / about["layers"]
        for place, (name, value) in enumerate(about.items()):
            table.insert(place, name, value)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def scale_table(sessions: Sequence[Session]) -> pd.DataFrame:
    """One row per model: size, losses, extremes of z over intermediate layers, regime, end.

    Columns: ``model``, ``family``, ``kind``, ``width``, ``layers``, ``loss`` (on the measured
    text), ``tokens_seen``, ``validation_loss``, ``bigram_loss``, ``beats_bigram`` (for models
    trained here, else empty), ``regime``, ``zone_first``, ``zone_last``, and ``point``, ``z``,
    ``ci_low`` and ``ci_high`` of ``peak``, ``lowest``, ``final`` (``H_L``) and ``out``.
    """
    return pd.DataFrame([_row(session) for session in sessions])


def _about(session: Session) -> dict[str, Any]:
    states = session.states
    return {
        "model": session.files.name,
        "family": family_of(session.settings.model),
        "kind": adapter_for(states.facts["model_type"]).kind,
        "width": states.width,
        "layers": states.depth,
    }


def _row(session: Session) -> dict[str, Any]:
    profile = PGAStudy(session).profile()
    table, verdict = profile.by_layer(), profile.regime()
    hidden = table[table["point"] != "out"]
    inner = hidden.iloc[1:-1]
    record = training_record(session.settings.model)
    zone = verdict.collapse_zone or (None, None)
    row = {
        **_about(session),
        "loss": session.states.facts["loss"],
        "tokens_seen": None if record is None else record.tokens_seen,
        "validation_loss": None if record is None else record.validation_loss,
        "bigram_loss": None if record is None else record.bigram_loss,
        "beats_bigram": None if record is None else record.beats_bigram,
        "regime": verdict.regime,
        "zone_first": zone[0],
        "zone_last": zone[1],
    }
    for name, chosen in (
        ("peak", inner.iloc[inner["z"].argmax()]),
        ("lowest", inner.iloc[inner["z"].argmin()]),
        ("final", hidden.iloc[-1]),
        ("out", table.iloc[-1]),
    ):
        row |= {f"{name}_{key}": chosen[key] for key in ("point", "z", "ci_low", "ci_high")}
    return row
