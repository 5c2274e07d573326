"""The compiled scan against a plain loop and against transformers' own mixer, both ways."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from layergeom.models.mamba_scan import fast_mixers, selective_scan
from properties import deterministic
from reference import scan as reference
from tiny_models import TOKENS, tiny_network

IDS = torch.from_numpy(np.random.default_rng(0).integers(3, TOKENS, (3, 21)))


def arguments(batch: int, length: int, channels: int, state: int, seed: int) -> list[Tensor]:
    rng = np.random.default_rng(seed)
    shapes = [(batch, length, channels)] * 2 + [(channels, state)] + [(batch, length, state)] * 2
    step, inputs, rate, into, out = (rng.normal(size=shape) for shape in shapes)
    arrays = [np.exp(step - 1.0), inputs, -np.exp(rate), into, out]
    return [torch.tensor(array, dtype=torch.float32, requires_grad=True) for array in arrays]


@deterministic
@given(
    batch=st.integers(1, 3),
    length=st.integers(1, 9),
    channels=st.integers(1, 18),
    state=st.integers(1, 17),
    seed=st.integers(0, 1000),
)
def test_scan_equals_the_loop(
    batch: int, length: int, channels: int, state: int, seed: int
) -> None:
    drawn = arguments(batch, length, channels, state, seed)
    expected = reference.scan(*(argument.detach().double().numpy() for argument in drawn))
    np.testing.assert_allclose(selective_scan(*drawn).detach(), expected, rtol=1e-4, atol=1e-5)


def _plain_scan(step: Tensor, inputs: Tensor, A: Tensor, B: Tensor, C: Tensor) -> Tensor:
    h, outputs = torch.zeros(len(step), *A.shape, dtype=step.dtype), []
    for t in range(step.shape[1]):
        driven = (step * inputs)[:, t, :, None] * B[:, t, None]
        h = torch.exp(step[:, t, :, None] * A) * h + driven
        outputs.append((h * C[:, t, None]).sum(-1))
    return torch.stack(outputs, dim=1)


def test_gradients_equal_those_of_the_loop() -> None:
    drawn = arguments(2, 13, 10, 8, seed=0)
    double = [argument.detach().double().requires_grad_() for argument in drawn]
    weights = torch.randn(2, 13, 10, generator=torch.Generator().manual_seed(0))
    found = torch.autograd.grad((selective_scan(*drawn) * weights).sum(), drawn)
    expected = torch.autograd.grad((_plain_scan(*double) * weights).sum(), double)
    for gradient, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(gradient.double(), wanted, rtol=1e-4, atol=1e-5)


def test_inputs_and_gradients_in_any_memory_order_give_the_same() -> None:
    drawn = arguments(2, 7, 6, 4, seed=1)
    turned = [a.detach().transpose(0, 1).contiguous().transpose(0, 1) for a in drawn]
    turned = [a.requires_grad_() for a in turned]
    weights = torch.randn(7, 2, 6, generator=torch.Generator().manual_seed(0)).transpose(0, 1)
    found = torch.autograd.grad((selective_scan(*turned) * weights).sum(), turned)
    expected = torch.autograd.grad((selective_scan(*drawn) * weights).sum(), drawn)
    for gradient, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(gradient, wanted)


@pytest.fixture
def network() -> Any:
    return tiny_network("mamba").train()


def logits_and_gradients(network: Any) -> tuple[Tensor, dict[str, Tensor]]:
    network.zero_grad()
    logits = network(input_ids=IDS, use_cache=False).logits
    torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), IDS[:, 1:].flatten()).backward()
    return logits.detach(), {n: p.grad.clone() for n, p in network.named_parameters()}


def test_network_with_fast_mixers_equals_transformers_own_forward_and_backward(
    network: Any,
) -> None:
    own, own_gradients = logits_and_gradients(network)
    with fast_mixers(network):
        fast, fast_gradients = logits_and_gradients(network)
    torch.testing.assert_close(fast, own, atol=1e-5, rtol=1e-5)
    for name, gradient in own_gradients.items():
        scale = gradient.abs().max()
        torch.testing.assert_close(
            fast_gradients[name] / scale, gradient / scale, atol=1e-5, rtol=0
        )


def test_the_fast_mixers_run_inside_the_block_only(
    network: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    def counted(*arguments: Tensor) -> Tensor:
        calls.append(1)
        return selective_scan(*arguments)

    monkeypatch.setattr("layergeom.models.mamba_scan.selective_scan", counted)
    with fast_mixers(network):
        network(input_ids=IDS, use_cache=False)
    assert len(calls) == network.config.num_hidden_layers
    network(input_ids=IDS, use_cache=False)
    assert len(calls) == network.config.num_hidden_layers
    assert not any("forward" in module.__dict__ for module in network.modules())
