"""What changes when a choice is made the other way."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from layergeom.errors import NotMeasurableError
from layergeom.studies.choices import ChoicesStudy
from layergeom.studies.fits import CLASSES
from layergeom.studies.neighbourhood import NeighbourhoodStudy
from layergeom.studies.pga import LEVELS, PGAStudy
from layergeom.studies.states import Session
from layergeom.studies.updates import UpdatesStudy

#: The class of map and the removal that stand for the default.
_CLASS, _LEVEL = "orthogonal", 1


@dataclass(frozen=True)
class Alternative:
    """One choice made the other way, on one model.

    Attributes:
        choice: what is chosen.
        alternative: what is chosen in place of the default.
        quantity: what is compared.
        model: the model's name.
        default: median over layers or blocks of the default's figure.
        value: the same of the alternative's.
        largest: the difference of largest size over layers or blocks, with its sign.
        apart: layers or blocks where the two intervals do not overlap.
        places: layers or blocks compared.
    """

    choice: str
    alternative: str
    quantity: str
    model: str
    default: float
    value: float
    largest: float
    apart: int
    places: int


def compare(
    choice: str,
    alternative: str,
    quantity: str,
    model: str,
    default: pd.DataFrame,
    other: pd.DataFrame,
) -> Alternative:
    """Compare two profiles over the layers that both have.

    Args:
        choice: what is chosen.
        alternative: what is chosen in place of the default.
        quantity: what is compared.
        model: the model's name.
        default: columns ``place``, ``value``, ``ci_low`` and ``ci_high``.
        other: the same for the alternative; gaps are left out.

    Raises:
        NotMeasurableError: no layer has both.
    """
    both = default.merge(other, on="place", suffixes=("", "_other")).dropna()
    if both.empty:
        raise NotMeasurableError(f"{choice} {alternative}: no layer has both figures.")
    difference = (both["value_other"] - both["value"]).to_numpy()
    apart = (both["ci_low_other"] > both["ci_high"]) | (both["ci_high_other"] < both["ci_low"])
    return Alternative(
        choice=choice,
        alternative=alternative,
        quantity=quantity,
        model=model,
        default=float(both["value"].median()),
        value=float(both["value_other"].median()),
        largest=float(difference[np.abs(difference).argmax()]),
        apart=int(apart.sum()),
        places=len(both),
    )


def alternatives(sessions: Sequence[Session]) -> pd.DataFrame:
    """One row per choice, alternative, quantity and model; the columns are those of Alternative."""
    rows = []
    for session in sessions:
        for part in (_removal, _readout, _neighbourhood, _reading_and_mode):
            try:
                rows += list(part(session))
            except NotMeasurableError:
                continue  # the model's own pages say why
    return pd.DataFrame(rows)


def _profile(table: pd.DataFrame, place: str, value: str = "value") -> pd.DataFrame:
    columns = {place: "place", value: "value"}
    return table.rename(columns=columns)[["place", "value", "ci_low", "ci_high"]]


def _removal(session: Session) -> Iterator[Alternative]:
    profile = PGAStudy(session).profile()
    default = _profile(profile.by_layer(_LEVEL), "point", "z")
    for level in LEVELS:
        if level != _LEVEL:
            other = _profile(profile.by_layer(level), "point", "z")
            yield compare(
                "components removed (1)", str(level), "z", session.files.name, default, other
            )


def _varied(
    table: pd.DataFrame, place: str, value: str, quantity: str, model: str
) -> Iterator[Alternative]:
    """Every alternative of a table against the default rows of its choice."""
    defaults = table[table["default"]]
    for (choice, alternative), other in table[~table["default"]].groupby(
        ["choice", "alternative"], sort=False
    ):
        own = defaults[defaults["choice"] == choice]
        default = _profile(own if len(own) else defaults, place, value)
        if other[value].notna().any():
            yield compare(
                str(choice),
                str(alternative),
                quantity,
                model,
                default.drop_duplicates("place"),
                _profile(other, place, value),
            )


def _readout(session: Session) -> Iterator[Alternative]:
    yield from _varied(ChoicesStudy(session).table(), "point", "z", "z", session.files.name)


def _neighbourhood(session: Session) -> Iterator[Alternative]:
    table = NeighbourhoodStudy(session).table()
    for quantity, words in (
        ("rel_err_state", "relative error"),
        ("angle_tokenwise_residual_state", "angle of T(h) and r (degrees)"),
    ):
        chosen = table[table["quantity"] == quantity]
        yield from _varied(chosen, "block", "value", words, session.files.name)


def _reading_and_mode(session: Session) -> Iterator[Alternative]:
    summary = UpdatesStudy(session).summary()

    def of(name: str, quantity: str) -> pd.DataFrame:
        rows = summary[(summary["class"] == name) & (summary["quantity"] == quantity)]
        return _profile(rows, "block")

    model = session.files.name
    for quantity, words in (
        ("rel_err", "relative error"),
        ("cos_full_tokenwise", "cosine of full and tokenwise"),
    ):
        default, other = of(_CLASS, f"{quantity}_state"), of(_CLASS, f"{quantity}_update")
        yield compare("reading of an update (state)", "update", words, model, default, other)
    rho = of(_CLASS, "spearman_relerr_kl")
    yield compare(
        "positions replaced (all)",
        "one at a time",
        "Spearman of error and KL",
        model,
        rho,
        of(_CLASS, "spearman_relerr_kl_single"),
    )
    for name in CLASSES:
        if name != _CLASS:
            other = of(name, "spearman_relerr_kl")
            yield compare(
                "class of map (orthogonal)", name, "Spearman of error and KL", model, rho, other
            )
