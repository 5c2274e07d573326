"""What changes under another choice: medians, the largest change, and where intervals part."""

import pandas as pd
import pytest

from layergeom.errors import NotMeasurableError
from layergeom.report.alternatives import rounded_alternatives
from layergeom.studies.alternatives import alternatives, compare
from layergeom.studies.settings import Settings, named_sizes
from layergeom.studies.states import Session


def profile(values: dict[str, float | None], half: float = 0.5) -> pd.DataFrame:
    column = pd.Series(values, dtype=float)
    return pd.DataFrame(
        {
            "place": column.index,
            "value": column.to_numpy(),
            "ci_low": column.to_numpy() - half,
            "ci_high": column.to_numpy() + half,
        }
    )


def test_two_profiles_are_compared_where_both_have_a_figure() -> None:
    default = profile({"H_1": 1.0, "H_2": 2.0, "H_3": 4.0, "H_4": 0.0})
    other = profile({"H_3": 1.0, "H_2": 2.9, "H_1": 1.0, "H_4": None, "out": 99.0})
    found = compare("c", "a", "z", "m", default, other)
    assert (found.default, found.value) == (2.0, 1.0)
    assert found.largest == -3.0
    # Only H_3: the intervals of H_2 overlap, H_4 has a gap, and `out` has no default.
    assert (found.apart, found.places) == (1, 3)


def test_profiles_without_a_layer_in_common_are_not_compared() -> None:
    with pytest.raises(NotMeasurableError, match="no layer has both"):
        compare("c", "a", "z", "m", profile({"H_1": 1.0}), profile({"H_2": 1.0}))


def test_the_page_keeps_a_choices_rows_together() -> None:
    rows = [
        compare(choice, "a", "z", "m", profile({"H_1": 1.0}), profile({"H_1": 3.0}))
        for choice in ("b", "a", "b")
    ]
    shown = rounded_alternatives(pd.DataFrame(rows))
    assert list(shown["choice (default)"]) == ["a", "b", "b"]
    assert list(shown.iloc[0]) == ["a", "a", "m", "z", "1.00 → 3.00", "+2.00", "1 of 1"]


def test_every_choice_is_made_the_other_way_on_a_real_model() -> None:
    session = Session(Settings("smoke-pythia", sizes=named_sizes("smoke")))
    table = alternatives([session])
    choices = " ".join(table["choice"].unique())
    for word in ("components removed", "reading", "positions replaced", "class of map"):
        assert word in choices
    assert {"neighbours", "rank", "metric"} <= set(" ".join(choices.split()).split())
    assert (table["places"] > 0).all()
    assert (table["apart"] <= table["places"]).all()
    removed = table[table["choice"].str.startswith("components removed")]
    assert list(removed["alternative"]) == ["0", "5", "10"]
