"""One position replaced at a time, the others untouched: mode ``single``.

Nothing before a position depends on it, and nothing behind it matters to its own prediction. So
the tokens before it run once, and each block costs one token through the blocks above it.

Source: Updates (arXiv 2604.02459), section 5.
"""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from layergeom.models.adapters import CACHE_NAMES
from layergeom.models.blocks import last_output_replaced, replaced_output
from layergeom.models.language_model import LanguageModel
from layergeom.models.replacement import kl_divergence

#: Largest relative error of a token's state behind a cached prefix against the whole run's. A
#: cache that restarts or forgets misses it by orders of magnitude.
_SAME_STATE = 1e-3


@dataclass(frozen=True)
class Prefix:
    """The tokens before a position, run once, with what the model keeps of them.

    Attributes:
        model: the model.
        ids: tokens up to and including the position.
        cache: what the model keeps of the tokens before it, by the name it has there.
    """

    model: LanguageModel
    ids: Int[Tensor, "sequences length"]
    cache: dict[str, Any]

    def last_states(self) -> Float[Tensor, "sequences width"]:
        """States after the final norm at the position, nothing replaced."""
        # Each run extends the cache; the next one needs it as it was.
        cache = copy.deepcopy(self.cache)
        last: Tensor = self.model.body(self.ids[:, -1:], use_cache=True, **cache).last_hidden_state
        return last[:, -1]

    def resume(
        self, block: int, states: Float[Tensor, "sequences width"]
    ) -> Float[Tensor, "sequences width"]:
        """States after the final norm at the position when ``block`` puts out ``states`` there."""
        model = self.model
        states = states.to(model.dtype)[:, None]
        with replaced_output(model.blocks, model.block_outputs, block, states):
            return self.last_states()


@dataclass(frozen=True)
class Truncated:
    """The tokens up to a position, run anew for each replacement: for a model without a cache.

    Attributes:
        model: the model.
        ids: tokens up to and including the position.
    """

    model: LanguageModel
    ids: Int[Tensor, "sequences length"]

    def resume(
        self, block: int, states: Float[Tensor, "sequences width"]
    ) -> Float[Tensor, "sequences width"]:
        """States after the final norm at the position when ``block`` puts out ``states`` there."""
        with last_output_replaced(self.model.blocks[block], states.to(self.model.dtype)):
            last: Tensor = self.model.body(self.ids, use_cache=False).last_hidden_state
        return last[:, -1]


@torch.no_grad()
def run_prefix(
    model: LanguageModel,
    ids: Int[Tensor, "sequences length"],
    own: Float[Tensor, "sequences width"],
) -> Prefix | Truncated:
    """The tokens before the last position, run once where the model's cache can be trusted.

    Args:
        model: the model.
        ids: tokens up to and including the position.
        own: the model's own states after the final norm at the position: the token behind its
            cached prefix must reach them.
    """
    if ids.shape[1] == 1:
        return Truncated(model, ids)
    output = model.body(ids[:, :-1], use_cache=True)
    # Some outputs answer to an older name as well: the first is the current one.
    name = next((name for name in CACHE_NAMES if getattr(output, name, None) is not None), None)
    if name is None:
        return Truncated(model, ids)
    prefix = Prefix(model, ids, {name: getattr(output, name)})
    found = prefix.last_states()
    if not (found - own).norm() <= _SAME_STATE * own.norm():
        return Truncated(model, ids)
    return prefix


@torch.no_grad()
def single_perturbation(
    model: LanguageModel,
    tokens: Int[np.ndarray, "sequences length"],
    position: int,
    out: Float[np.ndarray, "sequences width"],
    replacements: Float[np.ndarray, "blocks sequences width"],
) -> Float[np.ndarray, "blocks sequences"]:
    """KL at one position when a block's output is replaced there and nowhere else.

    Args:
        model: the model.
        tokens: token ids of the sequences.
        position: the position, the same in each of them.
        out: the model's own states after the final norm at the position.
        replacements: for each block, its output at the position.

    Returns:
        KL(p || p~) in nats at the position, for each block and sequence.
    """
    ids = model.on_device(tokens[:, : position + 1])
    own = model.on_device(out).to(model.dtype)
    prefix = run_prefix(model, ids, own)
    reference = model.logits(own[:, None])[:, 0].float()
    kl = np.empty(replacements.shape[:2])
    for block, states in enumerate(replacements):
        last = prefix.resume(block, model.on_device(states))
        kl[block] = kl_divergence(reference, model.logits(last[:, None])[:, 0].float()).numpy()
    return kl
