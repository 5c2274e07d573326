"""Where things are: the user's cache and the project's folders."""

import os
from pathlib import Path

from layergeom.errors import UsageError


def home() -> Path:
    """Cache of models, corpora and results: ``LAYERGEOM_HOME``, or ``~/.cache/layergeom``."""
    asked = os.environ.get("LAYERGEOM_HOME", "")
    return Path(asked).expanduser() if asked else Path.home() / ".cache" / "layergeom"


def project_root() -> Path:
    """The checkout that holds the notebooks and the book: the working folder or one above.

    Raises:
        UsageError: none of them is a checkout.
    """
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "_toc.yml").is_file() and (folder / "notebooks").is_dir():
            return folder
    raise UsageError(
        f"{here} is not inside a checkout of layergeom: no folder above it holds _toc.yml and "
        "notebooks/. Change to the checkout first."
    )
