"""Models side by side: colours by width and the rounded table."""

from typing import Any

import pandas as pd

from layergeom import report


def row(**changes: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "model": "m",
        "width": 64,
        "layers": 8,
        "loss": 3.456,
        "tokens_seen": None,
        "validation_loss": None,
        "bigram_loss": None,
        "beats_bigram": None,
        "regime": "mixed",
        "zone_first": None,
        "zone_last": None,
    }
    for name, point in (("peak", "H_3"), ("lowest", "H_6"), ("final", "H_8"), ("out", "out")):
        interval = {"point": point, "z": 1.23, "ci_low": -0.5, "ci_high": 2.96}
        given |= {f"{name}_{key}": value for key, value in interval.items()}
    return given | changes


def test_wider_models_are_darker_and_equal_widths_look_alike() -> None:
    colours = report.width_colours([128, 32, 64, 32])
    assert list(colours) == [32, 64, 128]
    lightness = [0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b, _ in colours.values()]
    assert lightness[0] > lightness[1] > lightness[2]
    assert lightness[0] < 0.7  # to be read on white
    assert len(report.width_colours([64])) == 1


def test_a_model_that_came_as_it_is_has_the_loss_on_the_text() -> None:
    shown = report.rounded_scale(pd.DataFrame([row()])).iloc[0]
    assert shown["loss"] == "3.46"
    assert shown["tokens seen"] == "unknown"
    assert shown["collapse zone"] == "none"
    assert shown["highest z"] == "1.2 [-0.5, 3.0] at 3"
    assert shown["z after the norm"] == "1.2 [-0.5, 3.0]"


def test_a_model_trained_here_stands_beside_its_bigrams() -> None:
    trained = {"tokens_seen": 2_048_000, "validation_loss": 4.0, "bigram_loss": 4.5}
    rows = [
        row(**trained, beats_bigram=True, zone_first=5, zone_last=7),
        row(**trained | {"bigram_loss": 3.9, "tokens_seen": 40_960}, beats_bigram=False),
        row(),
    ]
    shown = report.rounded_scale(pd.DataFrame(rows))
    assert list(shown["loss"]) == ["4.00 (bigrams 4.50)", "4.00* (bigrams 3.90)", "3.46"]
    assert list(shown["tokens seen"]) == ["2.0 M", "41 k", "unknown"]
    assert list(shown["collapse zone"]) == ["5 to 7", "none", "none"]
