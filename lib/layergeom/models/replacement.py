"""What a block's error does to the output: replace its output and measure KL(p || p~).

Source: Updates (arXiv 2604.02459), section 5.
"""

from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from layergeom.models.language_model import LanguageModel

#: Rows of logits worked on at a time: a few megabytes, so that the passes stay in cache. Whole
#: chunks took twice as long.
_ROWS = 16


def _centred(
    logits: Float[Tensor, "tokens vocabulary"],
) -> tuple[Float[Tensor, "tokens vocabulary"], Float[Tensor, "tokens vocabulary"]]:
    """Logits less their maximum, and their exponentials."""
    centred = logits - logits.amax(dim=-1, keepdim=True)
    return centred, centred.exp()


class Prediction:
    """A model's prediction at some tokens, made ready once to be compared with others."""

    def __init__(self, logits: Float[Tensor, "tokens vocabulary"]) -> None:
        """Keep centred logits and their exponentials, by rows."""
        self._rows = []
        for rows in logits.split(_ROWS):
            centred, weights = _centred(rows)
            self._rows.append((centred, weights, weights.sum(dim=-1).double()))

    def divergence_to(self, logits: Float[Tensor, "tokens vocabulary"]) -> Float[Tensor, " tokens"]:
        """KL(p || q) in nats at each token, ``q`` from ``logits``.

        From differences of centred logits, with the normalisers in float64: the divergence of
        two close distributions is a small difference of large numbers.
        """
        pieces = []
        for rows, (centred, weights, mass) in zip(logits.split(_ROWS), self._rows, strict=True):
            other_centred, other_weights = _centred(rows)
            other_mass = other_weights.sum(dim=-1).double()
            expected = (centred - other_centred).mul_(weights).sum(dim=-1).double() / mass
            pieces.append((expected + (other_mass / mass).log()).clamp_(min=0.0))
        return torch.cat(pieces)


def kl_divergence(
    logits: Float[Tensor, "tokens vocabulary"], other: Float[Tensor, "tokens vocabulary"]
) -> Float[Tensor, " tokens"]:
    """KL(p || q) in nats at each token, ``p`` from ``logits`` and ``q`` from ``other``."""
    return Prediction(logits).divergence_to(other)


@torch.no_grad()
def perturbation(
    model: LanguageModel,
    tokens: Int[np.ndarray, "sequences length"],
    block: int,
    out: Float[np.ndarray, "sequences length width"],
    replacements: Mapping[str, Float[np.ndarray, "sequences length width"]],
) -> dict[str, Float[np.ndarray, "sequences length"]]:
    """KL at every position when a block's output is replaced, for several replacements.

    All positions are replaced at once (mode ``all``); the model runs on from the block. The
    unperturbed logits are computed once for all replacements, and logits are held for a
    few positions at a time.

    Args:
        model: the model.
        tokens: token ids of the sequences.
        block: index of the block whose output is replaced.
        out: the model's own states after the final norm.
        replacements: outputs of the block in its place, by name.

    Returns:
        KL(p || p~) in nats by position, for each replacement.
    """
    ids = torch.from_numpy(tokens)
    states = {
        name: model.resume(ids, block, torch.from_numpy(np.ascontiguousarray(array)))
        for name, array in replacements.items()
    }
    own = torch.from_numpy(np.ascontiguousarray(out)).reshape(-1, model.width)
    kl = {name: torch.empty(len(own), dtype=torch.float64) for name in states}
    for rows in model.rows_of_logits(len(own)):
        reference = Prediction(model.logits(own[None, rows])[0].float())
        for name, normed in states.items():
            chunk = normed.reshape(-1, model.width)[None, rows]
            kl[name][rows] = reference.divergence_to(model.logits(chunk)[0].float())
    return {name: values.reshape(tokens.shape).numpy() for name, values in kl.items()}
