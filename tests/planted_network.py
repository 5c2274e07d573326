"""A model in which the residual's direction alone decides the prediction.

Half of the stream holds the token itself, the other half what a block copies from the token
before it; the head reads the second half only. A map of the token alone can turn the first half
as the block does, and knows nothing of the second: the residual is what crosses tokens.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutput

from layergeom.models.capture import capture
from layergeom.models.language_model import wrap
from layergeom.studies import Session, Settings, Sizes
from layergeom.studies.states import States

TOKENS = 10
WIDTH = 2 * TOKENS
LENGTH = 12
SIZES = Sizes(
    sequence_length=LENGTH,
    bank_sequences=60,
    query_sequences=8,
    replaced_sequences=8,
    single_positions=16,
    bootstrap_draws=200,
    neighbours=16,
    rank=2,
    subspace_dim=2,
)


class CopyBlock(nn.Module):
    """Turns the token's own half, and copies the half of the token before it."""

    def forward(self, hidden_states: Tensor) -> Tensor:
        own, crossed = hidden_states[..., :TOKENS], hidden_states[..., TOKENS:]
        before = torch.cat([torch.zeros_like(own[:, :1]), own[:, :-1]], dim=1)
        return torch.cat([own.roll(1, dims=-1), crossed + before / 3.0], dim=-1)


class PassBlock(nn.Module):
    """Does nothing."""

    def forward(self, hidden_states: Tensor) -> Tensor:
        return 1.0 * hidden_states


class PlantedBody(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding.from_pretrained(3.0 * torch.eye(TOKENS, WIDTH))
        self.layers = nn.ModuleList([CopyBlock(), PassBlock()])
        self.norm = nn.Identity()

    def forward(self, input_ids: Tensor, use_cache: bool = False) -> BaseModelOutput:
        states = self.embed(input_ids)
        for block in self.layers:
            states = block(states)
        return BaseModelOutput(last_hidden_state=self.norm(states))


class PlantedNetwork(nn.Module):
    """Named like a Llama."""

    def __init__(self) -> None:
        super().__init__()
        self.model = PlantedBody()
        self.lm_head = nn.Linear(WIDTH, TOKENS, bias=False)
        with torch.no_grad():
            self.lm_head.weight[:, :TOKENS] = 0.0
            self.lm_head.weight[:, TOKENS:] = 6.0 * torch.eye(TOKENS)
        self.config = SimpleNamespace(model_type="llama")

    @property
    def base_model(self) -> nn.Module:
        return self.model

    def get_output_embeddings(self) -> nn.Module:
        return self.lm_head

    def forward(self, input_ids: Tensor, use_cache: bool = False) -> SimpleNamespace:
        states = self.model(input_ids, use_cache=use_cache).last_hidden_state
        return SimpleNamespace(logits=self.lm_head(states))


class _InMemory:
    """States that were captured now, read as a stored result is."""

    def __init__(self, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> None:
        self._arrays, self.facts = arrays, facts
        self.inputs = {
            "planted": 1,
            "skip_positions": SIZES.skip_positions,
            "sequence_length": SIZES.sequence_length,
            "bank_sequences": SIZES.bank_sequences,
        }

    def array(self, name: str) -> np.ndarray:
        return self._arrays[name]


def planted_session() -> Session:
    """A session on the planted model and random tokens."""
    model = wrap("planted", PlantedNetwork(), None, "no")
    count = SIZES.bank_sequences + SIZES.query_sequences
    tokens = np.random.default_rng(0).integers(0, TOKENS, (count, LENGTH))
    captured = capture(model, tokens)
    arrays = {f"H_{i}": hidden for i, hidden in enumerate(captured.hidden)}
    arrays |= {"out": captured.out, "tokens": tokens}
    session = Session(Settings("planted", sizes=SIZES))
    facts = {"depth": 2, "width": WIDTH, "model_type": "llama"}
    session.__dict__ |= {
        "model": model,
        "files": SimpleNamespace(name="planted"),
        "states": States(_InMemory(arrays, facts)),  # type: ignore[arg-type]
    }
    return session
