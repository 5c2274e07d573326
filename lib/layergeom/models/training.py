"""Small models trained on the spot: kept at many steps, and gone on with after an interruption."""

import math
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from safetensors.torch import load_file, save_file
from torch import Tensor

from layergeom.corpora import Corpus, held_out
from layergeom.corpora.documents import is_held_out, make_corpus
from layergeom.files import whole_file, whole_folder
from layergeom.models.bigram import fit_bigram
from layergeom.models.catalogue import MambaShape, NeoxShape, TrainedSource
from layergeom.models.data_order import evenly_spaced, training_batch
from layergeom.models.gradients import set_gradients, side_by_side
from layergeom.models.head_loss import head_loss
from layergeom.models.mamba_scan import fast_mixers
from layergeom.models.records import (
    Checkpoint,
    TrainingRecord,
    read_checkpoint,
    step_name,
    write_checkpoint,
    write_record,
)
from layergeom.models.vocabulary import token_stream, trained_tokenizer
from layergeom.models.weights import has_weights, weights_hash
from layergeom.progress import say, track

#: Sequences of held-out text that the loss is measured on, and how many go through at once.
HELD_OUT_SEQUENCES = 128
_HELD_OUT_BATCH = 16

_BETAS = (0.9, 0.95)
_WEIGHT_DECAY = 0.1
_GRADIENT_NORM = 1.0
#: Part of the steps in which the learning rate rises, and what it falls to in the end.
_WARM_UP = 0.04
_LAST_RATE = 0.05

#: What an unfinished training goes on from: weights, and the optimiser's two moments of each.
_STATE = "state-"
_MOMENTS = ("exp_avg", "exp_avg_sq")


def train(name: str, recipe: TrainedSource, corpus: Corpus, folder: Path) -> None:
    """Train a model on the documents that are not held out, and keep it at its checkpoints.

    The folder receives one model folder per checkpoint and, in the end, the record. Where it
    holds the beginning of the same training, that is gone on with. The same recipe and corpus
    give the same bytes on the same machine, interrupted or not.
    """
    seen = [document for document in corpus.documents if not is_held_out(document)]
    training = make_corpus("training", seen)
    tokenizer = trained_tokenizer(training, recipe.vocabulary)
    stream = token_stream(tokenizer, training)
    held = evenly_spaced(
        token_stream(tokenizer, held_out(corpus)), HELD_OUT_SEQUENCES, recipe.context
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        run = _Run(name, recipe, _new_network(recipe), tokenizer, stream, held, folder)
    checkpoints = run.to_the_end()
    bigram = fit_bigram(stream, recipe.vocabulary).loss(held[:, :-1], held[:, 1:])
    record = TrainingRecord(len(stream), bigram, checkpoints)
    write_record(folder, record)
    run.forget_states()
    say(
        f"{name}: {record.tokens_seen:,} tokens seen, held-out loss {record.validation_loss:.3f} "
        f"nats (bigrams: {bigram:.3f}, uniform: {math.log(recipe.vocabulary):.3f})"
    )


def learning_rate(recipe: TrainedSource, step: int) -> float:
    """Learning rate of a step: a linear rise, then half a cosine."""
    rise = max(1, round(_WARM_UP * recipe.steps))
    if step < rise:
        return recipe.learning_rate * (step + 1) / rise
    along = (step - rise) / max(1, recipe.steps - rise)
    return recipe.learning_rate * (
        _LAST_RATE + (1.0 - _LAST_RATE) * 0.5 * (1.0 + math.cos(math.pi * along))
    )


def validation_loss(
    pool: Executor, network: Any, sequences: Int[np.ndarray, "sequences longer"]
) -> float:
    """Mean cross-entropy of every token of the sequences but the first, nats a token.

    Args:
        pool: threads that each take some of the sequences.
        network: what predicts.
        sequences: as many tokens as the network reads, and the one that follows.
    """

    @torch.no_grad()
    def total(start: int) -> float:
        ids = torch.from_numpy(sequences[start : start + _HELD_OUT_BATCH])
        return float(_loss(network, ids)) * len(ids)

    return sum(pool.map(total, range(0, len(sequences), _HELD_OUT_BATCH))) / len(sequences)


def _loss(network: Any, ids: Int[Tensor, "sequences longer"]) -> Float[Tensor, ""]:
    states = network.base_model(input_ids=ids[:, :-1], use_cache=False).last_hidden_state
    unembedding = network.get_output_embeddings().weight
    return head_loss(states.flatten(0, 1), unembedding, ids[:, 1:].flatten())


@dataclass(frozen=True)
class _Run:
    """One training: network, data and the folder that it is kept in."""

    name: str
    recipe: TrainedSource
    network: Any
    tokenizer: Any
    stream: Int[np.ndarray, " tokens"]
    held: Int[np.ndarray, "sequences longer"]
    folder: Path

    def to_the_end(self) -> tuple[Checkpoint, ...]:
        """Train on from the last step that was kept, and return all checkpoints."""
        recipe, optimiser = self.recipe, _optimiser(self.network)
        start = self._resume(optimiser)
        label = f"Training {self.name}" + (f" on from step {start}" if start else "")
        parameters = list(self.network.parameters())
        loss = partial(_loss, self.network)
        with _quick_mixers(self.network), side_by_side() as pool:
            if start == 0:
                self._keep(0, optimiser, pool)
            for step in track(range(start, recipe.steps), label):
                for group in optimiser.param_groups:
                    group["lr"] = learning_rate(recipe, step)
                batch = training_batch(self.stream, recipe.seed, step, recipe.batch, recipe.context)
                set_gradients(pool, loss, parameters, torch.from_numpy(batch))
                torch.nn.utils.clip_grad_norm_(parameters, _GRADIENT_NORM)
                optimiser.step()
                if step + 1 in recipe.checkpoint_steps:
                    self._keep(step + 1, optimiser, pool)
        kept = [read_checkpoint(self._at(step)) for step in recipe.checkpoint_steps]
        return tuple(checkpoint for checkpoint in kept if checkpoint is not None)

    def forget_states(self) -> None:
        """Remove what only an unfinished training needs."""
        for path in self.folder.glob(f"{_STATE}*"):
            path.unlink()

    def _at(self, step: int) -> Path:
        return self.folder / step_name(step)

    def _state(self, step: int) -> Path:
        return self.folder / f"{_STATE}{step_name(step)}.safetensors"

    def _keep(self, step: int, optimiser: torch.optim.Optimizer, pool: Executor) -> None:
        """Write a checkpoint, then what is needed to go on from it, then drop the one before."""
        self.network.eval()
        loss = validation_loss(pool, self.network, self.held)
        self.network.train()
        with whole_folder(self._at(step)) as folder:
            self.network.save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)
            seen = self.recipe.tokens_seen(step)
            write_checkpoint(folder, Checkpoint(step, seen, loss, weights_hash(folder)))
        if step > 0:
            with whole_file(self._state(step)) as path:
                save_file(_state_of(self.network, optimiser), path)
        for path in self.folder.glob(f"{_STATE}*"):
            if path != self._state(step):
                path.unlink()

    def _resume(self, optimiser: torch.optim.Optimizer) -> int:
        """Load the last step that was kept with all before it whole; 0 where there is none."""
        kept = [step for step in self.recipe.checkpoint_steps if self._state(step).is_file()]
        last = max(kept, default=0)
        if not all(self._is_whole(step) for step in self.recipe.checkpoint_steps if step <= last):
            return 0
        if last > 0:
            _restore(self.network, optimiser, last, load_file(self._state(last)))
        return last

    def _is_whole(self, step: int) -> bool:
        checkpoint = read_checkpoint(self._at(step))
        return checkpoint is not None and has_weights(self._at(step), checkpoint.weights_hash)


def _state_of(network: Any, optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Weights and moments by name."""
    found: dict[str, Tensor] = {}
    for name, parameter in network.named_parameters():
        found[name] = parameter.detach()
        found |= {f"{name}/{moment}": optimiser.state[parameter][moment] for moment in _MOMENTS}
    return found


@torch.no_grad()
def _restore(
    network: Any, optimiser: torch.optim.Optimizer, step: int, state: dict[str, Tensor]
) -> None:
    """Put weights and moments back as they were after ``step`` updates."""
    for name, parameter in network.named_parameters():
        parameter.copy_(state[name])
        moments = {moment: state[f"{name}/{moment}"].clone() for moment in _MOMENTS}
        optimiser.state[parameter] = {"step": torch.tensor(float(step)), **moments}


def _optimiser(network: Any) -> torch.optim.Optimizer:
    """AdamW; gains, biases and the decay rates of a state are not drawn towards zero."""
    parameters = list(network.named_parameters())
    groups = [
        {
            "params": [p for name, p in parameters if _decays(name, p)],
            "weight_decay": _WEIGHT_DECAY,
        },
        {"params": [p for name, p in parameters if not _decays(name, p)], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, betas=_BETAS, fused=True)


def _decays(name: str, parameter: Tensor) -> bool:
    return parameter.dim() >= 2 and not name.endswith("A_log")


def _quick_mixers(network: Any) -> AbstractContextManager[None]:
    """The compiled scan while a Mamba is trained; nothing for other networks."""
    return fast_mixers(network) if network.config.model_type == "mamba" else nullcontext()


def _new_network(recipe: TrainedSource) -> Any:
    """The network of a recipe with weights drawn from the global generator."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    network = _BUILDERS[recipe.network.type](recipe, recipe.network)
    return network.train()


def _small_init(width: int) -> float:
    """Standard deviation of the initial weights, as Pythia's (Nguyen & Salazar 2019)."""
    return math.sqrt(2.0 / (5.0 * width))


def _new_neox(recipe: TrainedSource, shape: NeoxShape) -> Any:
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    config = GPTNeoXConfig(
        vocab_size=recipe.vocabulary,
        hidden_size=shape.width,
        num_hidden_layers=shape.depth,
        num_attention_heads=shape.heads,
        intermediate_size=4 * shape.width,
        max_position_embeddings=recipe.context,
        initializer_range=_small_init(shape.width),
        use_parallel_residual=True,
        tie_word_embeddings=False,
        bos_token_id=0,
        eos_token_id=0,
    )
    return GPTNeoXForCausalLM(config)


def _new_mamba(recipe: TrainedSource, shape: MambaShape) -> Any:
    from transformers import MambaConfig, MambaForCausalLM

    config = MambaConfig(
        vocab_size=recipe.vocabulary,
        hidden_size=shape.width,
        num_hidden_layers=shape.depth,
        state_size=shape.state,
        initializer_range=_small_init(shape.width),
        tie_word_embeddings=False,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=None,
    )
    return MambaForCausalLM(config)


_BUILDERS: dict[str, Callable[..., Any]] = {"gpt_neox": _new_neox, "mamba": _new_mamba}
