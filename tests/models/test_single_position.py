"""One position replaced, behind a prefix that ran once, against whole runs of the network."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from fake_network import FakeNetwork
from layergeom.models import single_position
from layergeom.models.capture import CapturedStates, capture
from layergeom.models.language_model import LanguageModel, wrap
from layergeom.models.single_position import Prefix, Truncated, run_prefix, single_perturbation
from reference.kl import divergence
from tiny_models import ARCHITECTURES, DEPTH, TOKENS, WIDTH

Tiny = Callable[[str], LanguageModel]

#: Longer than the sliding windows of the tiny Gemmas.
IDS = np.random.default_rng(0).integers(3, TOKENS, (3, 13))

every_architecture = pytest.mark.parametrize("name", ARCHITECTURES)


def replacements(states: CapturedStates, position: int) -> np.ndarray:
    """Another output of each block at the position, about as far off as a residual is."""
    noise = np.random.default_rng(position).normal(size=(DEPTH, len(IDS), WIDTH))
    own = np.stack([hidden[:, position] for hidden in states.hidden[1:]])
    return (own + 0.5 * noise).astype(np.float32)


def plain_kl(model: LanguageModel, block: int, position: int, output: np.ndarray) -> np.ndarray:
    """The whole sequence through the whole network, with one position of one block changed."""
    ids = torch.from_numpy(IDS)

    def change(_module: Any, _arguments: Any, out: Any) -> Any:
        states = (out[0] if isinstance(out, tuple | list) else out).clone()
        states[:, position] = torch.from_numpy(output)
        return type(out)([states, *out[1:]]) if isinstance(out, tuple | list) else states

    with torch.no_grad():
        own = model.network(ids, use_cache=False).logits[:, position].numpy()
        handle = model.blocks[block].register_forward_hook(change)
        changed = model.network(ids, use_cache=False).logits[:, position].numpy()
        handle.remove()
    return np.array([divergence(p, q) for p, q in zip(own, changed, strict=True)])


def assert_plain(model: LanguageModel, positions: tuple[int, ...]) -> None:
    states = capture(model, IDS)
    for position in positions:
        outputs = replacements(states, position)
        found = single_perturbation(model, IDS, position, states.out[:, position], outputs)
        expected = [plain_kl(model, b, position, output) for b, output in enumerate(outputs)]
        np.testing.assert_allclose(found, expected, atol=2e-6, rtol=1e-4)
        assert found.min() > 1e-5


@every_architecture
def test_kl_is_that_of_whole_runs_with_one_position_changed(tiny: Tiny, name: str) -> None:
    assert_plain(tiny(name), (0, 1, 6, 12))


@every_architecture
def test_every_architectures_cache_is_used(tiny: Tiny, name: str) -> None:
    model = tiny(name)
    states = capture(model, IDS)
    for position in (1, 12):
        own = torch.from_numpy(states.out[:, position])
        prefix = run_prefix(model, torch.from_numpy(IDS[:, : position + 1]), own)
        assert isinstance(prefix, Prefix)
        # What a run adds to the cache is gone before the next one.
        for _ in range(2):
            torch.testing.assert_close(prefix.last_states(), own, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", ["llama", "gemma3_text", "mamba"])
def test_without_a_cache_the_sequence_runs_anew_with_the_same_result(
    tiny: Tiny, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(single_position, "CACHE_NAMES", ())
    assert_plain(tiny(name), (1, 7))


@pytest.mark.parametrize("packing", ["tensor", "tuple", "list"])
def test_a_model_that_keeps_nothing_runs_anew(packing: str) -> None:
    model = wrap("fake", FakeNetwork(packing), None, "no")
    states = capture(model, IDS % 20)
    own = torch.from_numpy(states.out[:, 5])
    assert isinstance(run_prefix(model, torch.from_numpy(IDS[:, :6] % 20), own), Truncated)
    outputs = np.stack([hidden[:, 5] for hidden in states.hidden[1:]])
    found = single_perturbation(model, IDS % 20, 5, states.out[:, 5], outputs)
    assert found.max() < 1e-6
    noise = np.random.default_rng(0).normal(size=outputs.shape).astype(np.float32)
    changed = single_perturbation(model, IDS % 20, 5, states.out[:, 5], outputs + noise)
    assert changed.min() > 1e-5


def test_a_cache_that_leads_elsewhere_is_not_trusted(tiny: Tiny) -> None:
    model = tiny("gpt_neox")
    states = capture(model, IDS)
    elsewhere = torch.from_numpy(states.out[:, 6]) * 1.01
    assert isinstance(run_prefix(model, torch.from_numpy(IDS[:, :7]), elsewhere), Truncated)
    broken = torch.full_like(elsewhere, torch.nan)
    assert isinstance(run_prefix(model, torch.from_numpy(IDS[:, :7]), broken), Truncated)


@every_architecture
def test_the_blocks_own_output_changes_nothing(tiny: Tiny, name: str) -> None:
    model = tiny(name)
    states = capture(model, IDS)
    own = np.stack([hidden[:, 9] for hidden in states.hidden[1:]])
    assert single_perturbation(model, IDS, 9, states.out[:, 9], own).max() < 1e-6


def test_the_prefix_runs_once_and_lower_blocks_not_at_all(tiny: Tiny) -> None:
    model = tiny("llama")
    states = capture(model, IDS)
    ran: list[tuple[int, int]] = []

    def note(block: int) -> Callable[..., None]:
        return lambda _module, _arguments, out: ran.append((block, out.shape[1]))

    handles = [b.mlp.register_forward_hook(note(i)) for i, b in enumerate(model.blocks)]
    single_perturbation(model, IDS, 10, states.out[:, 10], replacements(states, 10))
    for handle in handles:
        handle.remove()
    prefix, check = [(b, 10) for b in range(DEPTH)], [(b, 1) for b in range(DEPTH)]
    assert ran == [*prefix, *check, (1, 1), (2, 1), (2, 1)]


@pytest.mark.parametrize("name", ["gpt_neox", "mamba"])
def test_measuring_leaves_the_network_as_it_was(tiny: Tiny, name: str) -> None:
    model, ids = tiny(name), torch.from_numpy(IDS)
    states = capture(model, IDS)
    with torch.no_grad():
        before = model.network(ids, use_cache=False).logits
        single_perturbation(model, IDS, 4, states.out[:, 4], replacements(states, 4))
        assert torch.equal(model.network(ids, use_cache=False).logits, before)
    assert not any("forward" in module.__dict__ for module in model.network.modules())
