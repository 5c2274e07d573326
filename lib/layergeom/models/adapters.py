"""Where each architecture keeps its parts. A new architecture is one row."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from layergeom.errors import UsageError

if TYPE_CHECKING:  # torch takes seconds to import, and stored results are read without it
    from torch import nn

Kind = Literal["transformer", "state space"]

#: What a body calls the cache of its prefix, in its output and among its arguments alike. The
#: name differs between versions of transformers and, in some, between architectures.
CACHE_NAMES = ("cache", "past_key_values", "cache_params")


@dataclass(frozen=True)
class Adapter:
    """Dotted names of a causal language model's parts.

    Attributes:
        blocks: the list of blocks whose outputs form the residual stream.
        final_norm: the norm between the last block and the unembedding.
        mixer: within a block, the module whose output is what crosses tokens, as it is added to
            the residual stream: the norm behind the attention where there is one.
        mlp: likewise for what works on each token alone; None where a block has no MLP.
        kind: what crosses tokens: attention, or a state that runs along the sequence.
    """

    blocks: str
    final_norm: str
    mixer: str = "self_attn"
    mlp: str | None = "mlp"
    kind: Kind = "transformer"


_LLAMA = Adapter("model.layers", "model.norm")
_NORM_BEHIND = replace(_LLAMA, mixer="post_attention_layernorm", mlp="post_feedforward_layernorm")
_PHI = Adapter("model.layers", "model.final_layernorm")
_GPT2 = Adapter("transformer.h", "transformer.ln_f", mixer="attn")
_NEOX = Adapter("gpt_neox.layers", "gpt_neox.final_layer_norm", mixer="attention")
_MAMBA = Adapter("backbone.layers", "backbone.norm_f", mixer="mixer", mlp=None, kind="state space")

#: By the configuration's ``model_type``. The logits contract, checked at every capture, decides
#: whether a row is right; a wrong one is refused, never measured.
ADAPTERS: dict[str, Adapter] = {
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "qwen2": _LLAMA,
    "qwen3": _LLAMA,
    "gemma": _LLAMA,
    "gemma2": _NORM_BEHIND,
    "gemma3_text": _NORM_BEHIND,
    "olmo": _LLAMA,
    "olmo2": _NORM_BEHIND,
    "phi": _PHI,
    "gpt2": _GPT2,
    "gpt_neox": _NEOX,
    "mamba": _MAMBA,
}


def adapter_for(model_type: str) -> Adapter:
    """The adapter of an architecture.

    Raises:
        UsageError: no row for it, with those there are.
    """
    try:
        return ADAPTERS[model_type]
    except KeyError:
        raise UsageError(
            f"no adapter for architecture {model_type!r}. Known: {', '.join(ADAPTERS)}. "
            "A new one is a row in layergeom/models/adapters.py."
        ) from None


def part(network: "nn.Module", name: str) -> "nn.Module":
    """A part by its dotted name.

    Raises:
        UsageError: the network has no such part.
    """
    try:
        return network.get_submodule(name)
    except AttributeError as error:
        raise UsageError(
            f"{type(network).__name__} has no part {name!r}: its adapter does not fit it ({error})."
        ) from None
