"""The logit lens: what each layer would predict if the model ended there.

Source: Readout (arXiv 2605.17084), section 4; nostalgebraist (2020), "interpreting GPT".
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from layergeom.models.language_model import LanguageModel
from layergeom.models.replacement import CHUNK

#: Rows of logits worked on at a time: a few megabytes, so that the passes stay in cache.
_ROWS = 16


@dataclass(frozen=True)
class LensReading:
    """The lens at every layer and token, against the model's final prediction.

    Attributes:
        kl: KL(final || lens) in nats.
        agreement: whether both put the same token first.
    """

    kl: Float[np.ndarray, "layers sequences length"]
    agreement: Bool[np.ndarray, "layers sequences length"]


class _Final:
    """The final prediction of some tokens, made ready once to be compared with every layer's."""

    def __init__(self, logits: Float[Tensor, "tokens vocabulary"]) -> None:
        """Keep the logits less their maximum and their exponentials, by rows."""
        top, self.first = logits.max(dim=-1, keepdim=True)
        self.centred = (logits - top).split(_ROWS)
        self.weights = [rows.exp() for rows in self.centred]
        self.mass = [rows.sum(dim=-1).double() for rows in self.weights]

    def compared_with(
        self, logits: Float[Tensor, "tokens vocabulary"]
    ) -> tuple[Float[Tensor, " tokens"], Bool[Tensor, " tokens"]]:
        """KL(final || other) in nats as ``kl_divergence`` has it, and whether the first agree."""
        pieces, firsts = [], []
        for rows, centred, weights, mass in zip(
            logits.split(_ROWS), self.centred, self.weights, self.mass, strict=True
        ):
            top, first = rows.max(dim=-1, keepdim=True)
            other = rows - top
            expected = (centred - other).mul_(weights).sum(dim=-1).double() / mass
            other_mass = other.exp_().sum(dim=-1).double()
            pieces.append((expected + (other_mass / mass).log()).clamp_(min=0.0))
            firsts.append(first)
        return torch.cat(pieces), (torch.cat(firsts) == self.first).squeeze(-1)


@torch.no_grad()
def logit_lens(
    model: LanguageModel,
    hidden: Sequence[Float[np.ndarray, "sequences length width"]],
    out: Float[np.ndarray, "sequences length width"],
) -> LensReading:
    """Read each layer's states through the model's own norm and head.

    The norm is computed anew at each layer: the last layer's scale would not fit the others. The
    final logits are computed once for all layers, and logits are held for a few tokens at a time.

    Args:
        model: the model.
        hidden: states by layer, before the final norm.
        out: the model's own states after the final norm, of the same tokens.
    """
    layers = [_flat(states) for states in hidden]
    final = _flat(out)
    kl = np.empty((len(layers), len(final)))
    agreement = np.empty((len(layers), len(final)), dtype=np.bool_)
    for start in range(0, len(final), CHUNK):
        rows = slice(start, start + CHUNK)
        own = _Final(model.logits(final[None, rows])[0].float())
        for layer, states in enumerate(layers):
            normed = model.final_norm(states[None, rows].to(model.dtype))
            found, agrees = own.compared_with(model.logits(normed)[0].float())
            kl[layer, rows] = found.numpy()
            agreement[layer, rows] = agrees.numpy()
    shape = (len(layers), *out.shape[:2])
    return LensReading(kl.reshape(shape), agreement.reshape(shape))


def _flat(states: Float[np.ndarray, "sequences length width"]) -> Float[Tensor, "tokens width"]:
    return torch.from_numpy(np.ascontiguousarray(states)).flatten(0, 1)
