"""Profiles: what is run for which models, in a short YAML file that is validated."""

import os
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from layergeom.errors import UsageError, unknown
from layergeom.models.catalogue import catalogue, is_trained
from layergeom.models.devices import Device, Dtype
from layergeom.models.sources import ACCEPTED_TERMS, require_terms
from layergeom.notebooks import Scope, notebook_names
from layergeom.studies.settings import SIZES, Settings, named_sizes


class Profile(BaseModel):
    """One profile.

    Attributes:
        sizes: name of the sizes.
        corpus: corpus name, or path of a text file.
        seed: seed of every random choice.
        dtype: arithmetic of the models' forward passes.
        device: where the models run.
        models: models to measure.
        seeds: how many models of each recipe that is trained here, each from its own seed.
        accept_terms: names of the models' terms that whoever wrote the profile has accepted.
        notebooks: notebooks to run; all of them if left out.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    sizes: str = "default"
    corpus: str = "wikipedia-sample"
    seed: int = 0
    dtype: Dtype = "float32"
    device: Device = "auto"
    models: tuple[str, ...] = Field(min_length=1)
    seeds: Annotated[int, Field(ge=1)] = 1
    accept_terms: tuple[str, ...] = ()
    notebooks: tuple[str, ...] = ()

    @property
    def every_model(self) -> tuple[str, ...]:
        """All models, those trained here once for each seed."""
        return tuple(
            f"{model}-seed{seed}" if seed else model
            for model in self.models
            for seed in range(self.seeds if is_trained(model) else 1)
        )

    def settings(self, model: str) -> Settings:
        """Settings of one model's measurement."""
        sizes = named_sizes(self.sizes)
        return Settings(model, self.corpus, sizes, self.seed, dtype=self.dtype, device=self.device)

    def parameters(self, models: Sequence[str], scope: Scope) -> dict[str, str]:
        """Notebook parameters for one model or for all, the defaults left out."""
        given = {name: str(getattr(self, name)) for name in ("corpus", "sizes", "seed", "dtype")}
        chosen = {
            name: value
            for name, value in given.items()
            if value != str(type(self).model_fields[name].default)
        }
        if scope == "across":
            return {"models": ",".join(models), **chosen}
        return {"model": models[0], **chosen}

    def accept(self, *names: str) -> None:
        """Let this process and those it starts fetch models under the accepted terms.

        Raises:
            UsageError: a model of the profile comes under terms that are not among them.
        """
        earlier = [name for name in os.environ.get(ACCEPTED_TERMS, "").split(",") if name]
        os.environ[ACCEPTED_TERMS] = ",".join(sorted({*earlier, *self.accept_terms, *names}))
        for model in self.models:
            require_terms(model)


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
    names = notebook_names(root)
    for notebook in profile.notebooks:
        if notebook not in names:
            raise unknown("notebook", notebook, names)
    for model in profile.models:
        if model not in catalogue() and model.count("/") != 1 and not Path(model).is_dir():
            raise unknown("model", model, sorted(catalogue()))
    return profile if profile.notebooks else profile.model_copy(update={"notebooks": tuple(names)})


def _explain(error: ValidationError) -> str:
    # A misspelt key first: a required one that is missing is most often the same mistake.
    first = min(error.errors(), key=lambda found: found["type"] != "extra_forbidden")
    key = ".".join(map(str, first["loc"]))
    if first["type"] == "extra_forbidden":
        keys = list(Profile.model_fields)
        close = get_close_matches(key, keys, n=1)
        return f"unknown key {key!r}. " + (
            f"Did you mean {close[0]!r}?" if close else f"Known: {', '.join(keys)}."
        )
    return f"{key}: {first['msg']}." if key else "it holds no keys; a profile names its models."
