"""Stored results: computed once, never half written, never read when damaged."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from layergeom.errors import LayergeomError
from layergeom.studies.store import Artefact, Results, artefact_folder, compute_or_load, find

INPUTS: dict[str, Any] = {"model": "tiny", "seed": 0, "sizes": {"neighbours": 4}}

ARRAYS = {
    "single": np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32),
    "double": np.random.default_rng(1).standard_normal((4, 2))[:, ::-1],
    "ids": np.arange(6, dtype=np.int64).reshape(2, 3),
}
TABLE = pd.DataFrame({"block": [0, 1], "class": ["mlp", "diagonal"], "kl": [0.5, np.nan]})
FACTS = {"depth": 3, "curve": [1.0, 0.25], "undertrained": False, "bos": None}


class Counted:
    """A computation that counts its runs."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self) -> Results:
        self.runs += 1
        return Results(arrays=ARRAYS, tables={"table": TABLE}, facts=FACTS)


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("LAYERGEOM_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def compute() -> Counted:
    return Counted()


def assert_whole(artefact: Artefact) -> None:
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(artefact.array(name), array)
        assert artefact.array(name).dtype == array.dtype
    pd.testing.assert_frame_equal(artefact.table("table"), TABLE)
    assert artefact.facts == FACTS
    assert artefact.inputs == INPUTS


def test_computed_once_and_loaded_equal(compute: Counted) -> None:
    assert find("study", INPUTS) is None
    assert_whole(compute_or_load("study", INPUTS, compute))
    assert_whole(compute_or_load("study", dict(reversed(INPUTS.items())), compute))
    assert compute.runs == 1


@pytest.mark.parametrize(
    "change",
    [{"model": "other"}, {"seed": 1}, {"seed": 0.5}, {"sizes": {"neighbours": 5}}, {"code": "a"}],
)
def test_any_change_of_the_inputs_computes_anew_and_keeps_the_first(
    compute: Counted, change: dict[str, Any]
) -> None:
    first = compute_or_load("study", INPUTS, compute)
    other = compute_or_load("study", INPUTS | change, compute)
    assert compute.runs == 2
    assert other.folder != first.folder
    assert_whole(first)


def test_studies_do_not_share_results(compute: Counted) -> None:
    compute_or_load("study", INPUTS, compute)
    compute_or_load("other", INPUTS, compute)
    assert compute.runs == 2


def test_inputs_that_are_not_numbers_are_refused(compute: Counted) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        compute_or_load("study", {"x": float("nan")}, compute)
    assert compute.runs == 0


def flip(path: Path, at: int = -1) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("file", ["single.safetensors", "double.safetensors", "table.parquet"])
def test_a_flipped_bit_is_an_error_naming_the_file(compute: Counted, file: str) -> None:
    artefact = compute_or_load("study", INPUTS, compute)
    flip(artefact.folder / file, at=len((artefact.folder / file).read_bytes()) // 2)
    stored = compute_or_load("study", INPUTS, compute)
    name, kind = file.split(".")
    read = stored.table if kind == "parquet" else stored.array
    with pytest.raises(LayergeomError, match=rf"{file} is damaged.*Delete"):
        read(name)
    for other in set(ARRAYS) - {name}:
        np.testing.assert_array_equal(stored.array(other), ARRAYS[other])


@pytest.mark.parametrize(
    "change",
    [
        lambda f: (f / "single.safetensors").write_bytes(b"short"),
        lambda f: os.truncate(f / "table.parquet", 10),
        lambda f: (f / "ids.safetensors").unlink(),
        lambda f: (f / "manifest.json").unlink(),
        lambda f: os.truncate(f / "manifest.json", 30),
        lambda f: (f / "manifest.json").write_text("[]"),
        lambda f: (f / "manifest.json").write_bytes(b"\xff\xfe"),
    ],
    ids=["short", "cut", "missing", "no manifest", "cut manifest", "list", "bytes"],
)
def test_a_result_that_is_not_whole_is_computed_anew_and_said_so(
    compute: Counted, capsys: pytest.CaptureFixture[str], change: Callable[[Path], object]
) -> None:
    change(compute_or_load("study", INPUTS, compute).folder)
    assert find("study", INPUTS) is None
    assert "computed anew" in capsys.readouterr().err
    assert_whole(compute_or_load("study", INPUTS, compute))
    assert compute.runs == 2


@pytest.mark.parametrize(("old", "new"), [('"depth": 3', '"depth": 7'), ('"seed": 0', '"seed": 1')])
def test_a_damaged_manifest_is_never_read_as_whole(compute: Counted, old: str, new: str) -> None:
    manifest = compute_or_load("study", INPUTS, compute).folder / "manifest.json"
    text = manifest.read_text()
    assert text.count(old) == 1
    manifest.write_text(text.replace(old, new))
    assert_whole(compute_or_load("study", INPUTS, compute))


def test_an_exception_leaves_nothing_and_the_next_run_computes(
    compute: Counted, home: Path
) -> None:
    def fail() -> Results:
        raise KeyError("in the middle")

    with pytest.raises(KeyError):
        compute_or_load("study", INPUTS, fail)
    assert [p for p in home.rglob("*") if p.is_file() and p.suffix != ".lock"] == []
    assert find("study", INPUTS) is None
    assert_whole(compute_or_load("study", INPUTS, compute))


def test_an_exception_while_writing_leaves_nothing(compute: Counted, home: Path) -> None:
    bad = Results(arrays=ARRAYS, facts={"not JSON": object()})
    with pytest.raises(TypeError):
        compute_or_load("study", INPUTS, lambda: bad)
    assert [p for p in home.rglob("*") if p.is_file() and p.suffix != ".lock"] == []
    assert_whole(compute_or_load("study", INPUTS, compute))


#: The same computation in a process of its own: it says when it is in the middle of computing or
#: of writing, and waits there for the file "go".
SCRIPT = """
import sys, time
from pathlib import Path
import numpy as np
from layergeom.studies.store import Results, compute_or_load

where, go = sys.argv[1], Path(sys.argv[2])

def wait(here):
    if where == here:
        print(here, flush=True)
        while not go.exists():
            time.sleep(0.01)

class Arrays(dict):
    def items(self):
        for name, array in super().items():
            yield name, array
            wait(f"writing after {name}")

def compute():
    wait("computing")
    return Results(Arrays({name: np.arange(50.0) for name in ("first", "second")}))

compute_or_load("study", {"seed": 0}, compute)
"""


def compute_here() -> Results:
    return Results({name: np.arange(50.0) for name in ("first", "second")})


@contextmanager
def other_process(where: str, go: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process that has come to the point where it waits."""
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, where, str(go)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"{where}\n"
        try:
            yield process
        finally:
            process.kill()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_kill_while_writing_leaves_no_result_and_the_next_run_completes_it(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = {"seed": 0}
    with other_process("writing after first", tmp_path / "never") as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not artefact_folder("study", inputs).exists()
    assert find("study", inputs) is None
    resumed = compute_or_load("study", inputs, compute_here)
    assert list(home.rglob(".partial*")) == []
    np.testing.assert_array_equal(resumed.array("second"), np.arange(50.0))

    monkeypatch.setenv("LAYERGEOM_HOME", str(tmp_path / "untouched"))
    untouched = compute_or_load("study", inputs, compute_here)
    assert untouched.folder != resumed.folder
    assert contents(untouched.folder) == contents(resumed.folder)


def test_two_processes_at_once_compute_once(tmp_path: Path) -> None:
    def refuse() -> Results:
        raise AssertionError("computed a second time")

    with other_process("computing", tmp_path / "go") as process:
        # Released only when this process has long been waiting for the lock.
        release = threading.Timer(0.3, (tmp_path / "go").touch)
        release.start()
        artefact = compute_or_load("study", {"seed": 0}, refuse)
        assert not release.is_alive()
        assert process.wait(timeout=60) == 0
    np.testing.assert_array_equal(artefact.array("second"), np.arange(50.0))


def test_the_manifest_names_every_file_with_its_hash(compute: Counted) -> None:
    folder = compute_or_load("study", INPUTS, compute).folder
    manifest = json.loads((folder / "manifest.json").read_text())
    files = contents(folder)
    assert set(files) == {"manifest.json", *manifest["files"]}
    for name, entry in manifest["files"].items():
        assert entry["bytes"] == len(files[name])
        assert entry["sha256"] == hashlib.sha256(files[name]).hexdigest()
