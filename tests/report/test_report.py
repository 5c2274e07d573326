"""Tables, notices and provenance as they end up on a page."""

import math

import pandas as pd
import pytest

from layergeom import report
from layergeom.report import publish
from layergeom.report.published import published
from layergeom.report.style import spread_labels


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    texts: list[str] = []
    monkeypatch.setattr(publish, "display", lambda output: texts.append(output.data))
    return texts


def test_a_loss_above_a_uniform_guess_is_a_warning_on_the_page(shown: list[str]) -> None:
    report.show_notices({"loss": math.log(512) - 0.1, "vocabulary": 512})
    assert shown == []
    report.show_notices({"loss": math.log(512) + 0.1, "vocabulary": 512})
    assert shown[0].startswith(":::{warning}")
    assert "6.34 nats" in shown[0]
    assert "BOS" in shown[0]


def test_an_undertrained_map_is_named_by_its_blocks(shown: list[str]) -> None:
    report.show_undertrained([])
    assert shown == []
    report.show_undertrained([0, 9])
    assert "The mlp of blocks 0, 9 ends above one linear map" in shown[0]


def test_a_table_is_markdown_with_its_bars_escaped(shown: list[str]) -> None:
    report.show_table(pd.DataFrame({"a|b": ["x | y"], "n": [0.123456]}))
    assert shown[0].splitlines()[-1] == r"| x \| y | 0.123 |"


def test_the_papers_figure_stands_beside_the_measured_one() -> None:
    table = report.comparison({"R3": "z = -2"})
    assert list(table.columns) == ["claim", "Readout reports", "its figure", "measured here"]
    assert table["its figure"][0] == published()["R3"].published
    with pytest.raises(KeyError):
        report.comparison({"R99": "nothing"})


def test_provenance_lays_nested_inputs_flat_and_names_versions_and_commit() -> None:
    record = report.provenance(
        {"states": {"model": "m", "weights": "abc", "code": "x"}, "point": "H_0"}, loss=1.5
    )
    assert record["model"] == "m"
    assert record["weights"] == "abc"
    assert record["loss"] == 1.5
    assert {"torch", "numpy", "layergeom"} <= set(record["versions"])
    assert record["commit"]
    assert "code" not in record
    assert "point" not in record


@pytest.mark.parametrize(
    ("model", "slug"),
    [
        ("smollm2-135m", "smollm2-135m"),
        ("EleutherAI/pythia-70m", "EleutherAI-pythia-70m"),
        ("../../etc/passwd", "etc-passwd"),
        ("<img src=x onerror=alert(1)>", "img-src-x-onerror-alert-1"),
        ("//", "model"),
    ],
)
def test_a_models_name_is_safe_in_a_file_name(model: str, slug: str) -> None:
    assert report.slug(model) == slug


def test_labels_at_the_same_height_are_moved_apart() -> None:
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots()
    rows = pd.DataFrame({"value": [0.0, 1.0], "ci_low": [0.0, 0.9], "ci_high": [0.1, 1.1]})
    report.curve(axis, [0, 1], rows, report.BLUE, "one")
    report.curve(axis, [0, 1], rows, report.GREEN, "two")
    spread_labels(axis)
    heights = [text.xyann[1] for text in axis.texts]
    plt.close(figure)
    assert abs(heights[0] - heights[1]) > 5


@pytest.mark.parametrize("span", [(0.1, 0.4), (0.15, 0.62), (0.004, 0.7), (1e-5, 10.0)])
def test_a_narrow_logarithmic_axis_has_one_to_three_labels(span: tuple[float, float]) -> None:
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots()
    axis.loglog(span, [1, 2])
    axis.set_xlim(span)
    report.few_log_ticks(axis.xaxis)
    shown = [tick for tick in axis.get_xticks() if span[0] <= tick <= span[1]]
    plt.close(figure)
    assert 1 <= len(shown) <= 3
