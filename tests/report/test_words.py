"""Tokens that an axis can show."""

import warnings
from io import BytesIO

import matplotlib.pyplot as plt
import pytest

from layergeom.report import word_label


@pytest.mark.parametrize(
    ("word", "label"),
    [
        (" the", "the"),
        ("ing", "ing"),
        ("\n", "⏎"),
        ("\n\n", "⏎⏎"),
        (" ", "␣"),
        ("  ", "␣␣"),
        ("", ""),
        (" $5", r"\$5"),
        ("漢", "□"),
        ("é", "é"),
        ("internationalisation", "international…"),
    ],
)
def test_labels(word: str, label: str) -> None:
    assert word_label(word) == label


def test_a_figure_with_any_label_is_drawn_without_a_warning_or_a_formula() -> None:
    words = ["$x^2", "$", "a_b$", "\ufffd", "漢字", "\t", "\n", "🙂", "\\frac{"]
    figure, axis = plt.subplots()
    axis.set_yticks(range(len(words)), [word_label(word) for word in words])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.savefig(BytesIO(), format="png")
    plt.close(figure)
