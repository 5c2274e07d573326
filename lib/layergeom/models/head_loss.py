"""Cross-entropy through an unembedding without holding all logits at once.

A step on 2,048 tokens with 2,048 logits each moves 16 MB through memory half a dozen times. Here a
few tokens' logits are made, used for the loss and both gradients, and overwritten while they are
still in the processor's cache.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

#: Tokens whose logits are held at once.
_CHUNK = 128


class _HeadLoss(torch.autograd.Function):
    """Gradients are found beside the loss, and only scaled on the way back."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, unembedding: Tensor, targets: Tensor) -> Tensor:
        states_grad, unembedding_grad = torch.empty_like(states), torch.zeros_like(unembedding)
        total = states.new_zeros((), dtype=torch.float64)
        for start in range(0, len(states), _CHUNK):
            rows = slice(start, start + _CHUNK)
            inputs, wanted = states[rows], targets[rows, None]
            logits = inputs @ unembedding.T
            normaliser = logits.logsumexp(dim=-1, keepdim=True)
            total += (normaliser - logits.gather(1, wanted)).sum()
            surplus = logits.sub_(normaliser).exp_()
            surplus.scatter_add_(1, wanted, surplus.new_full(wanted.shape, -1.0))
            torch.mm(surplus, unembedding, out=states_grad[rows])
            unembedding_grad.addmm_(surplus.T, inputs)
        ctx.save_for_backward(states_grad, unembedding_grad)
        return (total / len(states)).to(states.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        states_grad, unembedding_grad = ctx.saved_tensors
        scale = gradients[0] / len(states_grad)
        return states_grad * scale, unembedding_grad * scale, None


def head_loss(
    states: Float[Tensor, "tokens width"],
    unembedding: Float[Tensor, "vocabulary width"],
    targets: Int[Tensor, " tokens"],
) -> Float[Tensor, ""]:
    """Mean cross-entropy of the targets, nats a token, as ``F.cross_entropy`` of the logits.

    Args:
        states: hidden states after the final norm.
        unembedding: weight of the head.
        targets: the token that follows each state.
    """
    loss: Tensor = _HeadLoss.apply(states, unembedding, targets)  # type: ignore[no-untyped-call]
    return loss
