"""Rows that come one after the other make the file that one array makes."""

from pathlib import Path

import numpy as np
import pytest
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from layergeom.studies.streams import append_rows, read_rows

STATES = np.random.default_rng(0).normal(size=(7, 3, 5)).astype(np.float32)


@pytest.mark.parametrize("name", ["H_0", "out", "a longer name"])
@pytest.mark.parametrize("few", [1, 3, 7])
def test_the_file_is_that_of_the_whole_array(tmp_path: Path, name: str, few: int) -> None:
    for start in range(0, len(STATES), few):
        append_rows(tmp_path, name, STATES[start : start + few], len(STATES))
    np.testing.assert_array_equal(read_rows(tmp_path, name), STATES)
    save_file({name: STATES}, tmp_path / "whole")
    written = (tmp_path / f"{name}.safetensors").read_bytes()
    assert written == (tmp_path / "whole").read_bytes()


def test_rows_that_do_not_lie_together_in_memory(tmp_path: Path) -> None:
    append_rows(tmp_path, "H_0", STATES[::2, :, ::-1], 4)
    np.testing.assert_array_equal(read_rows(tmp_path, "H_0"), STATES[::2, :, ::-1])


def test_what_is_not_complete_is_not_read(tmp_path: Path) -> None:
    append_rows(tmp_path, "H_0", STATES[:3], len(STATES))
    with pytest.raises(SafetensorError):
        load_file(tmp_path / "H_0.safetensors")
