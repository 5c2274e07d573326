"""Build the book: the prose spine and the pages of a profile, staged together."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from layergeom.errors import LayergeomError
from layergeom.files import lock, make_folder
from layergeom.profiles import read_profile
from layergeom.progress import say
from layergeom.scan import scan_pages
from layergeom.staging import stage


def page_folder(profile: str) -> Path:
    """Where a profile's pages go, relative to the checkout."""
    return Path("_build") / "pages" / profile


def build(root: Path, profile: str, cores: int) -> Path:
    """Run everything a profile needs and build its book, resuming what is there.

    Returns:
        The book's first page.

    Raises:
        UsageError: the profile is not valid.
        LayergeomError: a step failed, named by the step itself; or another build is running.
    """
    read_profile(root, profile)
    with lock(root / "_build" / "build"):
        _unlock(root, profile)
        done = subprocess.run(_snakemake(root, profile, cores), cwd=root, check=False)
    if done.returncode != 0:
        raise LayergeomError(
            f"the book of profile {profile!r} was not built; the failing step is named above. "
            "What was complete is kept: run the same command again after mending it."
        )
    return root / "_build" / "html" / "index.html"


def _snakemake(root: Path, profile: str, cores: int) -> list[str]:
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(root / "Snakefile")]
    command += ["--cores", str(cores), "--config", f"profile={profile}"]
    return [*command, "--rerun-incomplete", "--quiet", "all"]


def _unlock(root: Path, profile: str) -> None:
    """Clear what a killed build left locked; this process holds the lock of all builds."""
    locks = root / ".snakemake" / "locks"
    if locks.is_dir() and any(locks.iterdir()):
        say("An earlier build was interrupted; going on from what was complete.")
        command = [*_snakemake(root, profile, 1), "--unlock"]
        subprocess.run(command, cwd=root, check=False, capture_output=True)


def bind(root: Path, profile_name: str) -> Path:
    """Stage the spine with a profile's pages, build it strictly and scan the result.

    Raises:
        LayergeomError: Sphinx warned or failed, the first page is missing, or the scan found
            something.
    """
    profile = read_profile(root, profile_name)
    staging = root / "_build" / "book"
    shutil.rmtree(staging, ignore_errors=True)
    make_folder(staging)
    stage(root, root / page_folder(profile_name), profile, staging)
    html = root / "_build" / "html"
    say("Building the book with Jupyter Book ...")
    shutil.rmtree(html, ignore_errors=True)
    log = root / "_build" / "jupyter-book.log"
    command = [sys.executable, "-m", "layergeom.jupyter_book", "build", str(staging)]
    command += ["--all", "-n", "-W", "--keep-going", "--path-output", str(root)]
    with log.open("w", encoding="utf-8") as file:
        done = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=False)
    index = html / "index.html"
    if done.returncode != 0 or not index.is_file():
        shutil.rmtree(html, ignore_errors=True)
        raise LayergeomError(f"Jupyter Book failed: {_complaints(log)}\nThe whole log is {log}.")
    problems = scan_pages(html)
    if problems:
        shutil.rmtree(html, ignore_errors=True)
        raise LayergeomError("the built pages are not fit to show:\n" + "\n".join(problems))
    return index


def _complaints(log: Path) -> str:
    text = re.sub(r"\x1b\[[0-9;]*m", "", log.read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if re.search(r"WARNING|ERROR|Error:", line)]
    return lines[0] if lines else (text.strip().splitlines() or ["no output"])[-1]
