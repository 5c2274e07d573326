"""Multinomial logistic regression by a general minimiser."""

import numpy as np
from scipy.optimize import minimize


def fit_and_score(
    train: np.ndarray, train_labels: np.ndarray, test: np.ndarray, test_labels: np.ndarray
) -> float:
    """Accuracy on the test rows, with the training rows' mean and standard deviation."""
    mean, spread = train.mean(axis=0), train.std(axis=0)
    x, held_out = (train - mean) / spread, (test - mean) / spread
    classes = sorted(set(train_labels.tolist()))
    wanted = np.array([[label == c for c in classes] for label in train_labels.tolist()], float)

    def unpack(flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        matrix = flat.reshape(x.shape[1] + 1, len(classes))
        return matrix[:-1], matrix[-1]

    def loss(flat: np.ndarray) -> float:
        weights, intercept = unpack(flat)
        logits = x @ weights + intercept
        top = logits.max(axis=1, keepdims=True)
        log_p = logits - top - np.log(np.exp(logits - top).sum(axis=1, keepdims=True))
        return float(-np.sum(wanted * log_p) + 0.5 * np.sum(weights**2))

    start = np.zeros((x.shape[1] + 1) * len(classes))
    weights, intercept = unpack(minimize(loss, start, method="BFGS", options={"gtol": 1e-4}).x)
    chosen = np.argmax(held_out @ weights + intercept, axis=1)
    return float(np.mean([classes[i] == c for i, c in zip(chosen, test_labels, strict=True)]))
