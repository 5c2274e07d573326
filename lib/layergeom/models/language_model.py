"""A causal language model with its parts named, and the contract that they are the right ones."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from safetensors import SafetensorError
from torch import Tensor, nn

from layergeom.errors import LayergeomError, UsageError
from layergeom.models.adapters import adapter_for, part
from layergeom.models.blocks import (
    check_finite,
    hooked,
    output_templates,
    replaced_forward,
    replaced_output,
)
from layergeom.models.devices import placement, torch_dtype
from layergeom.models.sources import Bos, ModelFiles, resolve

#: Largest relative error of head(final_norm(H_L)) against the model's own logits, float32.
CONTRACT = 1e-4
#: Logits held at a time: 128 MB of them. The head's product is a third slower on a quarter of that.
LOGITS = 1 << 25


@dataclass(frozen=True)
class LanguageModel:
    """A loaded causal language model.

    Attributes:
        name: the model's name.
        network: the transformers model, in evaluation mode.
        tokenizer: its tokenizer.
        blocks: the blocks, in order.
        final_norm: the norm after the last block.
        unembedding: the linear layer of the head.
        bos: whether sequences start with a BOS token.
        block_outputs: the type of each block's output.
        body_output: the type of the body's output.
    """

    name: str
    network: Any
    tokenizer: Any
    blocks: tuple[nn.Module, ...]
    final_norm: nn.Module
    unembedding: nn.Module
    bos: Bos
    block_outputs: tuple[Any, ...]
    body_output: type

    @property
    def depth(self) -> int:
        """Number of blocks, L."""
        return len(self.blocks)

    @property
    def width(self) -> int:
        """Width of the residual stream, d."""
        return int(self.unembedding.weight.shape[1])  # type: ignore[union-attr, index, arg-type]

    @property
    def dtype(self) -> torch.dtype:
        """Floating-point type that the forward pass runs in."""
        dtype: torch.dtype = next(self.network.parameters()).dtype
        return dtype

    @property
    def device(self) -> torch.device:
        """Device that token ids and states are handed over on."""
        device: torch.device = next(self.network.parameters()).device
        return device

    def on_device(self, array: Shaped[np.ndarray, "..."]) -> Shaped[Tensor, "..."]:
        """An array as a tensor where the model runs."""
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    @property
    def body(self) -> nn.Module:
        """Everything but the head: embedding, blocks and final norm."""
        body: nn.Module = self.network.base_model
        return body

    def encode(self, text: str) -> list[int]:
        """Token ids of a text, without special tokens."""
        ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def bos_id(self) -> int | None:
        """Id of the BOS token that starts each sequence, or None.

        Raises:
            LayergeomError: the catalogue asks for a BOS and the tokenizer has none.
        """
        bos = self.tokenizer.bos_token_id
        if self.bos == "no":
            return None
        if self.bos == "as the tokenizer does":
            start = self.tokenizer("a")["input_ids"][:1]
            return bos if bos is not None and start == [bos] else None
        if bos is None:
            raise LayergeomError(f"{self.name} needs a BOS token, and its tokenizer has none.")
        return int(bos)

    def real_unembedding(self) -> Float[np.ndarray, "vocabulary width"]:
        """Rows of the unembedding that belong to real tokens, float32.

        Models pad the vocabulary to a round number (Pythia: 50,277 to 50,304); the padding
        rows were never trained.
        """
        weight: Tensor = self.unembedding.weight  # type: ignore[assignment]
        real = min(len(self.tokenizer), weight.shape[0])
        return weight[:real].detach().to(torch.float32).cpu().numpy()

    def rows_of_logits(self, tokens: int) -> Iterator[slice]:
        """So many tokens a few at a time, such that ``LOGITS`` of their logits are held at once."""
        weight: Tensor = self.unembedding.weight  # type: ignore[assignment]
        few = max(1, LOGITS // weight.shape[0])
        return (slice(start, start + few) for start in range(0, tokens, few))

    @torch.no_grad()
    def logits(
        self, normed: Float[Tensor, "batch length width"]
    ) -> Float[Tensor, "batch length vocabulary"]:
        """The model's own head on states that have passed the final norm.

        The model's forward runs with its body replaced by the given states, so that soft-capping
        and logit scaling are the model's own.
        """
        given = self.body_output(last_hidden_state=normed.to(self.dtype))
        ids = torch.zeros(normed.shape[:2], dtype=torch.long, device=normed.device)
        with replaced_forward(self.body, lambda *_, **__: given):
            logits: Tensor = self.network(ids, use_cache=False).logits
        return logits

    @torch.no_grad()
    def resume(
        self,
        ids: Int[Tensor, "batch length"],
        block: int,
        states: Float[Tensor, "batch length width"],
    ) -> Float[Tensor, "batch length width"]:
        """States after the final norm when ``block`` puts out ``states``.

        The model's own forward runs; the lower blocks pass their input on unchanged and cost
        nothing, so masks and positions are the model's own.
        """
        with replaced_output(self.blocks, self.block_outputs, block, states.to(self.dtype)):
            last: Tensor = self.body(ids, use_cache=False).last_hidden_state
        return last


def wrap(name: str, network: Any, tokenizer: Any, bos: Bos) -> LanguageModel:
    """Name the parts of a transformers model and check the logits contract on a small input.

    Raises:
        UsageError: no adapter for its architecture, or the contract fails.
    """
    network.eval()
    network.requires_grad_(False)
    model_type = network.config.model_type
    if getattr(network.config, "is_encoder_decoder", False):
        raise UsageError(f"{name} is an encoder-decoder model ({model_type}); only causal models.")
    adapter = adapter_for(model_type)
    blocks = tuple(part(network, adapter.blocks).children())
    ids = torch.tensor([[1, 2, 3]], device=next(network.parameters()).device)
    templates, body_output = output_templates(
        blocks, network.base_model, lambda: network(ids, use_cache=False)
    )
    model = LanguageModel(
        name=name,
        network=network,
        tokenizer=tokenizer,
        blocks=blocks,
        final_norm=part(network, adapter.final_norm),
        unembedding=network.get_output_embeddings(),
        bos=bos,
        block_outputs=tuple(templates),
        body_output=body_output,
    )
    contract_error(model, ids)
    return model


@torch.no_grad()
def contract_error(model: LanguageModel, ids: Int[Tensor, "batch length"]) -> float:
    """Relative error of ``head(final_norm(H_L))`` against the model's own logits.

    Raises:
        UsageError: it exceeds ``CONTRACT``: the hooks are not where the adapter says.
    """
    last: dict[str, Tensor] = {}

    def record(layer: int, states: Tensor) -> None:
        # Before anything is compared: the contract would only say that NaN is not NaN.
        check_finite(states, f"H_{layer}", model.name)
        last["H_L"] = states

    with hooked(model.blocks, record):
        own = model.network(ids, use_cache=False).logits
    rebuilt = model.logits(model.final_norm(last["H_L"]))
    error = float((rebuilt - own).cpu().double().norm() / own.cpu().double().norm())
    if not error < CONTRACT:
        raise UsageError(
            f"{model.name} ({model.network.config.model_type}) fails the logits contract: its "
            f"final norm and head on the last block's output miss its own logits by {error:.1e} "
            f"(limit {CONTRACT:.0e}). It is refused, because its layers would be misread."
        )
    return error


def load(model: str, device: str = "auto", dtype: str = "float32") -> LanguageModel:
    """Load a model by catalogue name, local folder or hub id.

    Args:
        model: what to load.
        device: where it runs, one of ``devices.Device``.
        dtype: arithmetic of the forward pass, one of ``devices.Dtype``.

    Raises:
        UsageError: no such model or device, no adapter, or the logits contract fails.
        LayergeomError: it cannot be fetched or read, or weights are missing.
    """
    return load_files(resolve(model), device, dtype)


def load_files(files: ModelFiles, device: str = "auto", dtype: str = "float32") -> LanguageModel:
    """Load a model from its verified files; for the arguments see ``load``."""
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    options: dict[str, Any] = {"gguf_file": files.gguf} if files.gguf else {}
    arithmetic, where = torch_dtype(dtype), placement(device)
    try:
        with _gguf_parsed_once():
            network, report = AutoModelForCausalLM.from_pretrained(
                files.folder,
                dtype=arithmetic,
                output_loading_info=True,
                use_safetensors=True,
                trust_remote_code=False,
                local_files_only=True,
                **where,
                **options,
            )
            tokenizer = AutoTokenizer.from_pretrained(
                files.folder, trust_remote_code=False, local_files_only=True, **options
            )
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        reason = str(error).strip().splitlines()[0]
        if "mismatched" in reason:
            reason = "its weights have other shapes than its config.json says"
        raise UsageError(f"cannot load {files.name} from {files.folder}: {reason}") from error
    _refuse_partial_weights(files.name, report)
    return wrap(files.name, network, tokenizer, files.bos)


@contextmanager
def _gguf_parsed_once() -> Iterator[None]:
    """Let one reader serve configuration, weights and tokenizer of a GGUF file.

    transformers opens one for each, and each takes seconds to list a vocabulary.
    """
    import gguf

    own = gguf.GGUFReader
    gguf.GGUFReader = cache(own)
    try:
        yield
    finally:
        gguf.GGUFReader = own


def _refuse_partial_weights(name: str, report: dict[str, Any]) -> None:
    """Missing weights would be drawn at random without a word; unexpected ones were ignored."""
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        keys = sorted(str(key) for key in report.get(kind, ()))
        if keys:
            raise UsageError(
                f"{name} does not load cleanly: {len(keys)} {kind.replace('_', ' ')}, first "
                f"{keys[0]!r}. Its weights and its config.json do not belong together."
            )
