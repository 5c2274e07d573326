"""The selective scan of Mamba, token by token in float64."""

import numpy as np


def scan(
    step: np.ndarray, inputs: np.ndarray, A: np.ndarray, B: np.ndarray, C: np.ndarray
) -> np.ndarray:
    """``h_t = exp(step_t A) h_{t-1} + step_t inputs_t B_t`` and ``y_t = h_t C_t``."""
    outputs = np.zeros(inputs.shape)
    for b in range(len(inputs)):
        for d in range(inputs.shape[2]):
            h = np.zeros(A.shape[1])
            for t in range(inputs.shape[1]):
                h = np.exp(step[b, t, d] * A[d]) * h + step[b, t, d] * inputs[b, t, d] * B[b, t]
                outputs[b, t, d] = h @ C[b, t]
    return outputs
