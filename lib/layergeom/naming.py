"""How subjects are named in titles, file names and the outputs of a notebook."""

import re

#: In place of a model's name, on pages that compare several.
ACROSS = "all models"

#: Key under which an output carries what its page needs to know.
METADATA = "layergeom"


def slug(model: str) -> str:
    """A model's name as part of a file name: letters, digits, dot, dash and underscore."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", model).strip("-.") or "model"
