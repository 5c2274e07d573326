"""Each architecture's adapter against hooks and loops that know nothing of the adapters."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from layergeom.models.adapters import ADAPTERS
from layergeom.models.capture import CapturedStates, capture
from layergeom.models.language_model import CONTRACT, LanguageModel, contract_error
from layergeom.models.replacement import perturbation
from reference.kl import divergence
from tiny_models import ARCHITECTURES, DEPTH, TOKENS, WIDTH

Tiny = Callable[[str], LanguageModel]

IDS = np.random.default_rng(0).integers(3, TOKENS, (2, 11))

#: Where the blocks are, said a second time so that a wrong adapter shows.
BLOCKS: dict[str, Callable[[Any], Any]] = {
    "gpt2": lambda network: network.transformer.h,
    "gpt_neox": lambda network: network.gpt_neox.layers,
    "mamba": lambda network: network.backbone.layers,
}

every_architecture = pytest.mark.parametrize("name", ARCHITECTURES)


def blocks_of(network: Any, name: str) -> Any:
    return BLOCKS.get(name, lambda n: n.model.layers)(network)


def logits_of(network: Any) -> torch.Tensor:
    with torch.no_grad():
        return network(torch.from_numpy(IDS), use_cache=False).logits


def plain_kl(logits: torch.Tensor, other: torch.Tensor) -> np.ndarray:
    pairs = zip(logits.flatten(0, 1).numpy(), other.flatten(0, 1).numpy(), strict=True)
    return np.array([divergence(p, q) for p, q in pairs]).reshape(logits.shape[:2])


def without_block(network: Any, name: str, block: int) -> Any:
    """A copy of the network that lacks one block."""
    shorter = copy.deepcopy(network)
    del blocks_of(shorter, name)[block]
    if "layer_types" in vars(shorter.config):  # else it is derived from the depth
        del shorter.config.layer_types[block]
    shorter.config.num_hidden_layers = DEPTH - 1
    return shorter


def captured(tiny: Tiny, name: str) -> CapturedStates:
    return capture(tiny(name), IDS)


def test_every_adapter_has_a_tiny_model() -> None:
    assert set(ADAPTERS) == set(ARCHITECTURES)


@every_architecture
def test_test_models_have_no_plain_gain_of_one(tiny: Tiny, name: str) -> None:
    for parameter in tiny(name).network.parameters():
        assert parameter.std() > 0.05


@every_architecture
def test_contract_holds(tiny: Tiny, name: str) -> None:
    assert contract_error(tiny(name), torch.from_numpy(IDS)) < CONTRACT
    assert captured(tiny, name).contract_error < CONTRACT


@every_architecture
def test_capture_equals_plain_hooks(tiny: Tiny, name: str) -> None:
    seen: list[np.ndarray] = []

    def keep(states: Any) -> None:
        seen.append((states[0] if isinstance(states, tuple) else states).numpy().copy())

    network = tiny(name).network
    blocks = blocks_of(network, name)
    handles = [
        blocks[0].register_forward_pre_hook(
            lambda _m, a, k: keep(a[0] if a else k["hidden_states"]), with_kwargs=True
        )
    ]
    handles += [block.register_forward_hook(lambda _m, _a, out: keep(out)) for block in blocks]
    logits_of(network)
    for handle in handles:
        handle.remove()

    states = captured(tiny, name)
    assert len(states.hidden) == DEPTH + 1
    for ours, plain in zip(states.hidden, seen, strict=True):
        assert ours.shape == (*IDS.shape, WIDTH)
        np.testing.assert_allclose(ours, plain, atol=1e-6)


@every_architecture
def test_output_hidden_states_end_after_the_norm_and_mamba_lists_are_shifted(
    tiny: Tiny, name: str
) -> None:
    network = tiny(name).network
    with torch.no_grad():
        listed = network(
            torch.from_numpy(IDS), output_hidden_states=True, use_cache=False
        ).hidden_states
    states = captured(tiny, name)
    expected = states.hidden[1:] if name == "mamba" else states.hidden[:-1]
    for ours, theirs in zip([*expected, states.out], listed, strict=True):
        np.testing.assert_allclose(ours, theirs.numpy(), atol=1e-5)


@every_architecture
def test_last_state_is_before_the_final_norm(tiny: Tiny, name: str) -> None:
    states = captured(tiny, name)
    with torch.no_grad():
        normed = tiny(name).final_norm(torch.from_numpy(states.hidden[-1])).numpy()
    np.testing.assert_allclose(normed, states.out, atol=1e-5)
    assert np.abs(states.hidden[-1] - states.out).max() > 0.1


@every_architecture
def test_loss_is_the_networks_own_on_the_same_text(tiny: Tiny, name: str) -> None:
    ids = torch.from_numpy(IDS)
    with torch.no_grad():
        own = tiny(name).network(ids, labels=ids, use_cache=False).loss
    assert captured(tiny, name).loss == pytest.approx(own.item(), rel=1e-5)


@every_architecture
def test_sequences_do_not_mix_whatever_the_batch(tiny: Tiny, name: str) -> None:
    together = captured(tiny, name)
    for row in range(len(IDS)):
        alone = capture(tiny(name), IDS[row : row + 1])
        for a, b in zip(alone.hidden, together.hidden, strict=True):
            np.testing.assert_allclose(a[0], b[row], atol=1e-5)


def test_capture_of_more_sequences_than_a_batch_equals_captures_one_by_one(tiny: Tiny) -> None:
    ids = np.random.default_rng(1).integers(3, TOKENS, (19, 5))
    together = capture(tiny("gpt_neox"), ids)
    for row in (0, 8, 18):
        alone = capture(tiny("gpt_neox"), ids[row : row + 1])
        np.testing.assert_allclose(alone.hidden[-1][0], together.hidden[-1][row], atol=1e-5)
        np.testing.assert_allclose(alone.out[0], together.out[row], atol=1e-5)


@every_architecture
def test_identity_at_every_position_equals_removing_the_block(tiny: Tiny, name: str) -> None:
    model, states = tiny(name), captured(tiny, name)
    ids, own = torch.from_numpy(IDS), logits_of(model.network)
    for block in range(DEPTH):
        skipped = logits_of(without_block(model.network, name, block))
        resumed = model.logits(model.resume(ids, block, torch.from_numpy(states.hidden[block])))
        torch.testing.assert_close(resumed, skipped, atol=1e-5, rtol=1e-5)

        kl = perturbation(model, IDS, block, states.out, {"identity": states.hidden[block]})
        np.testing.assert_allclose(kl["identity"], plain_kl(own, skipped), atol=1e-6)
        assert kl["identity"].max() > 1e-3


@every_architecture
def test_the_blocks_own_output_changes_nothing(tiny: Tiny, name: str) -> None:
    model, states = tiny(name), captured(tiny, name)
    own = logits_of(model.network)
    for block in range(DEPTH):
        output = states.hidden[block + 1]
        last = model.resume(torch.from_numpy(IDS), block, torch.from_numpy(output))
        torch.testing.assert_close(model.logits(last), own, atol=1e-5, rtol=1e-5)
        kl = perturbation(model, IDS, block, states.out, {"own": output})["own"]
        assert kl.shape == IDS.shape
        assert kl.max() < 1e-6


@every_architecture
def test_resume_equals_the_networks_own_run_with_one_output_replaced(tiny: Tiny, name: str) -> None:
    model = tiny(name)
    other = torch.randn((*IDS.shape, WIDTH), generator=torch.Generator().manual_seed(0))
    for block in range(DEPTH):
        handle = blocks_of(model.network, name)[block].register_forward_hook(
            lambda _m, _a, out: (other, *out[1:]) if isinstance(out, tuple) else other
        )
        expected = logits_of(model.network)
        handle.remove()
        resumed = model.logits(model.resume(torch.from_numpy(IDS), block, other))
        torch.testing.assert_close(resumed, expected, atol=1e-5, rtol=1e-5)


@every_architecture
def test_resume_recomputes_nothing_below_the_block(tiny: Tiny, name: str) -> None:
    model, ran = tiny(name), set[int]()

    def note(block: int) -> Callable[..., None]:
        return lambda *_: ran.add(block)

    handles = [
        part.register_forward_hook(note(i))
        for i, block in enumerate(model.blocks)
        for part in block.children()
    ]
    model.resume(torch.from_numpy(IDS), 1, torch.zeros((*IDS.shape, WIDTH)))
    for handle in handles:
        handle.remove()
    assert ran == {2}


@every_architecture
def test_measuring_leaves_the_network_as_it_was(tiny: Tiny, name: str) -> None:
    model = tiny(name)
    before = logits_of(model.network)
    hooks = [len(module._forward_hooks) for module in model.network.modules()]
    states = captured(tiny, name)
    perturbation(model, IDS, 1, states.out, {"identity": states.hidden[1]})
    assert torch.equal(logits_of(model.network), before)
    assert not any("forward" in module.__dict__ for module in model.network.modules())
    assert [len(module._forward_hooks) for module in model.network.modules()] == hooks
