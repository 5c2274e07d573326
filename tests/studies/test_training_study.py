"""Every checkpoint of a tiny training on the same tokens, and what has no checkpoints."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from layergeom.errors import NotMeasurableError
from layergeom.geometry.components import component_shares
from layergeom.geometry.pga import estimate_z, subspace_pga
from layergeom.geometry.spectral import rankme
from layergeom.models.capture import capture
from layergeom.models.checkpoints import checkpoints
from layergeom.models.language_model import load_files
from layergeom.models.sources import resolve
from layergeom.studies import Session, Settings, Sizes, TrainingStudy
from layergeom.studies.training import CHECKPOINTS

SIZES = Sizes(
    sequence_length=32,
    bank_sequences=10,
    query_sequences=2,
    pga_tokens=60,
    pga_samples=2,
    null_subspaces=5,
)


@pytest.fixture(scope="module")
def study() -> TrainingStudy:
    return TrainingStudy(Session(Settings("smoke-pythia", sizes=SIZES)))


def at(table: pd.DataFrame, step: int, quantity: str, point: str) -> pd.Series:
    rows = table[
        (table["step"] == step) & (table["quantity"] == quantity) & (table["point"] == point)
    ]
    assert len(rows) == 1
    return rows.iloc[0]


def test_every_checkpoint_has_z_at_every_layer_and_after_the_norm(study: TrainingStudy) -> None:
    table = study.table()
    assert list(table["step"].unique()) == [checkpoint.step for checkpoint in study.measured]
    assert len(study.measured) > 4
    for _, group in table.groupby("step"):
        assert list(group["point"]) == [*(f"H_{layer}" for layer in range(1, 7)), "out"]
        assert list(group["depth"]) == [1, 2, 3, 4, 5, 6, 6]
    assert (table["ci_low"] < table["z"]).all()
    assert (table["z"] < table["ci_high"]).all()
    assert study.facts["samples_at_each"] == 2


@pytest.mark.parametrize("kept", [1, 2, CHECKPOINTS, CHECKPOINTS + 1, 16, 40])
def test_of_many_checkpoints_some_are_measured_with_the_first_and_the_last(
    study: TrainingStudy, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    first = checkpoints("smoke-pythia")[0]
    many = tuple(replace(first, step=step) for step in range(kept))
    monkeypatch.setattr("layergeom.studies.training.checkpoints", lambda _: many)
    again = TrainingStudy(study.session)
    steps = [checkpoint.step for checkpoint in again.measured]
    assert len(set(steps)) == len(steps) == min(kept, CHECKPOINTS)
    assert (steps[0], steps[-1]) == (0, kept - 1)
    assert max(np.diff(steps), default=0) <= -(-kept // (CHECKPOINTS - 1))
    assert again.facts["checkpoints_kept"] == kept


def test_a_checkpoints_figures_are_those_of_its_states(study: TrainingStudy) -> None:
    quantities = study.quantities()
    middle = checkpoints("smoke-pythia")[3]
    model = load_files(resolve("smoke-pythia", middle.revision))
    captured = capture(model, study.pga.states.tokens)
    sequences, positions = study.tokens
    samples = captured.hidden[2][sequences, positions]
    k = study.pga.readout_dim
    readout = np.linalg.svd(model.real_unembedding(), full_matrices=False)[2][:k].T
    pga = estimate_z([subspace_pga(s, readout, study.pga.subspaces) for s in samples])
    found = at(quantities, middle.step, "z", "H_2")
    assert found["value"] == pytest.approx(pga.z, abs=1e-3)
    assert found["ci_low"] == pytest.approx(pga.ci_low, abs=1e-3)
    assert found["tokens_seen"] == middle.tokens_seen
    dark = np.mean([component_shares(s, readout, 1).dark_share[0] for s in samples])
    assert at(quantities, middle.step, "dark_share", "H_2")["value"] == pytest.approx(dark)
    rank = np.mean([rankme(s) for s in samples])
    assert at(quantities, middle.step, "rankme", "H_2")["value"] == pytest.approx(rank, rel=1e-5)


def test_the_lens_at_the_last_layer_is_the_model_itself(study: TrainingStudy) -> None:
    quantities = study.quantities()
    for step in quantities["step"].unique():
        assert at(quantities, step, "lens_agreement", "H_6")["value"] == 1.0
        assert at(quantities, step, "lens_kl", "H_6")["value"] == pytest.approx(0.0, abs=1e-6)
    assert not ((quantities["point"] == "out") & quantities["quantity"].eq("lens_kl")).any()


def test_all_steps_read_the_same_tokens_of_few_sequences(study: TrainingStudy) -> None:
    sequences, positions = study.tokens
    assert sequences.max() + 1 == -(-2 * 30 // 31)
    assert positions.min() >= 1
    pairs = set(zip(sequences.ravel(), positions.ravel(), strict=True))
    assert len(pairs) == 60


def test_losses_fall_and_no_two_steps_have_equal_weights(study: TrainingStudy) -> None:
    losses = study.losses()
    assert losses["validation_loss"].iloc[-1] < losses["validation_loss"].iloc[0] - 0.5
    assert (losses["same_as"] == -1).all()
    assert losses["tokens_seen"].is_monotonic_increasing


def test_equal_weights_at_different_steps_are_reported_and_measured_once(
    study: TrainingStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *rest = checkpoints("smoke-pythia")
    doubled = (first, replace(first, step=first.step + 1), *rest[1:])
    monkeypatch.setattr("layergeom.studies.training.checkpoints", lambda _: doubled)
    again = TrainingStudy(study.session)
    losses = again.losses()
    assert list(losses["same_as"])[:3] == [-1, first.step, -1]
    table = again.table()
    own, copy = (table[table["step"] == step]["z"].to_numpy() for step in (0, 1))
    np.testing.assert_array_equal(own, copy)


def test_stored_figures_are_read_without_a_model(
    study: TrainingStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = study.table()

    def refuse(*_: object) -> None:
        raise AssertionError("a model was loaded")

    monkeypatch.setattr("layergeom.models.language_model.load_files", refuse)
    assert TrainingStudy(Session(study.settings)).table().equals(table)


def test_a_model_without_checkpoints_is_refused(session: Session) -> None:
    with pytest.raises(NotMeasurableError, match="has no checkpoints"):
        TrainingStudy(session).table()
