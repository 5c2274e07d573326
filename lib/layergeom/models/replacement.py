"""What a block's error does to the output: replace its output and measure KL(p || p~).

Source: Updates (arXiv 2604.02459), section 5.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from layergeom.models.language_model import LanguageModel

#: Logits worked on at a time: 1 MB, so that the passes stay in a core's cache. Three times as many
#: took half as long again, whole chunks twice as long.
_CACHED = 1 << 18


def _rows(logits: Float[Tensor, "tokens vocabulary"]) -> Sequence[Float[Tensor, "some vocabulary"]]:
    """The logits of a few tokens at a time."""
    # Two at least: with a single one the threads share a row, and wait for each other.
    return logits.split(max(2, _CACHED // logits.shape[1]))


def _centred(
    logits: Float[Tensor, "tokens vocabulary"],
) -> tuple[Float[Tensor, "tokens vocabulary"], Float[Tensor, "tokens vocabulary"]]:
    """Logits less their maximum, and their exponentials."""
    centred = logits - logits.amax(dim=-1, keepdim=True)
    return centred, centred.exp()


def _mass(weights: Float[Tensor, "tokens vocabulary"]) -> Float[Tensor, " tokens"]:
    """Sum over the vocabulary, in float64 on the host: not every device has float64."""
    return weights.sum(dim=-1).cpu().double()


class Prediction:
    """A model's prediction at some tokens, made ready once to be compared with others."""

    def __init__(self, logits: Float[Tensor, "tokens vocabulary"]) -> None:
        """Keep centred logits and their exponentials, by rows, on the device of the logits."""
        self._rows = []
        for rows in _rows(logits):
            centred, weights = _centred(rows)
            self._rows.append((centred, weights, _mass(weights)))

    def divergence_to(self, logits: Float[Tensor, "tokens vocabulary"]) -> Float[Tensor, " tokens"]:
        """KL(p || q) in nats at each token, ``q`` from ``logits``.

        From differences of centred logits, with the normalisers in float64: the divergence of
        two close distributions is a small difference of large numbers.
        """
        pieces = []
        for rows, (centred, weights, mass) in zip(_rows(logits), self._rows, strict=True):
            other_centred, other_weights = _centred(rows)
            other_mass = _mass(other_weights)
            expected = _mass((centred - other_centred).mul_(weights)) / mass
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
    ids = model.on_device(tokens)
    states = {
        name: model.resume(ids, block, model.on_device(array))
        for name, array in replacements.items()
    }
    own = model.on_device(out).reshape(-1, model.width)
    kl = {name: torch.empty(len(own), dtype=torch.float64) for name in states}
    for rows in model.rows_of_logits(len(own)):
        reference = Prediction(model.logits(own[None, rows])[0].float())
        for name, normed in states.items():
            chunk = normed.reshape(-1, model.width)[None, rows]
            kl[name][rows] = reference.divergence_to(model.logits(chunk)[0].float())
    return {name: values.reshape(tokens.shape).numpy() for name, values in kl.items()}
