"""Reading and replacing a block's output keeps its type and never splits the batch axis."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from fake_network import PACKINGS, WIDTH, FakeNetwork
from layergeom.errors import LayergeomError
from layergeom.models.blocks import (
    hooked,
    last_output_replaced,
    like_output,
    output_templates,
    outputs_of,
    read_input,
    read_states,
    replaced_forward,
)
from layergeom.models.capture import capture
from layergeom.models.language_model import wrap

STATES = torch.arange(24.0).reshape(2, 3, 4)
OTHER = -STATES

every_packing = pytest.mark.parametrize("packing", PACKINGS)


@every_packing
def test_states_are_read_whole_from_every_type_of_output(packing: str) -> None:
    assert torch.equal(read_states(PACKINGS[packing](STATES)), STATES)


@every_packing
def test_rebuilt_output_keeps_type_and_length_and_holds_the_other_states(packing: str) -> None:
    template = PACKINGS[packing](STATES)
    rebuilt = like_output(template, OTHER)
    assert type(rebuilt) is type(template)
    assert torch.equal(read_states(rebuilt), OTHER)
    if packing != "tensor":
        assert len(rebuilt) == len(template)
        # Attention weights and caches belong to the states that are gone.
        assert rebuilt[1:] == type(template)([None] * (len(template) - 1))


@pytest.mark.parametrize("output", [None, "states", {"hidden": STATES}, (None, STATES)])
def test_output_without_states_is_an_error(output: Any) -> None:
    with pytest.raises(LayergeomError, match="hidden states"):
        read_states(output)


def test_input_is_read_by_position_and_by_name() -> None:
    assert read_input((STATES, 1), {"hidden_states": OTHER}) is STATES
    assert read_input((), {"hidden_states": OTHER}) is OTHER
    with pytest.raises(LayergeomError, match="without hidden states"):
        read_input((), {"mask": OTHER})


def test_replaced_forward_restores_the_modules_own_even_after_an_error() -> None:
    module = nn.Linear(4, 4)
    own = module(STATES)

    def fail_inside() -> None:
        with replaced_forward(module, lambda x: x):
            assert module(STATES) is STATES
            raise KeyError

    with pytest.raises(KeyError):
        fail_inside()
    assert torch.equal(module(STATES), own)
    assert "forward" not in module.__dict__


def test_replaced_forward_restores_a_forward_that_was_replaced_before() -> None:
    module = nn.Linear(4, 4)
    with replaced_forward(module, lambda x: x + 1):
        with replaced_forward(module, lambda x: x):
            assert torch.equal(module(STATES), STATES)
        assert torch.equal(module(STATES), STATES + 1)


def test_hooks_are_gone_even_after_an_error() -> None:
    network = FakeNetwork()
    seen: list[int] = []
    ids = torch.ones((1, 2), dtype=torch.long)

    def fail_inside() -> None:
        with hooked(list(network.model.layers), lambda layer, _: seen.append(layer)):
            network(ids)
            raise KeyError

    with pytest.raises(KeyError):
        fail_inside()
    assert seen == [0, 1, 2, 3]
    network(ids)
    assert seen == [0, 1, 2, 3]


def test_a_block_called_twice_is_refused() -> None:
    network = FakeNetwork(depth=2)
    twice = [network.model.layers[0], network.model.layers[0]]
    network.model.layers = nn.ModuleList(twice)
    with pytest.raises(LayergeomError, match="more or less than once"):
        output_templates(
            [twice[0]], network.model, lambda: network(torch.ones((1, 2), dtype=torch.long))
        )


@every_packing
def test_the_last_position_alone_is_replaced(packing: str) -> None:
    network = FakeNetwork(packing)
    ids = torch.from_numpy(np.random.default_rng(0).integers(0, 20, (2, 5)))
    block, other = network.model.layers[2], torch.ones(2, WIDTH)
    seen: list[torch.Tensor] = []

    def run() -> torch.Tensor:
        handle = block.register_forward_hook(lambda _m, _a, out: seen.append(read_states(out)))
        with torch.no_grad():
            network(ids)
        handle.remove()
        return seen[-1]

    own = run()
    with last_output_replaced(block, other):
        replaced = run()
    assert torch.equal(replaced[:, -1], other)
    assert torch.equal(replaced[:, :-1], own[:, :-1])
    assert torch.equal(run(), own)


@every_packing
def test_outputs_are_collected_in_order_until_the_end_whatever_happens(packing: str) -> None:
    network = FakeNetwork(packing)
    ids = torch.ones((1, 2), dtype=torch.long)
    layers = [network.model.layers[2], network.model.layers[0]]

    def fail_inside() -> None:
        with outputs_of(layers) as outputs:
            network(ids)
            first = outputs[1]
            assert first.shape == outputs[0].shape == (1, 2, WIDTH)
            network(ids + 1)
            assert not torch.equal(outputs[1], first)
            raise KeyError

    with pytest.raises(KeyError):
        fail_inside()
    assert not any(layer._forward_hooks for layer in layers)


@every_packing
def test_a_whole_model_is_captured_and_resumed_whatever_its_blocks_return(packing: str) -> None:
    plain = FakeNetwork("tensor")
    ids = np.random.default_rng(0).integers(0, 20, (2, 5))
    model = wrap("fake", FakeNetwork(packing), None, "no")
    states = capture(model, ids)

    expected = [plain.model.embed(torch.from_numpy(ids))]
    for block in plain.model.layers:
        expected.append(block(expected[-1], torch.ones(())))
    for ours, theirs in zip(states.hidden, expected, strict=True):
        assert ours.shape == (2, 5, WIDTH)
        np.testing.assert_allclose(ours, theirs.detach().numpy(), atol=1e-6)

    with torch.no_grad():
        skipped = plain.model.norm(plain.model.layers[2](expected[1], torch.ones(())))
    resumed = model.resume(torch.from_numpy(ids), 1, torch.from_numpy(states.hidden[1]))
    torch.testing.assert_close(resumed, skipped)
