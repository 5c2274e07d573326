"""Hidden states of all layers for packed sequences, by hooks on the blocks themselves."""

from collections import defaultdict
from collections.abc import Callable
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


@dataclass(frozen=True)
class CaptureFacts:
    """What a capture says about the model: ``contract_error`` and ``loss`` of CapturedStates."""

    contract_error: float
    loss: float


@torch.no_grad()
def stream_states(
    model: LanguageModel,
    tokens: Int[np.ndarray, "sequences length"],
    keep: Callable[[str, Float[np.ndarray, "few length width"]], None],
) -> CaptureFacts:
    """Run a model over sequences and hand on the states at every capture point as they come.

    One pass serves all layers, and the states of a few sequences are held at a time.

    Args:
        model: the model.
        tokens: token ids of the sequences.
        keep: called for ``H_0 ... H_L`` and ``out`` of each few sequences, in order, with the
            point's name and float32 states that it must not keep without a copy.

    Raises:
        UsageError: the model fails the logits contract on the first sequence.
        LayergeomError: states that are not finite, with layer and dtype.
    """
    ids = model.on_device(tokens)
    error = contract_error(model, ids[:1])
    loss = 0.0

    def record(layer: int, states: Tensor) -> None:
        keep(f"H_{layer}", _finite(states, f"H_{layer}", model.name))

    for start in track(range(0, len(ids), BATCH), f"Capturing {model.name}"):
        few = ids[start : start + BATCH]
        with hooked(model.blocks, record):
            last = model.body(few, use_cache=False).last_hidden_state
        out = _finite(last, "the final norm", model.name)
        keep("out", out)
        if start == 0:
            loss = _loss(model, few, last)
    return CaptureFacts(error, loss)


def capture(model: LanguageModel, tokens: Int[np.ndarray, "sequences length"]) -> CapturedStates:
    """Run a model over sequences and keep the states at every capture point in memory.

    Raises:
        UsageError: the model fails the logits contract on the first sequence.
        LayergeomError: states that are not finite, with layer and dtype.
    """
    kept: dict[str, list[np.ndarray]] = defaultdict(list)
    facts = stream_states(model, tokens, lambda point, rows: kept[point].append(rows.copy()))
    hidden = [np.concatenate(kept.pop(f"H_{layer}")) for layer in range(model.depth + 1)]
    return CapturedStates(hidden, np.concatenate(kept["out"]), facts.contract_error, facts.loss)


def _loss(
    model: LanguageModel,
    ids: Int[Tensor, "sequences length"],
    out: Float[Tensor, "sequences length width"],
) -> float:
    """Mean cross-entropy, nats a token; a sequence at a time, for logits are large."""
    losses = [
        torch.nn.functional.cross_entropy(
            model.logits(normed[None, :-1])[0].float(), sequence[1:]
        ).cpu()
        for sequence, normed in zip(ids, out, strict=True)
    ]
    return float(torch.stack(losses).double().mean())


def _finite(states: Tensor, where: str, name: str) -> Float[np.ndarray, "..."]:
    check_finite(states, where, name)
    return states.to(torch.float32).cpu().numpy()
