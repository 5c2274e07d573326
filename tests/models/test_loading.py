"""A model folder loads whole or is refused, and the network is never asked behind one's back."""

import json
import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from layergeom.errors import LayergeomError, UsageError
from layergeom.models.language_model import load
from layergeom.models.sources import display_name, resolve
from tiny_models import DEPTH, save_tiny, tiny_network, tiny_tokenizer


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("saved") / "my-model")


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "my-model"))


def change_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    file = folder / "model.safetensors"
    weights = load_file(file)
    change(weights)
    save_file(weights, file, {"format": "pt"})


def test_local_folder_loads_with_its_own_weights_name_and_context(folder: Path) -> None:
    model, files = load(str(folder)), resolve(str(folder))
    assert (model.name, model.depth, files.revision) == ("my-model", DEPTH, "local")
    assert (files.bos, files.context, files.trained_on) == ("as the tokenizer does", 64, None)
    assert display_name(str(folder)) == "my-model"
    expected = tiny_network("gpt_neox").state_dict()
    for name, weight in model.network.state_dict().items():
        assert weight.dtype == torch.float32
        assert torch.equal(weight, expected[name])


def test_weights_hash_changes_with_a_weight_and_with_nothing_else(folder: Path) -> None:
    before = resolve(str(folder)).weights_hash
    (folder / "notes.txt").write_text("beside the weights")
    assert resolve(str(folder)).weights_hash == before
    change_weights(folder, lambda weights: weights["embed_out.weight"][0, 0].add_(1.0))
    assert resolve(str(folder)).weights_hash != before


def test_missing_weights_are_refused_and_not_drawn_at_random(folder: Path) -> None:
    name = "gpt_neox.layers.1.mlp.dense_h_to_4h.weight"
    change_weights(folder, lambda weights: weights.pop(name))
    with pytest.raises(UsageError, match=rf"my-model .*1 missing keys, first '{name}'"):
        load(str(folder))


def test_a_folder_without_a_tokenizer_is_refused_before_a_text_is_called_too_short(
    folder: Path,
) -> None:
    for file in folder.glob("tokenizer*"):
        file.unlink()
    with pytest.raises(UsageError, match=r"has no tokenizer: it needs one of tokenizer\.json"):
        load(str(folder))


def test_unexpected_weights_are_refused(folder: Path) -> None:
    change_weights(folder, lambda weights: weights.update({"gpt_neox.extra": torch.ones(2)}))
    with pytest.raises(UsageError, match=r"1 unexpected keys, first 'gpt_neox\.extra'"):
        load(str(folder))


def test_weights_of_another_shape_are_refused(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    config["intermediate_size"] = 52
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(UsageError, match="my-model"):
        load(str(folder))


def test_pickled_weights_alone_are_refused(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    with pytest.raises(UsageError, match=r"is not a model: .*\*\.safetensors"):
        load(str(folder))


def test_folder_without_config_is_refused(folder: Path) -> None:
    (folder / "config.json").unlink()
    with pytest.raises(UsageError, match=r"needs config\.json"):
        load(str(folder))


def test_config_that_is_not_json_is_refused(folder: Path) -> None:
    (folder / "config.json").write_text("{")
    with pytest.raises(UsageError, match=r"config\.json is not JSON"):
        load(str(folder))


def test_truncated_weights_are_refused_with_a_message(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(LayergeomError, match="my-model"):
        load(str(folder))


@pytest.mark.parametrize("content", [None, "{"])
def test_folder_without_a_readable_tokenizer_is_refused(folder: Path, content: str | None) -> None:
    if content is None:
        (folder / "tokenizer.json").unlink()
    else:
        (folder / "tokenizer.json").write_text(content)
    with pytest.raises(UsageError, match=r"cannot load my-model|my-model has no tokenizer"):
        load(str(folder))


def test_folder_of_an_encoder_decoder_is_refused(tmp_path: Path) -> None:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(vocab_size=128, d_model=32, d_kv=8, d_ff=32, num_layers=2, num_heads=4)
    T5ForConditionalGeneration(config).save_pretrained(tmp_path / "t5")
    tiny_tokenizer().save_pretrained(tmp_path / "t5")
    with pytest.raises(UsageError, match=r"cannot load t5 .*(?i:t5config)"):
        load(str(tmp_path / "t5"))


def test_unknown_model_lists_the_known_ones_and_the_close_one() -> None:
    with pytest.raises(UsageError, match=r"Did you mean 'smoke-pythia'.*Known: .*smollm2-135m"):
        resolve("smoke-pythja")


def test_unknown_model_ends_the_command_with_status_2_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from layergeom.cli import main

    monkeypatch.setattr(sys, "argv", ["layergeom", "pga", "--model", "nosuch"])
    monkeypatch.setenv("TQDM_DISABLE", "1")
    with pytest.raises(SystemExit) as caught:
        main()
    printed = capsys.readouterr()
    assert caught.value.code == 2
    assert printed.out == ""
    assert printed.err.startswith("Error: unknown model 'nosuch'. Known: gemma3-270m, mini-")
    assert printed.err.count("\n") == 1


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    asked: list[object] = []

    def refuse(*arguments: object, **_: object) -> None:
        asked.append(arguments)
        raise OSError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    return asked


def test_hub_id_offline_says_what_is_missing_without_asking_the_network(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, no_network: list[object]
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(LayergeomError, match=r"'owner/name' is not in the hub's cache") as caught:
        resolve("owner/name")
    assert caught.value.exit_status == 1
    assert "smoke-pythia" in str(caught.value)
    assert no_network == []


def test_cached_hub_model_is_read_offline_and_named_by_its_commit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, saved: Path, no_network: list[object]
) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "models--owner--name"
    shutil.copytree(saved, repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    files = resolve("owner/name")
    assert (files.name, files.revision) == ("owner/name", commit)
    assert files.weights_hash == resolve(str(saved)).weights_hash
    assert load("owner/name").depth == DEPTH
    assert no_network == []
