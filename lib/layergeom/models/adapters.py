"""Where each architecture keeps its parts. A new architecture is one row."""

from dataclasses import dataclass

from torch import nn

from layergeom.errors import UsageError


@dataclass(frozen=True)
class Adapter:
    """Dotted names of a causal language model's parts.

    Attributes:
        blocks: the list of blocks whose outputs form the residual stream.
        final_norm: the norm between the last block and the unembedding.
    """

    blocks: str
    final_norm: str


_LLAMA = Adapter("model.layers", "model.norm")
_PHI = Adapter("model.layers", "model.final_layernorm")
_GPT2 = Adapter("transformer.h", "transformer.ln_f")
_NEOX = Adapter("gpt_neox.layers", "gpt_neox.final_layer_norm")
_MAMBA = Adapter("backbone.layers", "backbone.norm_f")

#: By the configuration's ``model_type``. The logits contract, checked at every capture, decides
#: whether a row is right; a wrong one is refused, never measured.
ADAPTERS: dict[str, Adapter] = {
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "qwen2": _LLAMA,
    "qwen3": _LLAMA,
    "gemma": _LLAMA,
    "gemma2": _LLAMA,
    "gemma3_text": _LLAMA,
    "olmo": _LLAMA,
    "olmo2": _LLAMA,
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


def part(network: nn.Module, name: str) -> nn.Module:
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
