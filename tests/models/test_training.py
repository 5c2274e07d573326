"""Models trained here: better than chance, the same every time, and blind to held-out text."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from layergeom.corpora import held_out, load_corpus
from layergeom.corpora.documents import Corpus, Document, is_held_out, make_corpus
from layergeom.models.catalogue import TrainedSource, catalogue
from layergeom.models.language_model import load
from layergeom.models.sources import resolve
from layergeom.models.training import train, validation_loss

RECIPE = TrainedSource(
    kind="trained",
    corpus="unused",
    vocabulary=300,
    context=16,
    width=16,
    depth=2,
    heads=2,
    steps=4,
    batch=4,
    learning_rate=0.01,
    seed=0,
)

WORDS = [
    "the",
    "a",
    "of",
    "layer",
    "norm",
    "state",
    "block",
    "token",
    "head",
    "rank",
    "angle",
    "tells",
    "moves",
    "holds",
    "gives",
]


def corpus(changed: str = "") -> Corpus:
    """Documents of random words; those that are held out, or not, may be given another text."""
    rng = np.random.default_rng(0)
    documents = [Document(f"title {i}", " ".join(rng.choice(WORDS, 120)) + ".") for i in range(24)]
    if changed:
        documents = [
            Document(d.title, "quite other words " * 40)
            if is_held_out(d) == (changed == "held out")
            else d
            for d in documents
        ]
    return make_corpus("words", documents)


def trained(folder: Path, text: Corpus, seed: int = 0) -> dict[str, bytes]:
    folder.mkdir()
    train("tiny", RECIPE.model_copy(update={"seed": seed}), text, folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return trained(tmp_path_factory.mktemp("first") / "model", corpus())


def test_training_twice_gives_the_same_bytes(first: dict[str, bytes], tmp_path: Path) -> None:
    torch.manual_seed(12345)  # the caller's generator must not matter
    assert trained(tmp_path / "second", corpus()) == first


def test_another_seed_gives_other_weights_and_the_same_tokenizer(
    first: dict[str, bytes], tmp_path: Path
) -> None:
    other = trained(tmp_path / "other", corpus(), seed=1)
    assert other["model.safetensors"] != first["model.safetensors"]
    assert other["tokenizer.json"] == first["tokenizer.json"]


def test_held_out_documents_reach_neither_tokenizer_nor_weights(
    first: dict[str, bytes], tmp_path: Path
) -> None:
    assert 1 <= sum(map(is_held_out, corpus().documents)) < len(corpus().documents)
    assert trained(tmp_path / "held", corpus("held out")) == first
    seen = trained(tmp_path / "seen", corpus("seen"))
    assert seen["model.safetensors"] != first["model.safetensors"]
    assert seen["tokenizer.json"] != first["tokenizer.json"]


def test_training_does_not_move_the_global_generator(tmp_path: Path) -> None:
    before = torch.get_rng_state()
    trained(tmp_path / "model", corpus())
    assert torch.equal(torch.get_rng_state(), before)


def test_validation_loss_is_the_mean_cross_entropy_in_nats() -> None:
    class Uniform(torch.nn.Module):
        def forward(self, input_ids: torch.Tensor, labels: torch.Tensor) -> object:
            from transformers.loss.loss_utils import ForCausalLMLoss
            from transformers.modeling_outputs import CausalLMOutput

            logits = torch.zeros((*input_ids.shape, 50))
            return CausalLMOutput(loss=ForCausalLMLoss(logits, labels, 50), logits=logits)

    stream = np.random.default_rng(0).integers(0, 50, 500)
    loss = validation_loss(Uniform(), stream, context=16, sequences=5)
    assert loss == pytest.approx(math.log(50), abs=1e-5)


def test_smoke_pythia_beats_the_uniform_loss_on_held_out_text() -> None:
    model, recipe = load("smoke-pythia"), catalogue()["smoke-pythia"].source
    assert isinstance(recipe, TrainedSource)
    assert resolve("smoke-pythia").trained_on == "wikipedia-sample"
    text = " ".join(d.text[:400] for d in held_out(load_corpus(recipe.corpus)).documents)
    ids = torch.tensor(model.encode(text))
    ids = ids[: len(ids) // recipe.context * recipe.context].view(-1, recipe.context)
    with torch.no_grad():
        surprise = -model.network(ids).logits[:, :-1].log_softmax(-1)
    loss = surprise.gather(-1, ids[:, 1:, None]).mean().item()
    assert loss < math.log(recipe.vocabulary) - 1.0
    assert model.depth == recipe.depth
    assert len(model.real_unembedding()) == recipe.vocabulary
