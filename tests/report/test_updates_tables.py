"""The tables of layer updates, rounded for reading."""

import pandas as pd

from layergeom.report import rounded_classes, rounded_correlations


def class_row(block: int, name: str, error: float, **given: bool) -> dict[str, object]:
    return {
        "block": block,
        "class": name,
        "undertrained": given.get("undertrained", False),
        "best": given.get("best", False),
        "rel_err_state": error,
        "cos_full_tokenwise_state": 1 - error / 10,
        "angle_tokenwise_residual_state": 90 - 100 * error,
    }


def test_the_best_is_bold_an_undertrained_one_starred_and_sums_stand_above() -> None:
    table = pd.DataFrame(
        [
            class_row(1, "mlp", 0.1, undertrained=True),
            class_row(0, "mlp", 0.3, best=True),
            class_row(0, "diagonal", 0.51),
            class_row(1, "diagonal", 0.25, best=True),
        ]
    )
    shown = rounded_classes(table, ["diagonal", "mlp"])
    assert list(shown.columns) == ["block", "diagonal", "mlp"]
    assert shown.to_numpy().tolist() == [
        ["error, median", "0.38", "0.20"],
        ["cosine, median", "0.962", "0.980"],
        ["angle, median (°)", "52", "70"],
        ["lowest in", "1", "1"],
        ["0", "0.51", "**0.30**"],
        ["1", "**0.25**", "0.10*"],
    ]


def test_each_model_has_its_medians_by_class_and_one_highest() -> None:
    rows = [
        {
            "model": model,
            "kind": "transformer",
            "width": width,
            "layers": 6,
            "class": name,
            "quantity": f"{which}_spearman_relerr_kl",
            "value": value,
            "ci_low": value - 0.1,
            "ci_high": value + 0.1,
        }
        for model, width, shift in (("b", 64, 0.0), ("a", 32, 0.1))
        for name, which, value in (
            ("orthogonal", "median", 0.4 + shift),
            ("orthogonal", "max", 0.7 + shift),
            ("mlp", "median", 0.2 + shift),
            ("mlp", "max", 0.3 + shift),
        )
    ]
    shown = rounded_correlations(pd.DataFrame(rows), ["mlp", "orthogonal"], "orthogonal")
    assert shown.to_dict("records")[0] == {
        "model": "b",
        "kind": "transformer",
        "d": 64,
        "L": 6,
        "mlp": "0.20 [0.10, 0.30]",
        "orthogonal": "0.40 [0.30, 0.50]",
        "highest (orthogonal)": "0.70 [0.60, 0.80]",
    }
    assert list(shown["model"]) == ["b", "a"]
