"""Models trained here: the same every time, interrupted or not, and blind to held-out text."""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from layergeom.corpora.documents import Corpus, Document, is_held_out, make_corpus
from layergeom.models import training
from layergeom.models.catalogue import TrainedSource
from layergeom.models.records import read_record
from layergeom.models.training import learning_rate, train, validation_loss
from tiny_models import tiny_network

NETWORKS: dict[str, dict[str, Any]] = {
    "gpt_neox": {"type": "gpt_neox", "width": 16, "depth": 2, "heads": 2},
    "mamba": {"type": "mamba", "width": 16, "depth": 2, "state": 4},
}
every_network = pytest.mark.parametrize("network", NETWORKS)


def recipe(network: str = "gpt_neox", **changes: Any) -> TrainedSource:
    row = {"kind": "trained", "corpus": "unused", "vocabulary": 300, "context": 16, "steps": 10}
    row |= {"network": NETWORKS[network], "batch": 4, "learning_rate": 0.01}
    return TrainedSource.model_validate(row | changes)


WORDS = ["the", "a", "of", "layer", "norm", "state", "block", "token", "head", "rank", "angle"]


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


def content(folder: Path) -> dict[str, bytes]:
    """All bytes of a folder by their file's path."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def trained(folder: Path, text: Corpus, source: TrainedSource) -> dict[str, bytes]:
    folder.mkdir(exist_ok=True)
    train("tiny", source, text, folder)
    return content(folder)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, bytes]]:
    found: dict[str, dict[str, bytes]] = {}

    def make(network: str) -> dict[str, bytes]:
        if network not in found:
            folder = tmp_path_factory.mktemp("undisturbed") / network
            found[network] = trained(folder, corpus(), recipe(network))
        return found[network]

    return make


@pytest.fixture
def first(undisturbed: Callable[[str], dict[str, bytes]]) -> dict[str, bytes]:
    return undisturbed("gpt_neox")


@every_network
def test_training_twice_gives_the_same_bytes(
    undisturbed: Callable[[str], dict[str, bytes]], network: str, tmp_path: Path
) -> None:
    torch.manual_seed(12345)  # the caller's generator must not matter
    assert trained(tmp_path / "second", corpus(), recipe(network)) == undisturbed(network)


def test_a_finished_training_holds_whole_models_and_one_record_without_pickles(
    first: dict[str, bytes],
) -> None:
    steps = [f"step{step}" for step in recipe().checkpoint_steps]
    assert {name.split("/")[0] for name in first} == {*steps, "training.json"}
    for step in steps:
        assert {f"{step}/{n}" for n in ("config.json", "model.safetensors", "tokenizer.json")} <= (
            set(first)
        )
    assert {Path(name).suffix for name in first} == {".json", ".safetensors"}


class KilledError(Exception):
    """Stands for the end of the process."""


def killed_at(step: int, folder: Path, source: TrainedSource) -> None:
    """Begin a training that ends when it asks for the data of a step."""
    own = training.training_batch

    def batch_or_end(stream: np.ndarray, seed: int, now: int, *sizes: int) -> np.ndarray:
        if now == step:
            raise KilledError
        return own(stream, seed, now, *sizes)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "training_batch", batch_or_end)
        with pytest.raises(KilledError):
            trained(folder, corpus(), source)
    assert read_record(folder) is None


@every_network
@pytest.mark.parametrize("step", [0, 1, 3, 9])
def test_a_killed_training_goes_on_and_gives_the_same_bytes(
    undisturbed: Callable[[str], dict[str, bytes]],
    network: str,
    step: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source, folder = recipe(network), tmp_path / "killed"
    killed_at(step, folder, source)
    own, asked = training.training_batch, []

    def noted(stream: np.ndarray, seed: int, now: int, *sizes: int) -> np.ndarray:
        asked.append(now)
        return own(stream, seed, now, *sizes)

    monkeypatch.setattr(training, "training_batch", noted)
    assert trained(folder, corpus(), source) == undisturbed(network)
    kept = max(each for each in source.checkpoint_steps if each <= step)
    assert asked == list(range(kept, source.steps))


def test_a_damaged_checkpoint_of_an_unfinished_training_starts_it_anew(
    first: dict[str, bytes], tmp_path: Path
) -> None:
    folder = tmp_path / "damaged"
    killed_at(5, folder, recipe())
    weights = folder / "step2" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    assert trained(folder, corpus(), recipe()) == first


def test_another_seed_gives_other_weights_and_the_same_tokenizer(
    first: dict[str, bytes], tmp_path: Path
) -> None:
    other = trained(tmp_path / "other", corpus(), recipe(seed=1))
    for step in ("step0", "step10"):
        assert other[f"{step}/model.safetensors"] != first[f"{step}/model.safetensors"]
        assert other[f"{step}/tokenizer.json"] == first[f"{step}/tokenizer.json"]


def test_held_out_documents_reach_neither_tokenizer_nor_weights(
    first: dict[str, bytes], tmp_path: Path
) -> None:
    assert 1 <= sum(map(is_held_out, corpus().documents)) < len(corpus().documents)
    held = trained(tmp_path / "held", corpus("held out"), recipe())
    seen = trained(tmp_path / "seen", corpus("seen"), recipe())
    for name in ("step10/model.safetensors", "step10/tokenizer.json"):
        assert held[name] == first[name]
        assert seen[name] != first[name]


def test_record_holds_losses_and_hashes_of_all_checkpoints(tmp_path: Path) -> None:
    source = recipe(steps=60, learning_rate=0.02)
    trained(tmp_path / "model", corpus(), source)
    record = read_record(tmp_path / "model")
    assert record is not None
    assert tuple(c.step for c in record.checkpoints) == source.checkpoint_steps
    assert [c.tokens_seen for c in record.checkpoints] == [64 * c.step for c in record.checkpoints]
    assert len({c.weights_hash for c in record.checkpoints}) == len(record.checkpoints)
    assert record.checkpoints[0].validation_loss == pytest.approx(math.log(300), abs=0.5)
    assert record.validation_loss < record.checkpoints[0].validation_loss - 1.0
    # Words drawn at random: a bigram model knows their letters well.
    assert 0.5 < record.bigram_loss < 4.0


@every_network
def test_every_checkpoint_loads_as_a_model_with_the_loss_that_is_written(
    network: str, tmp_path: Path
) -> None:
    from transformers import AutoModelForCausalLM

    trained(tmp_path / "model", corpus(), recipe(network))
    record = read_record(tmp_path / "model")
    assert record is not None
    held = training.evenly_spaced(
        training.token_stream(
            training.trained_tokenizer(_seen(corpus()), 300), training.held_out(corpus())
        ),
        training.HELD_OUT_SEQUENCES,
        16,
    )
    for checkpoint in record.checkpoints[:: len(record.checkpoints) - 1]:
        loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "model" / checkpoint.revision)
        ids = torch.from_numpy(held)
        with torch.no_grad():
            logits = loaded.eval()(ids[:, :-1], use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        assert checkpoint.validation_loss == pytest.approx(loss.item(), rel=1e-5)


def _seen(text: Corpus) -> Corpus:
    return make_corpus("training", [d for d in text.documents if not is_held_out(d)])


def test_training_does_not_move_the_global_generator(tmp_path: Path) -> None:
    before = torch.get_rng_state()
    trained(tmp_path / "model", corpus(), recipe(steps=1))
    assert torch.equal(torch.get_rng_state(), before)


def test_learning_rate_rises_and_then_falls_to_a_small_part() -> None:
    source = recipe(steps=200)
    rates = np.array([learning_rate(source, step) for step in range(200)])
    top = int(rates.argmax())
    assert rates.max() == pytest.approx(source.learning_rate)
    assert 2 < top < 20
    assert (np.diff(rates[: top + 1]) > 0).all()
    assert (np.diff(rates[top + 1 :]) < 0).all()
    assert 0.0 < rates[-1] < 0.1 * source.learning_rate


def test_validation_loss_is_the_mean_over_all_tokens_whatever_the_batches() -> None:
    network = tiny_network("gpt_neox")
    sequences = np.random.default_rng(0).integers(3, 99, (21, 13))
    ids = torch.from_numpy(sequences)
    with torch.no_grad():
        logits = network(ids[:, :-1], use_cache=False).logits
    expected = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    with ThreadPoolExecutor(3) as pool:
        found = validation_loss(pool, network, sequences)
    assert found == pytest.approx(expected.item(), rel=1e-5)


def test_gains_biases_and_decay_rates_are_not_drawn_to_zero() -> None:
    for network in (tiny_network("gpt_neox"), tiny_network("mamba")):
        drawn, free = training._optimiser(network.requires_grad_(True)).param_groups
        names = {id(parameter): name for name, parameter in network.named_parameters()}
        assert drawn["weight_decay"] > 0.0 == free["weight_decay"]
        assert len(drawn["params"]) + len(free["params"]) == len(names)
        for parameter in free["params"]:
            assert parameter.dim() < 2 or names[id(parameter)].endswith("A_log")
        assert not any(names[id(p)].endswith("A_log") for p in drawn["params"])
