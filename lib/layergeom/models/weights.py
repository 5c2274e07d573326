"""The hash of a model's weights."""

from pathlib import Path

from layergeom.errors import UsageError
from layergeom.files import sha256_of, sha256_of_text


def weights_hash(folder: Path) -> str:
    """SHA-256 over the names and bytes of a model folder's safetensors.

    Raises:
        UsageError: the folder is not a model.
    """
    weights = sorted(folder.glob("*.safetensors"))
    if not (folder / "config.json").is_file() or not weights:
        raise UsageError(
            f"{folder} is not a model: it needs config.json, tokenizer.json and weights in "
            "*.safetensors."
        )
    return sha256_of_text("\n".join(f"{path.name} {sha256_of(path)}" for path in weights))


def has_weights(folder: Path, expected: str) -> bool:
    """Whether a folder is a model with these weights, and not damaged or missing."""
    try:
        return weights_hash(folder) == expected
    except UsageError:
        return False
