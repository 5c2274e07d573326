"""What the parts of a block add to the stream adds up to its update."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from layergeom.errors import NotMeasurableError, UsageError
from layergeom.models import adapters
from layergeom.models.language_model import LanguageModel
from layergeom.models.sub_blocks import BATCH, part_names, sub_block_outputs
from tiny_models import ARCHITECTURES, DEPTH, TOKENS, WIDTH

Tiny = Callable[[str], LanguageModel]

IDS = torch.from_numpy(np.random.default_rng(0).integers(3, TOKENS, (2, 9)))

every_architecture = pytest.mark.parametrize("name", ARCHITECTURES)

#: The modules whose outputs are added, said a second time so that a wrong adapter shows.
ADDED: dict[str, Callable[[Any], list[Any]]] = {
    "gpt2": lambda block: [block.attn, block.mlp],
    "gpt_neox": lambda block: [block.attention, block.mlp],
    "mamba": lambda block: [block.mixer],
    **dict.fromkeys(
        ("gemma2", "gemma3_text", "olmo2"),
        lambda block: [block.post_attention_layernorm, block.post_feedforward_layernorm],
    ),
}


@every_architecture
def test_update_is_the_sum_of_what_the_parts_add(tiny: Tiny, name: str) -> None:
    (batch,) = sub_block_outputs(tiny(name), IDS)
    assert len(batch.added) == DEPTH
    for block, parts in enumerate(batch.added):
        update = batch.hidden[block + 1] - batch.hidden[block]
        total = sum(parts.values())
        torch.testing.assert_close(total, update, atol=1e-5, rtol=1e-5)
        for output in parts.values():
            assert output.shape == (*IDS.shape, WIDTH)
            assert output.norm() > 0.01 * update.norm()


@every_architecture
def test_parts_are_those_of_plain_hooks(tiny: Tiny, name: str) -> None:
    model, seen = tiny(name), []

    def keep(_module: Any, _arguments: Any, output: Any) -> None:
        seen.append(output[0] if isinstance(output, tuple) else output)

    parts_of = ADDED.get(name, lambda block: [block.self_attn, block.mlp])
    for block in model.blocks:
        for module in parts_of(block):
            handle = module.register_forward_hook(keep)
            with torch.no_grad():
                model.network(IDS, use_cache=False)
            handle.remove()
    (batch,) = sub_block_outputs(model, IDS)
    ours = [output for parts in batch.added for output in parts.values()]
    assert len(ours) == len(seen)
    for a, b in zip(ours, seen, strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-6)


@every_architecture
def test_only_the_state_space_model_lacks_an_mlp(tiny: Tiny, name: str) -> None:
    state_space = name == "mamba"
    assert part_names(tiny(name)) == (("mixer",) if state_space else ("mixer", "mlp"))
    assert (adapters.adapter_for(name).kind == "state space") == state_space


def test_more_sequences_than_a_batch_come_in_order(tiny: Tiny) -> None:
    model = tiny("gpt_neox")
    ids = torch.from_numpy(np.random.default_rng(1).integers(3, TOKENS, (2 * BATCH + 1, 5)))
    batches = list(sub_block_outputs(model, ids))
    assert [(b.rows.start, b.rows.stop) for b in batches][:2] == [(0, BATCH), (BATCH, 2 * BATCH)]
    last = batches[-1].added[1]["mlp"]
    (alone,) = sub_block_outputs(model, ids[-1:])
    assert last.shape[0] == 1
    torch.testing.assert_close(last, alone.added[1]["mlp"], atol=1e-5, rtol=1e-5)


def test_outputs_that_are_not_what_is_added_are_refused(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    before_the_norm = replace(adapters.ADAPTERS["gemma2"], mixer="self_attn", mlp="mlp")
    monkeypatch.setitem(adapters.ADAPTERS, "gemma2", before_the_norm)
    with pytest.raises(NotMeasurableError, match="block 0 of tiny-gemma2 miss its update by"):
        list(sub_block_outputs(tiny("gemma2"), IDS))


def test_a_part_that_is_not_there_is_named(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = replace(adapters.ADAPTERS["llama"], mixer="attention")
    monkeypatch.setitem(adapters.ADAPTERS, "llama", wrong)
    with pytest.raises(UsageError, match="LlamaDecoderLayer has no part 'attention'"):
        list(sub_block_outputs(tiny("llama"), IDS))


@pytest.mark.parametrize("name", ["llama", "mamba"])
def test_no_hook_is_left(tiny: Tiny, name: str) -> None:
    model = tiny(name)

    def hooks() -> list[int]:  # transformers leaves some of its own behind
        return [len(module._forward_hooks) for module in model.network.modules()]

    before = hooks()
    list(sub_block_outputs(model, IDS))
    assert hooks() == before
