"""Where a model runs and in which arithmetic: the same parts, the same contract."""

from pathlib import Path

import numpy as np
import pytest
import torch
from accelerate.hooks import AlignDevicesHook, add_hook_to_module

from layergeom.errors import UsageError
from layergeom.models.capture import capture
from layergeom.models.devices import check_device, placement, torch_dtype
from layergeom.models.language_model import LanguageModel, load, wrap
from layergeom.models.replacement import perturbation
from tiny_models import DEPTH, TOKENS, save_tiny, tiny_network, tiny_tokenizer

IDS = np.random.default_rng(0).integers(3, TOKENS, (2, 9))


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("saved") / "my-model", "llama")


@pytest.mark.usefixtures("no_gpu")
def test_without_a_gpu_auto_is_the_processor() -> None:
    assert placement("auto") == placement("cpu") == {}
    with pytest.raises(UsageError, match=r"there is no cuda device here, only: cpu\."):
        placement("cuda")


def test_auto_takes_the_gpu_and_keeps_its_products_in_float32(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    assert placement("auto") == {"device_map": {"": "cuda"}}
    assert not torch.backends.cudnn.allow_tf32
    assert not torch.backends.cuda.matmul.allow_tf32
    assert placement("cpu") == {}


@pytest.mark.usefixtures("no_gpu")
def test_a_device_that_is_not_there_is_refused_whatever_is_stored() -> None:
    for device in ("auto", "cpu", "split"):
        check_device(device)
    with pytest.raises(UsageError, match="there is no mps device here"):
        check_device("mps")


def test_misspelt_names_are_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"Did you mean 'cuda'\?"):
        placement("cudaa")
    with pytest.raises(UsageError, match=r"Did you mean 'bfloat16'\?"):
        torch_dtype("bfloat")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_runs_in_it_and_states_come_out_in_float32(saved: Path, dtype: str) -> None:
    exact, half = load(str(saved)), load(str(saved), dtype=dtype)
    assert half.dtype == getattr(torch, dtype)
    states, expected = capture(half, IDS), capture(exact, IDS)
    for layer in range(DEPTH + 1):
        assert states.hidden[layer].dtype == np.float32
        off = np.abs(states.hidden[layer] - expected.hidden[layer]).max()
        assert 0.0 < off < 0.1 * np.abs(expected.hidden[layer]).max()
    kl = perturbation(half, IDS, 1, states.out, {"own": states.hidden[2]})["own"]
    assert kl.max() < 1e-3


@pytest.mark.usefixtures("no_gpu")
def test_a_split_model_is_the_same_model(saved: Path) -> None:
    whole, split = load(str(saved)), load(str(saved), "split")
    np.testing.assert_allclose(capture(split, IDS).out, capture(whole, IDS).out, atol=1e-5)


@pytest.mark.parametrize("architecture", ["llama", "gpt_neox", "mamba"])
def test_hooks_that_move_tensors_between_devices_leave_ours_in_place(architecture: str) -> None:
    def make(moved: bool) -> LanguageModel:
        network = tiny_network(architecture)
        if moved:
            for module in network.base_model.modules():
                add_hook_to_module(module, AlignDevicesHook(execution_device="cpu"), append=True)
        return wrap("mine", network, tiny_tokenizer(), "no")

    plain, moved = make(False), make(True)
    states, expected = capture(moved, IDS), capture(plain, IDS)
    for layer in range(DEPTH + 1):
        np.testing.assert_array_equal(states.hidden[layer], expected.hidden[layer])
    changed = {"changed": expected.hidden[2] + 0.1}
    np.testing.assert_array_equal(
        perturbation(moved, IDS, 1, states.out, changed)["changed"],
        perturbation(plain, IDS, 1, expected.out, changed)["changed"],
    )
