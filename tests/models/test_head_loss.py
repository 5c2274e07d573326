"""The chunked loss equals that of all logits at once, in value and in both gradients."""

import pytest
import torch
from torch import Tensor

from layergeom.models.head_loss import head_loss

WIDTH, VOCABULARY = 12, 40


def drawn(tokens: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(tokens)
    states = 3.0 * torch.randn(tokens, WIDTH, dtype=dtype, generator=random)
    unembedding = torch.randn(VOCABULARY, WIDTH, dtype=dtype, generator=random)
    targets = torch.randint(VOCABULARY, (tokens,), generator=random)
    return states.requires_grad_(), unembedding.requires_grad_(), targets


@pytest.mark.parametrize("tokens", [1, 127, 128, 300])
def test_equals_plain_cross_entropy(tokens: int) -> None:
    states, unembedding, targets = drawn(tokens)
    ours = head_loss(states, unembedding, targets)
    plain = torch.nn.functional.cross_entropy(states @ unembedding.T, targets)
    torch.testing.assert_close(ours, plain)
    found = torch.autograd.grad(5.0 * ours, (states, unembedding))
    expected = torch.autograd.grad(5.0 * plain, (states, unembedding))
    for gradient, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(gradient, wanted)


def test_large_logits_do_not_overflow() -> None:
    states, unembedding, targets = drawn(20, torch.float32)
    loss = head_loss(1000.0 * states, unembedding, targets)
    plain = torch.nn.functional.cross_entropy(1000.0 * states @ unembedding.T, targets)
    torch.testing.assert_close(loss, plain)


def test_works_without_gradients() -> None:
    states, unembedding, targets = drawn(50)
    with torch.no_grad():
        found = head_loss(states, unembedding, targets)
    assert not found.requires_grad
    torch.testing.assert_close(found, head_loss(states, unembedding, targets).detach())
