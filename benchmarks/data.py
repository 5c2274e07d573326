"""Made-up layers: a spectrum that falls like a trained layer's, and a common offset."""

import numpy as np


def layer(rng: np.random.Generator, tokens: int, width: int) -> np.ndarray:
    """States of one layer, float32."""
    scale = np.arange(1, width + 1) ** -0.7
    return (rng.standard_normal((tokens, width)) * scale + scale).astype(np.float32)
