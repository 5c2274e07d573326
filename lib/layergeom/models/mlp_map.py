"""The ``mlp`` class of tokenwise map: one network per block, shared by all tokens.

``T(x) = x + W_2 gelu(W_1 norm(x))``, trained on the bank with early stopping on held-out bank
sequences (Updates, arXiv 2604.02459, section 3).
"""

import copy
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from layergeom.geometry.local_maps import global_linear_map

EPOCHS = 12
BATCH = 256
LEARNING_RATE = 2e-3
#: A few thousand tokens are few for d^2 weights: without these the held-out error turns early.
WEIGHT_DECAY = 1.0
DROPOUT = 0.2
PATIENCE = 4
#: One bank sequence in so many is held out for early stopping.
HELD_OUT = 8


@dataclass(frozen=True)
class MlpFit:
    """A trained map's predictions and how its training went.

    Attributes:
        predicted: ``T(h)`` of the query tokens.
        curve: relative squared error on the held-out part, by epoch, from epoch 0.
        global_linear: the same of one ridge map for all tokens, fitted on the same part.
    """

    predicted: Float[np.ndarray, "tokens width"]
    curve: list[float]
    global_linear: float

    @property
    def undertrained(self) -> bool:
        """Whether it ends above ``global_linear`` on its held-out part; then it decides nothing."""
        return not min(self.curve) < self.global_linear


class _ResidualMlp(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.into = nn.Linear(width, width)
        self.drop = nn.Dropout(DROPOUT)
        self.out = nn.Linear(width, width)
        nn.init.zeros_(self.out.weight)  # starts as the identity
        nn.init.zeros_(self.out.bias)

    def forward(self, x: Tensor) -> Tensor:
        update: Tensor = self.out(self.drop(nn.functional.gelu(self.into(self.norm(x)))))
        return update


def fit_mlp_map(
    query: Float[np.ndarray, "tokens width"],
    bank_below: Float[np.ndarray, "bank width"],
    bank_above: Float[np.ndarray, "bank width"],
    bank_sequences: Int[np.ndarray, " bank"],
    seed: int,
) -> MlpFit:
    """Train the shared network of one block on the bank and apply it to the query.

    The same seed gives the same network on the same machine.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return _fit(query, bank_below, bank_above, bank_sequences)


def _fit(
    query: Float[np.ndarray, "tokens width"],
    below: Float[np.ndarray, "bank width"],
    above: Float[np.ndarray, "bank width"],
    sequences: Int[np.ndarray, " bank"],
) -> MlpFit:
    held = sequences % HELD_OUT == HELD_OUT - 1
    if not held.any():
        held = sequences == sequences.max()
    x, y = torch.from_numpy(below).float(), torch.from_numpy(above).float()
    # The unit of length is the mean update, so that one learning rate suits every block.
    unit = float((y - x).square().sum(dim=1).mean().sqrt()) or 1.0
    target = (y - x) / unit
    train = torch.from_numpy(np.flatnonzero(~held))
    test = torch.from_numpy(np.flatnonzero(held))
    network = _ResidualMlp(below.shape[1])
    optimiser = torch.optim.AdamW(
        network.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY, fused=True
    )
    steps = EPOCHS * -(-len(train) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, LEARNING_RATE, total_steps=steps, pct_start=0.15
    )
    scale = float(target[test].square().sum()) or 1.0

    @torch.no_grad()
    def held_out_error() -> float:
        return float((network(x[test]) - target[test]).square().sum()) / scale

    network.eval()
    curve = [held_out_error()]
    best, best_state = curve[0], copy.deepcopy(network.state_dict())
    for _ in range(EPOCHS):
        network.train()
        for rows in train[torch.randperm(len(train))].split(BATCH):
            loss = (network(x[rows]) - target[rows]).square().sum(dim=1).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
        network.eval()
        curve.append(held_out_error())
        if curve[-1] < best:
            best, best_state = curve[-1], copy.deepcopy(network.state_dict())
        elif len(curve) - 1 - int(np.argmin(curve)) >= PATIENCE:
            break
    network.load_state_dict(best_state)
    linear = global_linear_map(below[held], below[~held], above[~held])
    linear_error = float(np.square(above[held] - linear).sum()) / unit**2 / scale
    with torch.no_grad():
        h = torch.from_numpy(query).float()
        predicted = (h + unit * network(h)).numpy()
    return MlpFit(predicted, curve, linear_error)
