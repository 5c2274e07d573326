"""A model trained here is found again, damaged bytes are never used, and records are told."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from layergeom.errors import LayergeomError, NotMeasurableError
from layergeom.models import catalogue as catalogue_module
from layergeom.models.catalogue import ModelEntry, TrainedSource
from layergeom.models.checkpoints import checkpoints, training_record
from layergeom.models.records import Checkpoint, TrainingRecord, read_record
from layergeom.models.sources import resolve
from layergeom.models.trained import trained_model


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAYERGEOM_HOME", str(folder))
        patch.setattr(catalogue_module, "catalogue", lambda: {"grown": entry(folder)})
        yield folder


def entry(folder: Path) -> ModelEntry:
    text = folder / "text.txt"
    text.write_text("\n\n".join(f"Stretch {i}: " + "a few words more. " * 120 for i in range(30)))
    row = {"corpus": str(text), "vocabulary": 300, "context": 8, "steps": 3, "batch": 2}
    shape = {"type": "gpt_neox", "width": 8, "depth": 2, "heads": 1}
    source = {"kind": "trained", **row, "network": shape, "learning_rate": 0.01}
    return ModelEntry.model_validate(
        {"title": "t", "family": "f", "bos": False, "licence": "l", "source": source}
    )


@pytest.fixture
def recipe(home: Path) -> TrainedSource:
    source = entry(home).source
    assert isinstance(source, TrainedSource)
    return source


@pytest.fixture
def no_training(monkeypatch: pytest.MonkeyPatch, recipe: TrainedSource) -> None:
    trained_model("grown", recipe)

    def refuse(*_: object) -> None:
        raise AssertionError("trained a second time")

    monkeypatch.setattr("layergeom.models.training.train", refuse)


@pytest.mark.usefixtures("no_training")
def test_a_trained_model_is_trained_once(recipe: TrainedSource) -> None:
    folder, record = trained_model("grown", recipe)
    assert read_record(folder) == record
    assert trained_model("grown-seed0", recipe) == (folder, record)
    with pytest.raises(AssertionError, match="second time"):
        trained_model("grown-seed1", recipe.model_copy(update={"seed": 1}))


@pytest.mark.usefixtures("no_training")
def test_checkpoints_are_told_with_revisions_that_resolve() -> None:
    found = checkpoints("grown")
    assert [c.revision for c in found] == ["step0", "step1", "step2", "step3"]
    for checkpoint in found:
        files = resolve("grown", checkpoint.revision)
        assert files.weights_hash == checkpoint.weights_hash
        assert files.folder.name == checkpoint.revision
    record = training_record("grown")
    assert record is not None
    assert record.checkpoints == found
    assert record.tokens_seen == 3 * 2 * 8


def test_a_damaged_checkpoint_is_never_used_as_if_whole(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = resolve("grown", "step2")
    file = before.folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"!")
    assert resolve("grown", "step2") == before  # trained anew
    assert "is damaged" in capsys.readouterr().err


def test_weights_that_cannot_be_written_right_are_refused(
    recipe: TrainedSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve("grown")
    monkeypatch.setattr("layergeom.models.trained.has_weights", lambda *_: False)
    with pytest.raises(LayergeomError, match="cannot be read back"):
        resolve("grown")


def test_models_that_came_as_they_are_have_neither_record_nor_checkpoints() -> None:
    for model in ("EleutherAI/pythia-70m", "nosuch"):
        assert training_record(model) is None
        with pytest.raises(NotMeasurableError, match=f"{model} has no checkpoints"):
            checkpoints(model)


@pytest.mark.parametrize(("loss", "beats"), [(3.0, True), (4.0, False), (4.5, False)])
def test_a_model_beats_bigrams_by_its_last_loss(loss: float, beats: bool) -> None:
    steps = (Checkpoint(0, 0, 2.0, "a"), Checkpoint(5, 40, loss, "b"))
    record = TrainingRecord(training_tokens=100, bigram_loss=4.0, checkpoints=steps)
    assert record.beats_bigram is beats
    assert (record.validation_loss, record.tokens_seen) == (loss, 40)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"checkpoints": []}', '{"checkpoints": [1]}'])
def test_a_record_that_cannot_be_read_is_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "training.json").write_text(content)
    assert read_record(tmp_path) is None


@pytest.mark.usefixtures("no_training")
def test_reading_records_imports_neither_torch_nor_transformers(home: Path) -> None:
    script = (
        "import sys\n"
        "from layergeom.models.catalogue import ModelEntry\n"
        "from layergeom.models import catalogue, checkpoints, sources\n"
        f"row = ModelEntry.model_validate_json({entry(home).model_dump_json()!r})\n"
        "catalogue.catalogue = lambda: {'grown': row}\n"
        "assert len(checkpoints.checkpoints('grown')) == 4\n"
        "assert sources.resolve('grown', 'step1').revision == 'trained here, step 1'\n"
        "print([name for name in ('torch', 'transformers', 'numba') if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
