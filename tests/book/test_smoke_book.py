"""The whole path on a tiny real model: measure, papermill, pages, strict book, scan."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import jupytext
import pytest

from cli import layergeom

ROOT = Path(__file__).parents[2]
#: One of each kind: figures, a table and a comparison. CI runs all notebooks after the tests, with
#: `make book PROFILE=smoke`.
PROFILE = """
sizes: smoke
models: [smoke-pythia]
notebooks:
  - readout/pga_by_layer
  - readout/masking
  - readout/scale_profiles
  - updates/error_vs_perturbation
  - updates/function_classes
"""
PAGES = [
    "readout/masking--smoke-pythia",
    "readout/pga_by_layer--smoke-pythia",
    "readout/scale_profiles--all-models",
    "updates/error_vs_perturbation--smoke-pythia",
    "updates/function_classes--smoke-pythia",
]
PARTS = ("book", "notebooks", "lib", "profiles", "_config.yml", "_toc.yml", "Snakefile")


def copy_checkout(target: Path) -> Path:
    for name in PARTS:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target / name)
    (target / "profiles" / "smoke.yml").write_text(PROFILE)
    return target


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = copy_checkout(tmp_path_factory.mktemp("checkout"))
    # A build that is killed as soon as its first page is there, for the next one to go on from.
    process = subprocess.Popen(
        [sys.executable, "-m", "layergeom", "book", "--profile", "smoke"],
        cwd=root,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 240
    while not list(root.rglob("_build/pages/smoke/*/*.ipynb")) and time.monotonic() < deadline:
        assert process.poll() is None, "the build ended before its first page was seen"
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (root / "_build" / "html" / "index.html").exists()
    done = layergeom("book", "--profile", "smoke", cwd=root, timeout=400)
    assert done.status == 0, done.err
    assert "An earlier build was interrupted" in done.err
    assert str(root / "_build" / "html" / "index.html") in done.out
    return root


def test_a_killed_build_is_gone_on_from_and_leaves_nothing_half_written(checkout: Path) -> None:
    assert list(checkout.rglob(".partial-*")) == []
    assert len(list((checkout / "_build" / "pages" / "smoke").rglob("*.ipynb"))) == len(PAGES)


def test_every_page_has_question_figure_or_table_papers_figure_and_command(checkout: Path) -> None:
    folder = checkout / "_build" / "html" / "pages"
    pages = sorted(folder.rglob("*--*.html"))
    assert [page.relative_to(folder).with_suffix("").as_posix() for page in pages] == PAGES
    for page in pages:
        text = page.read_text()
        about = "" if "all-models" in page.stem else r" \(smoke-pythia\)"
        assert re.search(rf"<h1>.*\?{about}<", text, re.DOTALL)
        is_table = "function_classes" in page.stem
        assert ('<figure class="align-default"' in text) is not is_table
        assert (f'id="tab-{re.sub("[^a-z0-9]+", "-", page.stem)}"' in text) is is_table
        assert "reports</p></th>" in text
        assert "measured here</p></th>" in text
        assert "layergeom run " in re.sub(r"<[^>]+>", "", text)  # the highlighter splits words
        for suffix in ("csv", "json") if is_table else ("csv", "svg", "png", "pdf", "json"):
            assert re.search(rf'download="" href="[^"]*/{page.stem}\.{suffix}"', text)
        assert "error" not in re.findall(r'class="output ([a-z_]+)', text)


def test_the_contents_lead_from_question_and_model_to_every_page(checkout: Path) -> None:
    pages = checkout / "_build" / "html" / "pages"
    question = (pages / "readout" / "masking.html").read_text()
    assert 'href="masking--smoke-pythia.html"' in question
    overview = (pages / "models" / "smoke-pythia.html").read_text()
    for name in PAGES:
        if "all-models" not in name:
            assert f'href="../{name}.html' in overview


def test_formulas_come_from_the_book_itself(checkout: Path) -> None:
    html = checkout / "_build" / "html"
    text = (html / "book" / "readout.html").read_text()
    scripts = re.findall(r'<script[^>]* src="([^"]+)"', text)
    assert any("mathjax" in script for script in scripts)
    assert [script for script in scripts if "://" in script] == []


def test_data_and_provenance_lie_beside_the_page(checkout: Path) -> None:
    folder = checkout / "_build" / "pages" / "smoke" / "readout"
    record = json.loads((folder / "pga_by_layer--smoke-pythia.json").read_text())
    wanted = {"model", "weights", "revision", "corpus", "text", "tokens", "seed", "versions"}
    assert wanted | {"commit"} <= set(record)
    rows = (folder / "pga_by_layer--smoke-pythia.csv").read_text().splitlines()
    assert rows[0].startswith("point,depth,level,rho_readout,null_mean,null_std,z,p,ci_low")
    assert len(rows) == 1 + 8


def test_pages_are_made_from_stored_results_without_what_measured_them(
    checkout: Path, tmp_path: Path
) -> None:
    given = {"sizes": "smoke", "model": "smoke-pythia", "models": ["smoke-pythia"]}
    values = "\n".join(f"{name} = {value!r}" for name, value in given.items())
    for page in PAGES:
        cells = jupytext.read(checkout / "notebooks" / f"{page.split('--')[0]}.py").cells
        code = [cell.source for cell in cells if cell.cell_type == "code"]
        code.insert(1, f"{values}\nfolder = {str(tmp_path)!r}")
        heavy = ("torch", "transformers", "numba", "sklearn")
        code.append(f"import sys\nassert not {{*{heavy!r}}} & set(sys.modules), set(sys.modules)")
        done = subprocess.run(
            [sys.executable, "-c", "\n".join(code)],
            cwd=checkout,
            env={**os.environ, "MPLBACKEND": "agg"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{page}: {done.stderr[-300:]}"


def test_a_second_build_with_nothing_changed_has_nothing_to_do(checkout: Path) -> None:
    page = next((checkout / "_build" / "pages" / "smoke").rglob("masking*.ipynb"))
    index = checkout / "_build" / "html" / "index.html"
    before = page.stat().st_mtime_ns, index.stat().st_mtime_ns
    begin = time.monotonic()
    done = layergeom("book", "--profile", "smoke", cwd=checkout)
    assert done.status == 0
    assert time.monotonic() - begin < 15
    assert (page.stat().st_mtime_ns, index.stat().st_mtime_ns) == before


def test_a_notebook_that_fails_stops_the_build_with_its_name_and_error(checkout: Path) -> None:
    notebook = checkout / "notebooks" / "readout" / "masking.py"
    whole = notebook.read_text()
    notebook.write_text(whole + "\n# %%\nraise ValueError('planted')\n")
    try:
        done = layergeom("book", "--profile", "smoke", cwd=checkout)
    finally:
        notebook.write_text(whole)
    assert done.status == 1
    assert "readout/masking failed for smoke-pythia: ValueError: planted" in done.err
    assert "Traceback" not in done.err
    assert "planted" not in "".join(
        p.read_text() for p in (checkout / "_build" / "pages").rglob("*.ipynb")
    )


def test_a_misspelt_profile_key_names_the_nearest(checkout: Path) -> None:
    (checkout / "profiles" / "typo.yml").write_text("model: [x]\nnotebooks: [readout/masking]\n")
    done = layergeom("book", "--profile", "typo", cwd=checkout)
    (checkout / "profiles" / "typo.yml").unlink()
    assert done.status == 2
    assert "models" in done.err
