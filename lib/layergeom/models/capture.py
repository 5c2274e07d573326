"""Hidden states of all layers for packed sequences, by hooks on the blocks themselves."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from layergeom.models.blocks import check_finite, hooked
from layergeom.models.language_model import LanguageModel, contract_error
from layergeom.progress import track

#: Sequences a forward pass; more gain nothing on a CPU and cost memory.
BATCH = 8


@dataclass(frozen=True)
class CapturedStates:
    """Hidden states at every capture point, float32.

    Attributes:
        hidden: ``H_0 ... H_L``; ``H_0`` is the input of block 0, ``H_l`` the output of block
            l - 1, and ``H_L`` is before the final norm.
        out: ``final_norm(H_L)``.
        contract_error: relative error of the logits contract.
        loss: mean cross-entropy of the model's own next-token prediction over the first
            sequences, nats a token.
    """

    hidden: list[Float[np.ndarray, "sequences length width"]]
    out: Float[np.ndarray, "sequences length width"]
    contract_error: float
    loss: float


@torch.no_grad()
def capture(model: LanguageModel, tokens: Int[np.ndarray, "sequences length"]) -> CapturedStates:
    """Run a model over sequences and keep the states at every capture point.

    Raises:
        UsageError: the model fails the logits contract on the first sequence.
        LayergeomError: states that are not finite, with layer and dtype.
    """
    ids = torch.from_numpy(tokens)
    error = contract_error(model, ids[:1])
    shape = (*tokens.shape, model.width)
    hidden = [np.empty(shape, dtype=np.float32) for _ in range(model.depth + 1)]
    out = np.empty(shape, dtype=np.float32)
    for start in track(range(0, len(ids), BATCH), f"Capturing {model.name}"):
        rows = slice(start, start + BATCH)

        def record(layer: int, states: Tensor, rows: slice = rows) -> None:
            hidden[layer][rows] = _finite(states, f"H_{layer}", model.name)

        with hooked(model.blocks, record):
            last = model.body(ids[rows], use_cache=False).last_hidden_state
        out[rows] = _finite(last, "the final norm", model.name)
    return CapturedStates(hidden, out, error, _loss(model, ids[:BATCH], out[:BATCH]))


def _loss(
    model: LanguageModel,
    ids: Int[Tensor, "sequences length"],
    out: Float[np.ndarray, "sequences length width"],
) -> float:
    """Mean cross-entropy, nats a token; a sequence at a time, for logits are large."""
    losses = [
        torch.nn.functional.cross_entropy(
            model.logits(torch.from_numpy(normed[None, :-1]))[0].float(), sequence[1:]
        )
        for sequence, normed in zip(ids, out, strict=True)
    ]
    return float(torch.stack(losses).double().mean())


def _finite(states: Tensor, where: str, name: str) -> Float[np.ndarray, "..."]:
    check_finite(states, where, name)
    return states.to(torch.float32).cpu().numpy()
