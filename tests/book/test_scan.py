"""The scan of built pages finds what must never be published."""

from pathlib import Path

import pytest

from layergeom.scan import scan_pages

FIGURE = '<img src="../_images/f.svg" alt="z against layer">'


def page(html: Path, body: str) -> Path:
    (html / "pages").mkdir(exist_ok=True)
    (html / "_images").mkdir(exist_ok=True)
    (html / "_images" / "f.svg").write_text("<svg/>")
    (html / "pages" / "p--m.html").write_text(f"<html><body>{body}</body></html>")
    return html


def test_a_sound_page_passes(tmp_path: Path) -> None:
    assert scan_pages(page(tmp_path, FIGURE + "see https://a.org/home/x")) == []


@pytest.mark.parametrize(
    "body",
    ['<table id="tab-p-m"><tr><td>1</td></tr></table>', '<div class="admonition missing">no</div>'],
    ids=["a table", "a notice that there is none"],
)
def test_a_table_or_a_notice_stands_for_a_figure(tmp_path: Path, body: str) -> None:
    assert scan_pages(page(tmp_path, body)) == []


PROBLEMS = {
    "error output": (FIGURE + '<div class="output traceback">no</div>', "error output"),
    "absolute path": (FIGURE + "<p>in /home/someone/x.py</p>", "/home/someone"),
    "temporary path": (FIGURE + "<p>/tmp/ipykernel_1/2.py</p>", "/tmp/ipykernel_1"),
    "file address": (FIGURE + "<p>file://x</p>", "file://"),
    "missing figure": ("<p>no figure</p>", "its figure or table is missing"),
    "missing image": (FIGURE + '<img src="../_images/g.svg" alt="a">', "missing image"),
    "no alt text": ('<img src="../_images/f.svg">', "without alt text"),
    "file name as alt text": (
        '<img src="../_images/f.svg" alt="../_images/f.svg">',
        "without alt text",
    ),
}


@pytest.mark.parametrize(("body", "wanted"), PROBLEMS.values(), ids=list(PROBLEMS))
def test_a_problem_is_found(tmp_path: Path, body: str, wanted: str) -> None:
    assert any(wanted in problem for problem in scan_pages(page(tmp_path, body)))
