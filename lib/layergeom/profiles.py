"""Profiles: what is run for which models, in a short YAML file that is validated."""

from difflib import get_close_matches
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from layergeom.errors import UsageError, unknown
from layergeom.notebooks import notebook_names
from layergeom.studies.settings import SIZES, Settings, named_sizes


class Profile(BaseModel):
    """One profile.

    Attributes:
        sizes: name of the sizes.
        corpus: corpus name, or path of a text file.
        seed: seed of every random choice.
        models: models to measure.
        notebooks: notebooks to run for each model.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    sizes: str = "default"
    corpus: str = "wikipedia-sample"
    seed: int = 0
    models: tuple[str, ...] = Field(min_length=1)
    notebooks: tuple[str, ...] = Field(min_length=1)

    def settings(self, model: str) -> Settings:
        """Settings of one model's measurement."""
        return Settings(model, self.corpus, named_sizes(self.sizes), self.seed)

    def parameters(self, model: str) -> dict[str, str]:
        """Notebook parameters for one model, the defaults left out."""
        given = {"model": model, "corpus": self.corpus, "sizes": self.sizes, "seed": str(self.seed)}
        defaults = {"corpus": "wikipedia-sample", "sizes": "default", "seed": "0"}
        return {key: value for key, value in given.items() if defaults.get(key) != value}


def read_profile(root: Path, name: str) -> Profile:
    """A profile of a checkout by name.

    Raises:
        UsageError: no such profile; a misspelt key, with the nearest; an unknown name in it.
    """
    known = sorted(path.stem for path in (root / "profiles").glob("*.yml"))
    if name not in known:
        raise unknown("profile", name, known)
    path = root / "profiles" / f"{name}.yml"
    try:
        rows = yaml.safe_load(path.read_text(encoding="utf-8"))
        profile = Profile.model_validate(rows)
    except yaml.YAMLError as error:
        reason = str(error).replace("\n", " ")
        raise UsageError(f"{path} is not YAML: {reason}") from error
    except ValidationError as error:
        raise UsageError(f"{path}: {_explain(error)}") from None
    if profile.sizes not in SIZES:
        raise unknown("sizes", profile.sizes, list(SIZES))
    for notebook in profile.notebooks:
        if notebook not in notebook_names(root):
            raise unknown("notebook", notebook, notebook_names(root))
    return profile


def _explain(error: ValidationError) -> str:
    first = error.errors()[0]
    key = ".".join(map(str, first["loc"]))
    if first["type"] == "extra_forbidden":
        keys = list(Profile.model_fields)
        close = get_close_matches(key, keys, n=1)
        return f"unknown key {key!r}. " + (
            f"Did you mean {close[0]!r}?" if close else f"Known: {', '.join(keys)}."
        )
    return f"{key}: {first['msg']}."
