"""What the documents report, beside what is measured here."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import pandas as pd
import yaml
from pydantic import BaseModel, ConfigDict


class Published(BaseModel):
    """One statement of a document.

    Attributes:
        document: Updates or Readout.
        statement: in our own words.
        published: the document's figure.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    document: str
    statement: str
    published: str


@cache
def published() -> Mapping[str, Published]:
    """All statements by claim id."""
    text = files("layergeom.report").joinpath("published.yml").read_text(encoding="utf-8")
    return {key: Published.model_validate(row) for key, row in yaml.safe_load(text).items()}


def comparison(measured: Mapping[str, str]) -> pd.DataFrame:
    """A table of what the documents report beside what is measured, by claim id.

    Args:
        measured: what is measured here, in words and figures, by claim id.
    """
    rows = [
        {
            "claim": claim,
            f"{published()[claim].document} reports": published()[claim].statement,
            "its figure": published()[claim].published,
            "measured here": text,
        }
        for claim, text in measured.items()
    ]
    return pd.DataFrame(rows)
