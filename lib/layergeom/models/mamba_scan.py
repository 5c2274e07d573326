"""A fast Mamba mixer for training: the selective scan compiled, forward and backward.

transformers' own runs over the sequence in Python, one small product after the other. This one
walks along the sequence with each channel's state at hand. It takes the place of the mixers' own
forward while a model is trained here, and gives the same numbers to 1e-5.

Source: Gu & Dao, Mamba (arXiv 2312.00752), section 3.2.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numba import njit
from torch import Tensor, nn

from layergeom.models.blocks import replaced_forward


@njit(nogil=True, cache=True, fastmath=True)
def _forward(decay, driven, B, C, states, outputs):  # type: ignore[no-untyped-def]
    """Write ``h_t = decay_t * h_{t-1} + driven_t B_t`` and ``outputs_t = h_t . C_t``.

    One sequence; the innermost loop runs over channels, which are many and beside each other.
    """
    length, size, channels = decay.shape
    before = np.zeros(channels, np.float32)
    for t in range(length):
        x, y = driven[t], outputs[t]
        y[:] = 0.0
        for n in range(size):
            h, a, b, c = states[t, n], decay[t, n], B[t, n], C[t, n]
            if t > 0:
                before = states[t - 1, n]
            for d in range(channels):
                h[d] = a[d] * before[d] + x[d] * b
                y[d] += h[d] * c


@njit(nogil=True, cache=True, fastmath=True)
def _backward(given, to_step, to_driven, to_A, to_B, to_C):  # type: ignore[no-untyped-def]
    """Write the gradients of one sequence, from that of its outputs, the last of ``given``."""
    decay, step, driven, A, B, C, states, to_outputs = given
    length, size, channels = decay.shape
    carried = np.zeros((size, channels), np.float32)
    start = np.zeros(channels, np.float32)
    to_A[:] = 0.0
    for t in range(length - 1, -1, -1):
        dt, x, g, to_dt, to_x = step[t], driven[t], to_outputs[t], to_step[t], to_driven[t]
        to_dt[:] = 0.0
        to_x[:] = 0.0
        for n in range(size):
            h, a, b, c, rates = states[t, n], decay[t, n], B[t, n], C[t, n], A[n]
            before = states[t - 1, n] if t > 0 else start
            to_h, to_rates = carried[n], to_A[n]
            to_b = to_c = np.float32(0.0)
            for d in range(channels):
                here = to_h[d] + g[d] * c
                to_c += g[d] * h[d]
                to_b += here * x[d]
                to_x[d] += here * b
                here *= a[d]
                to_h[d] = here
                here *= before[d]
                to_dt[d] += here * rates[d]
                to_rates[d] += here * dt[d]
            to_B[t, n] = to_b
            to_C[t, n] = to_c


class _Scan(torch.autograd.Function):
    """The scan of a batch of sequences; the state starts at zero."""

    @staticmethod
    def forward(ctx: Any, step: Tensor, driven: Tensor, A: Tensor, B: Tensor, C: Tensor) -> Tensor:
        rates = A.T.contiguous()
        decay = (step[:, :, None] * rates).exp_()
        states, outputs = torch.empty(decay.shape), torch.empty(step.shape)
        for arrays in zip(*_numpy(decay, driven, B, C, states, outputs), strict=True):
            _forward(*arrays)
        ctx.save_for_backward(decay, step, driven, rates, B, C, states)
        return outputs

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        decay, step, driven, rates, B, C, states = ctx.saved_tensors
        shared = rates.expand(len(step), *rates.shape)
        given = _numpy(decay, step, driven, shared, B, C, states, gradients[0])
        shapes = (step.shape, driven.shape, shared.shape, B.shape, C.shape)
        found = [torch.empty(shape) for shape in shapes]
        for arrays in zip(zip(*given, strict=True), *_numpy(*found), strict=True):
            _backward(*arrays)
        to_step, to_driven, to_rates, to_B, to_C = found
        return to_step, to_driven, to_rates.sum(dim=0).T, to_B, to_C


def _numpy(*tensors: Tensor) -> list[np.ndarray]:
    return [tensor.detach().contiguous().numpy() for tensor in tensors]


def selective_scan(
    step: Float[Tensor, "batch length channels"],
    inputs: Float[Tensor, "batch length channels"],
    A: Float[Tensor, "channels state"],
    B: Float[Tensor, "batch length state"],
    C: Float[Tensor, "batch length state"],
) -> Float[Tensor, "batch length channels"]:
    """``h_t = exp(step_t A) h_{t-1} + step_t inputs_t B_t``, ``y_t = h_t C_t``, from ``h = 0``.

    Args:
        step: how far each channel's state moves at each token, positive.
        inputs: what drives each channel.
        A: rate at which each channel's state decays, negative.
        B: how the input enters the state.
        C: how the state is read.

    Returns:
        ``y``, without the skip of the inputs.
    """
    outputs: Tensor = _Scan.apply(step, step * inputs, A, B, C)  # type: ignore[no-untyped-call]
    return outputs


def mixer_forward(
    mixer: Any, hidden_states: Float[Tensor, "batch length width"], **_: Any
) -> Float[Tensor, "batch length width"]:
    """What transformers' ``MambaMixer`` computes for whole sequences without padding or cache."""
    inputs, gate = mixer.in_proj(hidden_states).chunk(2, dim=-1)
    inputs = mixer.act(_causal_convolution(inputs, mixer.conv1d))
    sizes = [mixer.time_step_rank, mixer.ssm_state_size, mixer.ssm_state_size]
    step, B, C = mixer.x_proj(inputs).split(sizes, dim=-1)
    step = nn.functional.softplus(mixer.dt_proj(step))
    outputs = selective_scan(step, inputs, -torch.exp(mixer.A_log), B, C) + inputs * mixer.D
    mixed: Tensor = mixer.out_proj(outputs * mixer.act(gate))
    return mixed


def _causal_convolution(
    inputs: Float[Tensor, "batch length channels"], convolution: nn.Conv1d
) -> Float[Tensor, "batch length channels"]:
    """Each channel's own short filter: a few shifted products beat the general convolution."""
    taps = convolution.weight.shape[-1]
    length = inputs.shape[1]
    padded = nn.functional.pad(inputs, (0, 0, taps - 1, 0))
    total = padded[:, :length] * convolution.weight[:, 0, 0]
    for tap in range(1, taps):
        total = torch.addcmul(total, padded[:, tap : tap + length], convolution.weight[:, 0, tap])
    return total if convolution.bias is None else total + convolution.bias


@contextmanager
def fast_mixers(network: nn.Module) -> Iterator[None]:
    """Let every Mamba mixer of a network run the compiled scan while the block is active."""
    from transformers.models.mamba.modeling_mamba import MambaMixer

    with ExitStack() as stack:
        for module in network.modules():
            if isinstance(module, MambaMixer):
                stack.enter_context(replaced_forward(module, partial(mixer_forward, module)))
        yield
