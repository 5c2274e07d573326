"""Progress on a terminal and elsewhere."""

import itertools
import sys

import pytest

from layergeom import progress


class Terminal:
    def __init__(self, stream: object) -> None:
        self.stream = stream

    def __getattr__(self, name: str) -> object:
        return getattr(self.stream, name)

    def isatty(self) -> bool:
        return True


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock on which every look takes eleven seconds."""
    clock = itertools.count(step=11)
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(clock)))


@pytest.mark.usefixtures("slow")
def test_a_line_now_and_then_says_how_long_the_rest_takes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert list(progress.track(range(7), "Counting")) == list(range(7))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "Counting ...",
        "Counting: 3 of 7, about 0:44 left",
        "Counting: 6 of 7, about 0:11 left",
    ]


@pytest.mark.usefixtures("slow")
def test_what_has_no_length_is_only_announced(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(progress.track(iter("abcdefgh"), "Reading")) == list("abcdefgh")
    assert capsys.readouterr().err == "Reading ...\n"


def test_what_is_over_soon_is_only_announced(capsys: pytest.CaptureFixture[str]) -> None:
    list(progress.track(range(100), "Counting"))
    assert capsys.readouterr().err == "Counting ...\n"


def test_a_bar_at_a_terminal_unless_others_write_to_it_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal(sys.stderr))
    monkeypatch.setenv("LAYERGEOM_LINES", "0")
    list(progress.track(range(3), "Counting"))
    assert "3/3" in capsys.readouterr().err
    monkeypatch.setenv("LAYERGEOM_LINES", "1")
    list(progress.track(range(3), "Counting"))
    assert capsys.readouterr().err == "Counting ...\n"
