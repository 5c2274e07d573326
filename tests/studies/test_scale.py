"""Models side by side: each row is what the model's own profile says."""

import math

import pandas as pd
import pytest

from layergeom.models.checkpoints import training_record
from layergeom.studies import PGAStudy, Session, Settings, Sizes, scale_profiles, scale_table
from layergeom.studies.scale import family_of
from tiny_models import DEPTH, WIDTH

SIZES = Sizes(
    sequence_length=32,
    bank_sequences=8,
    query_sequences=2,
    pga_tokens=40,
    pga_samples=2,
    null_subspaces=5,
)


@pytest.fixture
def sessions(tiny_settings: Settings) -> list[Session]:
    given = Settings(tiny_settings.model, tiny_settings.corpus, SIZES)
    return [Session(given), Session(Settings("smoke-pythia", sizes=SIZES))]


def test_a_row_holds_the_extremes_of_the_models_own_profile(sessions: list[Session]) -> None:
    table = scale_table(sessions)
    assert list(table["model"]) == ["tiny-neox", "smoke-pythia"]
    assert list(table["layers"]) == [DEPTH, 6]
    assert list(table["width"]) == [WIDTH, 32]
    for row, session in zip(table.to_dict("records"), sessions, strict=True):
        profile = PGAStudy(session).profile()
        layers = profile.by_layer().set_index("point")
        inner = layers.loc["H_1" : f"H_{session.states.depth - 1}"]
        assert row["peak_z"] == inner["z"].max()
        assert row["lowest_z"] == inner["z"].min()
        assert layers.loc[row["lowest_point"], "ci_low"] == row["lowest_ci_low"]
        assert row["final_z"] == layers.loc[f"H_{session.states.depth}", "z"]
        assert row["out_ci_high"] == layers.loc["out", "ci_high"]
        assert row["regime"] == profile.regime().regime


def test_losses_of_training_are_there_for_models_trained_here_only(
    sessions: list[Session],
) -> None:
    given, trained = scale_table(sessions).to_dict("records")
    record = training_record("smoke-pythia")
    assert record is not None
    assert trained["validation_loss"] == record.validation_loss
    assert trained["bigram_loss"] == record.bigram_loss
    assert trained["tokens_seen"] == record.tokens_seen
    assert trained["beats_bigram"] is record.beats_bigram
    assert math.isnan(given["validation_loss"])
    assert given["beats_bigram"] is None
    assert given["loss"] == sessions[0].states.facts["loss"]


def test_profiles_run_from_the_first_layer_to_the_last(sessions: list[Session]) -> None:
    table = scale_profiles(sessions)
    for _, group in table.groupby("model"):
        hidden = group[group["point"] != "out"]
        assert hidden["relative_depth"].iloc[0] == 0.0
        assert hidden["relative_depth"].iloc[-1] == 1.0
        assert hidden["relative_depth"].is_monotonic_increasing
        assert group[group["point"] == "out"]["relative_depth"].item() == 1.0
    own = PGAStudy(sessions[1]).profile().by_layer()
    pd.testing.assert_series_equal(
        table[table["model"] == "smoke-pythia"]["z"].reset_index(drop=True), own["z"]
    )


def test_a_family_is_the_catalogues_or_the_model_itself() -> None:
    assert family_of("smoke-pythia") == "smoke-pythia"
    assert family_of("mini-pythia-d32") == "mini-pythia"
    assert family_of("EleutherAI/pythia-70m") == "EleutherAI/pythia"
    assert family_of("state-spaces/mamba-1.4b-hf") == "state-spaces/mamba"
    assert family_of("distilbert/distilgpt2") == "distilbert/distilgpt2"
    assert family_of("run-7/own") == "run-7/own"
