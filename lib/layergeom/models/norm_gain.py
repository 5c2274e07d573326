"""The gain of a model's final norm, as the norm applies it."""

import numpy as np
import torch
from jaxtyping import Float

from layergeom.models.language_model import LanguageModel


@torch.no_grad()
def final_norm_gain(model: LanguageModel) -> Float[np.ndarray, " width"]:
    """What the final norm multiplies each coordinate by, float64.

    Measured on the norm itself, for architectures keep the gain in different forms: Gemma's is
    one more than its weight, and a norm may have no weight at all. A vector whose mean is zero is
    scaled alike by RMSNorm and LayerNorm, and the difference of the norm at it and at its
    opposite is free of a bias.
    """
    width = model.width
    probe = torch.ones(1, 1, width, device=model.device)
    probe[..., -1] = 1.0 - width
    unit = probe / (width - 1.0) ** 0.5
    pair = [model.final_norm((sign * probe).to(model.dtype)) for sign in (1.0, -1.0)]
    up, down, along = (t.cpu().double().flatten().numpy() for t in (*pair, unit))
    gain: Float[np.ndarray, " width"] = (up - down) / 2.0 / along
    return gain
