"""One vector a text at every capture point: the mean over its tokens, and its last token."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from layergeom.models.blocks import check_finite, hooked
from layergeom.models.language_model import LanguageModel, contract_error
from layergeom.progress import track

#: Tokens a forward pass; more gain nothing on a CPU and cost memory.
BATCH_TOKENS = 1024


@dataclass(frozen=True)
class PooledStates:
    """One vector a text at every capture point, float32.

    Attributes:
        points: names of the capture points, ``H_0`` to ``H_L`` and ``out``.
        mean: mean over the text's tokens, the skipped positions left out.
        last: state of the last token.
    """

    points: tuple[str, ...]
    mean: Float[np.ndarray, "points texts width"]
    last: Float[np.ndarray, "points texts width"]


@torch.no_grad()
def pooled_states(
    model: LanguageModel, sequences: Sequence[Sequence[int]], skip: int
) -> PooledStates:
    """Run a model over texts and pool the states of each.

    Texts of equal length run together, so that none is padded.

    Args:
        model: the model.
        sequences: token ids of each text, a BOS included where the model has one; each longer
            than ``skip``.
        skip: first positions that the mean leaves out.

    Raises:
        UsageError: the model fails the logits contract on the first text.
        LayergeomError: states that are not finite, with layer and dtype.
    """
    contract_error(model, torch.tensor([list(sequences[0])], device=model.device))
    points = (*(f"H_{layer}" for layer in range(model.depth + 1)), "out")
    shape = (len(points), len(sequences), model.width)
    mean, last = np.empty(shape, dtype=np.float32), np.empty(shape, dtype=np.float32)
    batches = list(_equal_lengths(sequences))
    for rows in track(batches, f"Reading texts with {model.name}"):
        ids = torch.tensor([list(sequences[row]) for row in rows], device=model.device)

        def record(point: int, states: Tensor, rows: list[int] = rows) -> None:
            check_finite(states, points[point], model.name)
            mean[point, rows] = states[:, skip:].cpu().double().mean(dim=1).float().numpy()
            last[point, rows] = states[:, -1].float().cpu().numpy()

        with hooked(model.blocks, record):
            record(len(points) - 1, model.body(ids, use_cache=False).last_hidden_state)
    return PooledStates(points, mean, last)


def _equal_lengths(sequences: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Indices of texts of equal length, in batches."""
    lengths = np.array([len(sequence) for sequence in sequences])
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        size = max(1, BATCH_TOKENS // int(length))
        for start in range(0, len(rows), size):
            yield [int(row) for row in rows[start : start + size]]
