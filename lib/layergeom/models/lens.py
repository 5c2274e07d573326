"""The logit lens: what each layer would predict if the model ended there.

Source: Readout (arXiv 2605.17084), section 4; nostalgebraist (2020), "interpreting GPT".
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float

from layergeom.models.language_model import LanguageModel
from layergeom.models.replacement import Prediction


@dataclass(frozen=True)
class LensReading:
    """The lens at every layer and token, against the model's final prediction.

    Attributes:
        kl: KL(final || lens) in nats.
        agreement: whether both put the same token first.
    """

    kl: Float[np.ndarray, "layers sequences length"]
    agreement: Bool[np.ndarray, "layers sequences length"]


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
    layers = [model.on_device(states).flatten(0, 1) for states in hidden]
    final = model.on_device(out).flatten(0, 1)
    kl = np.empty((len(layers), len(final)))
    agreement = np.empty((len(layers), len(final)), dtype=np.bool_)
    for rows in model.rows_of_logits(len(final)):
        logits = model.logits(final[None, rows])[0].float()
        own, first = Prediction(logits), logits.argmax(dim=-1)
        for layer, states in enumerate(layers):
            normed = model.final_norm(states[None, rows].to(model.dtype))
            read = model.logits(normed)[0].float()
            kl[layer, rows] = own.divergence_to(read).numpy()
            agreement[layer, rows] = (read.argmax(dim=-1) == first).cpu().numpy()
    shape = (len(layers), *out.shape[:2])
    return LensReading(kl.reshape(shape), agreement.reshape(shape))
