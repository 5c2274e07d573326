"""A wheel's model file: verified, cached whole, and never used with another hash."""

import hashlib
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from layergeom.errors import LayergeomError, UsageError
from layergeom.models import sources
from layergeom.models.catalogue import ModelEntry, TrainedSource, WheelSource, catalogue

WEIGHTS = b"GGUF" + bytes(range(256)) * 40
MEMBER = "some_package/tiny.gguf"


def wheel_source(content: bytes = WEIGHTS, member: str = MEMBER) -> WheelSource:
    return WheelSource(
        kind="wheel",
        package="some-package",
        version="1.0",
        member=member,
        sha256=hashlib.sha256(content).hexdigest(),
        architecture="llama",
    )


@dataclass
class FakeIndex:
    """Stands in for pip: puts a wheel with one member into the folder."""

    content: bytes = WEIGHTS
    member: str = MEMBER
    downloads: int = 0

    def download(self, source: WheelSource, folder: Path) -> Path:
        self.downloads += 1
        wheel = folder / "some_package-1.0-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("some_package/__init__.py", "raise SystemExit('code was run')")
            archive.writestr(self.member, self.content)
        return wheel


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("LAYERGEOM_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, home: Path) -> FakeIndex:
    fake = FakeIndex()
    monkeypatch.setattr(sources, "_download", fake.download)
    return fake


def files_in(folder: Path) -> list[str]:
    """Names of all files but locks."""
    return [p.name for p in folder.rglob("*") if p.is_file() and p.suffix != ".lock"]


def test_the_right_file_is_cached_and_used_again(index: FakeIndex, home: Path) -> None:
    path = sources._from_wheel(wheel_source())
    assert path.read_bytes() == WEIGHTS
    assert files_in(home) == ["tiny.gguf"]
    assert sources._from_wheel(wheel_source()) == path
    assert index.downloads == 1


def test_another_hash_is_refused_and_leaves_nothing(index: FakeIndex, home: Path) -> None:
    index.content = WEIGHTS + b"!"
    with pytest.raises(LayergeomError, match=r"tiny\.gguf of some-package 1\.0 has SHA-256"):
        sources._from_wheel(wheel_source())
    assert files_in(home) == []


def test_a_damaged_cached_file_is_fetched_again(
    index: FakeIndex, capsys: pytest.CaptureFixture[str]
) -> None:
    path = sources._from_wheel(wheel_source())
    path.write_bytes(WEIGHTS[:-1] + b"!")
    assert sources._from_wheel(wheel_source()).read_bytes() == WEIGHTS
    assert index.downloads == 2
    assert "is damaged" in capsys.readouterr().err


def test_a_damaged_cached_file_is_not_lost_to_a_bad_download(index: FakeIndex, home: Path) -> None:
    path = sources._from_wheel(wheel_source())
    path.write_bytes(b"damaged")
    index.content = b"worse"
    with pytest.raises(LayergeomError, match="SHA-256"):
        sources._from_wheel(wheel_source())
    assert path.read_bytes() == b"damaged"
    assert files_in(home) == ["tiny.gguf"]


def test_a_missing_member_is_an_error_and_leaves_nothing(index: FakeIndex, home: Path) -> None:
    index.member = "some_package/other.gguf"
    with pytest.raises(LayergeomError, match=r"does not hold some_package/tiny\.gguf"):
        sources._from_wheel(wheel_source())
    assert files_in(home) == []


def test_a_wheel_that_is_no_archive_is_an_error(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def download(source: WheelSource, folder: Path) -> Path:
        path = folder / "broken.whl"
        path.write_bytes(b"not a zip file")
        return path

    monkeypatch.setattr(sources, "_download", download)
    with pytest.raises(LayergeomError, match=r"broken\.whl does not hold"):
        sources._from_wheel(wheel_source())
    assert files_in(home) == []


def test_a_members_name_never_leads_out_of_the_cache(index: FakeIndex, home: Path) -> None:
    index.member = "../../../escaped.gguf"
    path = sources._from_wheel(wheel_source(member=index.member))
    assert path.parent.parent == home / "models"
    assert path.name == "escaped.gguf"


@dataclass
class FakePip:
    stderr: str
    returncode: int = 1

    def run(self, command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        self.command = command
        return subprocess.CompletedProcess(command, self.returncode, "", self.stderr)


@pytest.mark.parametrize(
    ("stderr", "reason"),
    [
        (
            "WARNING: Retrying\nERROR: Could not find a version (from versions: none)\n"
            "ERROR: No matching distribution found for some-package==1.0\n",
            "No matching distribution found for some-package==1.0",
        ),
        ("python: No module named pip\n", "No module named pip"),
        ("", "no reason given"),
    ],
)
def test_failing_pip_is_two_lines_of_reason_and_advice(
    home: Path, monkeypatch: pytest.MonkeyPatch, stderr: str, reason: str
) -> None:
    pip = FakePip(stderr)
    monkeypatch.setattr(subprocess, "run", pip.run)
    with pytest.raises(LayergeomError) as caught:
        sources._from_wheel(wheel_source())
    first, second = str(caught.value).splitlines()
    assert first.startswith("pip could not download some-package==1.0: ")
    assert first.endswith(reason)
    assert "connect to a package index and run the command again" in second
    assert files_in(home) == []


def test_pip_downloads_a_wheel_and_installs_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip = FakePip("", returncode=0)
    monkeypatch.setattr(subprocess, "run", pip.run)
    with pytest.raises(LayergeomError):  # it left no wheel
        sources._from_wheel(wheel_source())
    assert pip.command[:4] == [sys.executable, "-m", "pip", "download"]
    assert "--no-deps" in pip.command
    assert pip.command[pip.command.index("--only-binary") + 1] == ":all:"
    assert pip.command[-1] == "some-package==1.0"


def test_resolve_gives_the_catalogues_facts_of_a_wheel(
    index: FakeIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = wheel_source()
    entry = ModelEntry(title="t", bos=True, licence="l", source=source)
    monkeypatch.setattr(sources, "catalogue", lambda: {"tiny": entry})
    files = sources.resolve("tiny")
    assert (files.name, files.gguf, files.bos) == ("tiny", "tiny.gguf", "yes")
    assert (files.revision, files.weights_hash) == ("1.0", source.sha256)
    assert (files.folder / "tiny.gguf").read_bytes() == WEIGHTS


def _trained_entry(text: Path) -> ModelEntry:
    recipe = TrainedSource(
        kind="trained",
        corpus=str(text),
        vocabulary=300,
        context=8,
        width=8,
        depth=2,
        heads=1,
        steps=1,
        batch=2,
        learning_rate=0.003,
        seed=0,
    )
    return ModelEntry(title="t", bos=False, licence="l", source=recipe)


@pytest.fixture
def trained(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> sources.ModelFiles:
    text = tmp_path / "text.txt"
    text.write_text("\n\n".join(f"Stretch {i}: " + "a few words more. " * 120 for i in range(30)))
    entry = _trained_entry(text)
    monkeypatch.setattr(sources, "catalogue", lambda: {"grown": entry})
    return sources.resolve("grown")


def test_a_trained_model_is_trained_once_and_measured_on_held_out_text_only(
    trained: sources.ModelFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("trained a second time")

    monkeypatch.setattr("layergeom.models.training.train", refuse)
    assert sources.resolve("grown") == trained
    assert Path(trained.trained_on or "").is_file()
    assert (trained.context, trained.bos) == (8, "no")


def test_a_damaged_trained_model_is_never_used_as_if_whole(trained: sources.ModelFiles) -> None:
    file = trained.folder / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)

    def hash_or_refusal() -> str | None:
        try:
            return sources.resolve("grown").weights_hash
        except LayergeomError:
            return None

    assert hash_or_refusal() in (None, trained.weights_hash)  # refused, or trained anew


def test_every_catalogue_entry_says_whether_a_bos_belongs() -> None:
    assert {"smollm2-135m", "smoke-pythia"} <= set(catalogue())
    for entry in catalogue().values():
        assert isinstance(entry.bos, bool)


@pytest.mark.parametrize(
    "change",
    [
        {"sha256": "b179"},
        {"kind": "pickle"},
        {"sha265": "0" * 64},
    ],
)
def test_a_wrong_catalogue_row_is_an_error(change: dict[str, str]) -> None:
    row = {"title": "t", "bos": False, "licence": "l", "source": wheel_source().model_dump()}
    ModelEntry.model_validate(row)
    with pytest.raises(ValueError, match="validation error"):
        ModelEntry.model_validate(row | {"source": wheel_source().model_dump() | change})


def test_a_name_that_is_a_path_to_nothing_is_not_taken_for_a_hub_id() -> None:
    for name in ("./model", "/no/such/folder", "~/model"):
        with pytest.raises(UsageError, match="unknown model"):
            sources.resolve(name)
