"""Files and folders appear whole or not at all, and errors say what to do."""

import hashlib
from pathlib import Path

import pytest

from layergeom.errors import LayergeomError, unknown
from layergeom.files import (
    lock,
    make_folder,
    scratch_folder,
    sha256_of,
    sha256_of_text,
    whole_file,
    whole_folder,
    write_text,
)
from layergeom.paths import home


def test_hashes_are_sha256_of_the_bytes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes("é\n".encode() * 100_000)
    assert sha256_of(path) == hashlib.sha256(path.read_bytes()).hexdigest()
    assert sha256_of_text("é") == hashlib.sha256(b"\xc3\xa9").hexdigest()


def test_whole_file_is_not_there_until_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file.txt"
    with whole_file(path) as partial:
        partial.write_text("half")
        assert not path.exists()
        partial.write_text("whole")
    assert path.read_text() == "whole"
    assert list(path.parent.iterdir()) == [path]
    plain = tmp_path / "plain"
    plain.touch()
    assert path.stat().st_mode == plain.stat().st_mode


def test_failed_whole_file_keeps_the_old_one_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    write_text(path, "old")

    def fail_inside() -> None:
        with whole_file(path) as partial:
            partial.write_text("half")
            raise KeyError

    with pytest.raises(KeyError):
        fail_inside()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_whole_folder_replaces_the_old_one_when_the_block_ends(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    with whole_folder(folder) as partial:
        (partial / "a").write_text("1")
        assert not folder.exists()
    with whole_folder(folder) as partial:
        (partial / "b").write_text("2")
        assert [p.name for p in folder.iterdir()] == ["a"]
    assert [p.name for p in folder.iterdir()] == ["b"]
    assert list(tmp_path.iterdir()) == [folder]


def test_failed_whole_folder_keeps_the_old_one_and_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    make_folder(folder)
    (folder / "old").write_text("old")

    def fail_inside() -> None:
        with whole_folder(folder) as partial:
            (partial / "half").write_text("half")
            raise KeyError

    with pytest.raises(KeyError):
        fail_inside()
    assert [p.name for p in folder.iterdir()] == ["old"]
    assert list(tmp_path.iterdir()) == [folder]


def test_what_a_killed_process_left_is_cleared_by_the_next(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    # A process that is killed runs none of the clearing up: the blocks are entered and kept open.
    killed = whole_folder(folder), whole_file(tmp_path / "file")
    (killed[0].__enter__() / "half").write_text("half")
    killed[1].__enter__().write_text("half")
    assert len(list(tmp_path.iterdir())) == 2
    with whole_folder(folder) as partial, whole_file(tmp_path / "file") as file:
        assert list(partial.iterdir()) == []
        assert not file.exists()
        file.write_text("whole")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder"]


def test_scratch_folder_is_empty_at_first_and_gone_afterwards(tmp_path: Path) -> None:
    for _ in range(2):
        with scratch_folder(tmp_path / "pages") as scratch:
            assert list(scratch.iterdir()) == []
            (scratch / "half").write_text("half")
        assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_an_error_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(LayergeomError, match=r"cannot create the folder .*file/inside: Not a dir"):
        make_folder(tmp_path / "file" / "inside")


def test_a_lock_is_free_again_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError), lock(tmp_path / "artefact"):
        raise KeyError
    with lock(tmp_path / "artefact"):
        pass


def test_home_is_the_users_choice_or_their_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/someone")
    monkeypatch.setenv("LAYERGEOM_HOME", "~/elsewhere")
    assert home() == Path("/someone/elsewhere")
    monkeypatch.setenv("LAYERGEOM_HOME", "")
    assert home() == Path("/someone/.cache/layergeom")


def test_unknown_names_come_with_those_known_and_the_close_one() -> None:
    error = unknown("map", "diagonl", ["diagonal", "mlp"], " Or none.")
    assert error.exit_status == 2
    assert str(error) == (
        "unknown map 'diagonl'. Did you mean 'diagonal'? Known: diagonal, mlp. Or none."
    )
    assert "Did you mean" not in str(unknown("map", "xyz", ["diagonal", "mlp"]))
