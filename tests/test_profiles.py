"""Profiles: validated, seeds spelt out, terms passed on."""

import os
from pathlib import Path

import pytest

from layergeom.errors import UsageError
from layergeom.models.sources import ACCEPTED_TERMS
from layergeom.notebooks import notebook_names
from layergeom.profiles import Profile, read_profile

ROOT = Path(__file__).parents[1]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "profiles").mkdir()
    (tmp_path / "notebooks").symlink_to(ROOT / "notebooks")
    return tmp_path


def write(checkout: Path, text: str) -> None:
    (checkout / "profiles" / "mine.yml").write_text(text)


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "profiles").glob("*.yml")))
def test_every_committed_profile_is_valid_and_runs_all_notebooks(name: str) -> None:
    assert read_profile(ROOT, name).notebooks == tuple(notebook_names(ROOT))


REFUSED = {
    "modles: [smoke-pythia]": "unknown key 'modles'. Did you mean 'models'?",
    "models: [smoke-pythia]\nseed: x": "seed: Input should be a valid integer",
    "models: []": "models: ",
    "models: [smoke-pythai]": "Did you mean 'smoke-pythia'?",
    "models: [smoke-pythia]\nnotebooks: [readout/maskin]": "Did you mean 'readout/masking'?",
    "models: [smoke-pythia]\nsizes: smok": "Did you mean 'smoke'?",
    "models: [smoke-pythia]\nseeds: 0": "seeds: Input should be greater than or equal to 1",
    "models: [smoke-pythia]\ndtype: float64": "dtype: Input should be 'float32', 'bfloat16' or",
    "models: [": "is not YAML",
    "- models": "it holds no keys; a profile names its models",
    "": "it holds no keys; a profile names its models",
}


@pytest.mark.parametrize(("text", "wanted"), REFUSED.items())
def test_a_wrong_profile_is_refused_with_what_is_wrong(
    checkout: Path, text: str, wanted: str
) -> None:
    write(checkout, text)
    with pytest.raises(UsageError) as caught:
        read_profile(checkout, "mine")
    assert wanted in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 2


def test_seeds_multiply_the_models_that_are_trained_here_only() -> None:
    profile = Profile(models=("smollm2-135m", "smoke-pythia", "owner/model"), seeds=3)
    assert profile.every_model == (
        "smollm2-135m",
        *("smoke-pythia", "smoke-pythia-seed1", "smoke-pythia-seed2"),
        "owner/model",
    )


def test_parameters_name_one_model_or_all_and_leave_defaults_out() -> None:
    profile = Profile(models=("a/a", "b/b"), sizes="smoke")
    assert profile.parameters(["a/a"], "per model") == {"model": "a/a", "sizes": "smoke"}
    assert profile.parameters(["a/a", "b/b"], "across") == {"models": "a/a,b/b", "sizes": "smoke"}


def test_arithmetic_and_device_reach_the_measurement_and_arithmetic_the_notebooks() -> None:
    profile = Profile(models=("a/a",), dtype="bfloat16", device="cpu")
    settings = profile.settings("a/a")
    assert (settings.dtype, settings.device) == ("bfloat16", "cpu")
    assert profile.parameters(["a/a"], "per model") == {"model": "a/a", "dtype": "bfloat16"}


def test_accepted_terms_reach_every_step_and_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ACCEPTED_TERMS, "other")
    Profile(models=("a/a",), accept_terms=("gemma",)).accept("third")
    assert os.environ[ACCEPTED_TERMS] == "gemma,other,third"


def test_terms_that_nobody_accepted_stop_a_profile_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(ACCEPTED_TERMS, "")
    profile = read_profile(ROOT, "offline-gemma")
    with pytest.raises(UsageError, match=r"gemma3-270m may be used .*\n.*--accept-gemma-terms"):
        profile.accept()
    profile.accept("gemma")
