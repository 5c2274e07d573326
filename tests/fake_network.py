"""A causal language model that is a few lines, so that a test decides what its blocks return."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutput

WIDTH = 8
ROWS = 20

#: What a block may return, by name: how its states are packed.
PACKINGS: dict[str, Callable[[Tensor], Any]] = {
    "tensor": lambda states: states,
    "tuple": lambda states: (states, torch.ones(1), None),
    "list": lambda states: [states, None],
}


class FakeBlock(nn.Module):
    def __init__(self, packing: str) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.pack = PACKINGS[packing]

    def forward(self, hidden_states: Tensor, mask: Tensor) -> Any:
        positions = torch.arange(1, hidden_states.shape[1] + 1)[:, None]
        mixed = hidden_states.cumsum(dim=1) / positions
        return self.pack(hidden_states + torch.tanh(self.linear(mixed)) * mask)


class FakeBody(nn.Module):
    def __init__(self, packing: str, depth: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(ROWS, WIDTH)
        self.layers = nn.ModuleList(FakeBlock(packing) for _ in range(depth))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, input_ids: Tensor, use_cache: bool = False) -> BaseModelOutput:
        states = self.embed(input_ids)
        for block in self.layers:
            output = block(hidden_states=states, mask=torch.ones(()))
            states = output[0] if isinstance(output, tuple | list) else output
        return BaseModelOutput(last_hidden_state=self.norm(states))


class FakeNetwork(nn.Module):
    """Named like a Llama, with random gains and biases."""

    def __init__(self, packing: str = "tensor", depth: int = 3, seed: int = 0) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.model = FakeBody(packing, depth)
            self.lm_head = nn.Linear(WIDTH, ROWS, bias=False)
            nn.init.normal_(self.model.norm.weight)
            nn.init.normal_(self.model.norm.bias)
        self.config = SimpleNamespace(model_type="llama")

    @property
    def base_model(self) -> nn.Module:
        return self.model

    def get_output_embeddings(self) -> nn.Module:
        return self.lm_head

    def forward(self, input_ids: Tensor, use_cache: bool = False) -> SimpleNamespace:
        states = self.model(input_ids, use_cache=use_cache).last_hidden_state
        return SimpleNamespace(logits=self.lm_head(states))
