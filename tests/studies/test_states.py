"""The stored states are those of the model, each in its role."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from layergeom.corpora.documents import is_held_out
from layergeom.models.capture import capture
from layergeom.models.language_model import load
from layergeom.studies import Session, Settings, Sizes
from tiny_models import BOS, DEPTH, TOKENS, WIDTH


def test_stored_states_equal_a_fresh_capture(session: Session) -> None:
    states = session.states
    fresh = capture(load(session.settings.model), states.tokens)
    for layer in range(DEPTH + 1):
        np.testing.assert_allclose(states.at(f"H_{layer}"), fresh.hidden[layer], atol=1e-5)
    np.testing.assert_allclose(states.at("out"), fresh.out, atol=1e-5)
    assert states.points == ["H_0", "H_1", "H_2", "H_3", "out"]
    assert (states.depth, states.width) == (DEPTH, WIDTH)
    assert states.artefact.array("unembedding").shape == (TOKENS, WIDTH)
    assert states.artefact.facts["vocabulary"] == TOKENS


def test_every_sequence_starts_with_the_one_bos(session: Session) -> None:
    tokens = session.states.tokens
    assert tokens.shape == (13, 16)
    assert (tokens[:, 0] == BOS).all()
    assert (tokens[:, 1:] != BOS).all()
    assert session.states.artefact.facts["bos"] == BOS


def test_bank_comes_first_and_shares_no_document_with_the_query(session: Session) -> None:
    documents = session.states.artefact.array("documents")
    assert not set(documents[:9]) & set(documents[9:])


def test_roles_are_flat_and_without_the_skipped_positions(session: Session) -> None:
    states = session.states
    tokens = states.tokens
    np.testing.assert_array_equal(
        states.bank(tokens), [tokens[s, p] for s in range(9) for p in range(1, 16)]
    )
    np.testing.assert_array_equal(
        states.query(tokens), [tokens[s, p] for s in range(9, 13) for p in range(1, 16)]
    )
    assert states.bank(states.at("H_1")).shape == (9 * 15, WIDTH)
    np.testing.assert_array_equal(states.query(states.at("H_1"))[17], states.at("H_1")[10, 3])


def test_sequences_are_counted_within_their_role(session: Session) -> None:
    states = session.states
    np.testing.assert_array_equal(states.sequence_of(states.bank), np.repeat(np.arange(9), 15))
    np.testing.assert_array_equal(states.sequence_of(states.query), np.repeat(np.arange(4), 15))


def test_skipped_variance_is_the_share_of_the_first_position(session: Session) -> None:
    stored = session.states.artefact.facts["skipped_variance"]
    assert len(stored) == DEPTH + 1
    for layer, share in enumerate(stored):
        hidden = session.states.at(f"H_{layer}").astype(np.float64)
        mean = hidden.reshape(-1, WIDTH).mean(axis=0)
        energy = [[np.sum((token - mean) ** 2) for token in sequence] for sequence in hidden]
        assert share == pytest.approx(np.sum(energy, axis=0)[0] / np.sum(energy), rel=1e-6)


def test_stored_states_are_read_without_the_model(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = session.states.at("H_2")

    def refuse(*_: object) -> None:
        raise AssertionError("the model was loaded")

    monkeypatch.setattr("layergeom.models.language_model.load_files", refuse)
    np.testing.assert_array_equal(Session(session.settings).states.at("H_2"), first)


@pytest.mark.parametrize(
    "change", [{"seed": 4}, {"sizes": Sizes(sequence_length=12, bank_sequences=9)}]
)
def test_another_seed_or_size_is_another_result(session: Session, change: dict[str, Any]) -> None:
    other = Session(replace(session.settings, **change))
    assert other.states.artefact.folder != session.states.artefact.folder
    assert not np.array_equal(other.states.tokens, session.states.tokens)


def test_another_text_or_weight_is_another_result(session: Session, tmp_path: Path) -> None:
    inputs = session._states_inputs()
    text = tmp_path / "text.txt"
    text.write_text(Path(session.settings.corpus).read_text() + "!")
    assert Session(replace(session.settings, corpus=str(text)))._states_inputs() != inputs

    from safetensors.torch import load_file, save_file

    folder = tmp_path / "tiny-neox"
    folder.mkdir()
    for file in Path(session.settings.model).iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    settings = replace(session.settings, model=str(folder))
    # The same model in another place is the same model.
    assert Session(settings)._states_inputs() == inputs
    weights = load_file(folder / "model.safetensors")
    next(iter(weights.values())).view(-1)[0] += torch.tensor(1.0)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    assert Session(settings)._states_inputs() != inputs


def test_sequences_are_no_longer_than_the_models_context(session: Session) -> None:
    long = replace(session.settings, sizes=Sizes(sequence_length=500))
    assert Session(long).sequence_length == 64
    assert session.sequence_length == 16


def test_a_model_trained_here_is_measured_on_held_out_documents_only() -> None:
    session = Session(Settings("smoke-pythia"))
    assert session.files.trained_on == "wikipedia-sample"
    assert 0 < len(session.corpus.documents) < 107 / 4
    assert all(is_held_out(document) for document in session.corpus.documents)
