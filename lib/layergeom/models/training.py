"""Small GPT-NeoX models trained on the spot, as Pythia is built: untied, parallel residual."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int

from layergeom.corpora import Corpus, held_out
from layergeom.corpora.documents import is_held_out, make_corpus
from layergeom.models.catalogue import TrainedSource
from layergeom.progress import say, track

END_OF_TEXT = "<|endoftext|>"


def train(name: str, recipe: TrainedSource, corpus: Corpus, folder: Path) -> None:
    """Train tokenizer and model on the documents that are not held out, and save both.

    The same recipe and corpus give the same weights on the same machine.
    """
    from transformers.utils import logging

    seen = [document for document in corpus.documents if not is_held_out(document)]
    training = make_corpus("training", seen)
    tokenizer = _train_tokenizer(training, recipe.vocabulary)
    stream = _tokens(tokenizer, training)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        network = _new_network(recipe)
        _descend(name, recipe, network, stream)
    loss = validation_loss(network, _tokens(tokenizer, held_out(corpus)), recipe.context)
    say(
        f"{name}: {recipe.steps * recipe.batch * recipe.context:,} tokens seen, held-out loss "
        f"{loss:.3f} nats (uniform: {math.log(recipe.vocabulary):.3f})"
    )
    logging.disable_progress_bar()
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _train_tokenizer(corpus: Corpus, vocabulary: int) -> Any:
    """A byte-level BPE tokenizer of the given size."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator((d.text for d in corpus.documents), trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END_OF_TEXT)


def _tokens(tokenizer: Any, corpus: Corpus) -> Int[np.ndarray, " tokens"]:
    """All documents as one stream of tokens, an end-of-text token between them."""
    pieces: list[int] = []
    for document in corpus.documents:
        pieces += tokenizer(document.text, add_special_tokens=False)["input_ids"]
        pieces.append(tokenizer.eos_token_id)
    return np.array(pieces, dtype=np.int64)


def _new_network(recipe: TrainedSource) -> Any:
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    config = GPTNeoXConfig(
        vocab_size=recipe.vocabulary,
        hidden_size=recipe.width,
        num_hidden_layers=recipe.depth,
        num_attention_heads=recipe.heads,
        intermediate_size=4 * recipe.width,
        max_position_embeddings=recipe.context,
        use_parallel_residual=True,
        tie_word_embeddings=False,
        bos_token_id=0,
        eos_token_id=0,
    )
    return GPTNeoXForCausalLM(config)


def _descend(
    name: str, recipe: TrainedSource, network: Any, stream: Int[np.ndarray, " tokens"]
) -> None:
    rng = np.random.default_rng(recipe.seed)
    optimiser = torch.optim.AdamW(network.parameters(), lr=recipe.learning_rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, recipe.learning_rate, total_steps=recipe.steps
    )
    network.train()
    for _ in track(range(recipe.steps), f"Training {name}"):
        starts = rng.integers(0, len(stream) - recipe.context, recipe.batch)
        ids = torch.from_numpy(stream[starts[:, None] + np.arange(recipe.context)])
        loss = network(input_ids=ids, labels=ids).loss
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    network.eval()


@torch.no_grad()
def validation_loss(
    network: Any, stream: Int[np.ndarray, " tokens"], context: int, sequences: int = 64
) -> float:
    """Mean cross-entropy in nats a token over evenly spaced sequences of a stream."""
    starts = np.linspace(0, len(stream) - context, sequences).astype(np.int64)
    ids = torch.from_numpy(stream[starts[:, None] + np.arange(context)])
    return float(network(input_ids=ids, labels=ids).loss)
