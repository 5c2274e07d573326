"""Byte-level BPE tokenizers trained on the spot, one for all models of a corpus and size."""

import json
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from layergeom.corpora import Corpus
from layergeom.files import lock, sha256_of_text, write_text
from layergeom.paths import home

END_OF_TEXT = "<|endoftext|>"


def trained_tokenizer(corpus: Corpus, vocabulary: int) -> Any:
    """The tokenizer of a corpus, trained once and cached.

    Args:
        corpus: the documents to train on.
        vocabulary: number of tokens, the end-of-text token and the 256 bytes included.
    """
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    key = sha256_of_text(f"{corpus.sha256} {vocabulary} {version('tokenizers')}")
    path = home() / "models" / f"tokenizer-{key[:16]}.json"
    with lock(path):
        text = _read(path)
        if text is None:
            text = _train((document.text for document in corpus.documents), vocabulary)
            write_text(path, json.dumps({"sha256": sha256_of_text(text), "tokenizer": text}))
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(text), eos_token=END_OF_TEXT)


def token_stream(tokenizer: Any, corpus: Corpus) -> Int[np.ndarray, " tokens"]:
    """All documents as one stream of tokens, an end-of-text token after each."""
    texts = [document.text for document in corpus.documents]
    pieces: list[int] = []
    for ids in tokenizer(texts, add_special_tokens=False)["input_ids"]:
        pieces += ids
        pieces.append(tokenizer.eos_token_id)
    return np.array(pieces, dtype=np.int64)


def _read(path: Path) -> str | None:
    """The cached tokenizer, or None where there is none that is whole."""
    try:
        row = json.loads(path.read_text(encoding="utf-8"))
        text: str = row["tokenizer"]
        return text if sha256_of_text(text) == row["sha256"] else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _train(texts: Iterable[str], vocabulary: int) -> str:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    text: str = tokenizer.to_str()
    return text
