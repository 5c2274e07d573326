"""Tiny models of every architecture, drawn at random, and a tokenizer with fewer tokens than rows.

Every parameter gets noise: with norm gains of 1 a norm is idempotent, and states taken on its
wrong side would go unnoticed.
"""

from pathlib import Path
from typing import Any

import torch

WIDTH = 32
DEPTH = 3
#: Rows of the embeddings; the tokenizer has fewer tokens, so that the last rows are padding.
ROWS = 128
TOKENS = 99
BOS = 1

_IDS = {"vocab_size": ROWS, "bos_token_id": BOS, "eos_token_id": 2, "pad_token_id": None}
_COMMON = {
    "hidden_size": WIDTH,
    "num_hidden_layers": DEPTH,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
}
_GROUPED = _COMMON | {"num_key_value_heads": 2}
_GEMMA = _GROUPED | {"head_dim": 8}
_GEMMA_WINDOW = _GEMMA | {"query_pre_attn_scalar": 8, "sliding_window": 8}

#: Configurations by the name that transformers gives the architecture.
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "llama": _GROUPED,
    "mistral": _GROUPED | {"sliding_window": None},
    "qwen2": _GROUPED,
    "qwen3": _GEMMA,
    "gemma": _GEMMA,
    "gemma2": _GEMMA_WINDOW | {"final_logit_softcapping": 3.0, "attn_logit_softcapping": 5.0},
    "gemma3_text": _GEMMA_WINDOW,
    "olmo": _GROUPED,
    "olmo2": _GROUPED,
    "phi": _COMMON,
    "gpt2": {"n_embd": WIDTH, "n_layer": DEPTH, "n_head": 4, "n_positions": 64},
    "gpt_neox": _COMMON,
    "mamba": {"hidden_size": WIDTH, "num_hidden_layers": DEPTH, "state_size": 4},
}


def add_noise(network: torch.nn.Module) -> None:
    """Move every parameter: gains, biases and scales by more than the matrices."""
    with torch.no_grad():
        for parameter in network.parameters():
            scale = 0.3 if parameter.dim() < 2 else 0.15
            parameter.add_(scale * torch.randn(parameter.shape))


def tiny_network(architecture: str, seed: int = 0) -> Any:
    """A randomly initialised transformers model in evaluation mode."""
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.utils import logging

    logging.set_verbosity_error()
    config = AutoConfig.for_model(architecture, **_IDS, **ARCHITECTURES[architecture])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        add_noise(network)
    return network.eval()


def tiny_tokenizer(has_bos: bool = True, adds_bos: bool = False) -> Any:
    """A byte-level tokenizer of printable ASCII: one token a character, and three special ones."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    characters = [chr(code) for code in range(33, 127)] + ["Ġ", "Ċ"]
    vocabulary = {token: i for i, token in enumerate(["<unk>", "<s>", "</s>", *characters])}
    assert len(vocabulary) == TOKENS
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    if adds_bos:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", BOS)]
        )
    special = {"bos_token": "<s>"} if has_bos else {}
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", eos_token="</s>", **special
    )


def save_tiny(folder: Path, architecture: str = "gpt_neox", adds_bos: bool = False) -> Path:
    """A model folder as a user would have it."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    tiny_network(architecture).save_pretrained(folder)
    tiny_tokenizer(adds_bos=adds_bos).save_pretrained(folder)
    return folder
