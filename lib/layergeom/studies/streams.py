"""Arrays that need not fit into memory: written to safetensors files a few rows at a time."""

import json
from pathlib import Path

import numpy as np
from jaxtyping import Float
from safetensors.numpy import load_file

#: The header's length comes before it, and the data start at a multiple of eight bytes.
_LENGTH = 8


def append_rows(folder: Path, name: str, rows: Float[np.ndarray, "few ..."], total: int) -> None:
    """Append rows to an array of a folder; the first ones create its file.

    Args:
        folder: where the arrays are, one file each.
        name: name of the array.
        rows: float32.
        total: rows that the array has in the end.
    """
    path = folder / f"{name}.safetensors"
    with path.open("ab") as file:
        if file.tell() == 0:
            file.write(_header(name, (total, *rows.shape[1:])))
        file.write(np.ascontiguousarray(rows, dtype="<f4").data)


def read_rows(folder: Path, name: str) -> Float[np.ndarray, "total ..."]:
    """An array that ``append_rows`` has completed."""
    return load_file(folder / f"{name}.safetensors")[name]


def _header(name: str, shape: tuple[int, ...]) -> bytes:
    size = 4 * int(np.prod(shape))
    entry = {"dtype": "F32", "shape": list(shape), "data_offsets": [0, size]}
    text = json.dumps({name: entry}, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _LENGTH)
    return len(text).to_bytes(_LENGTH, "little") + text
