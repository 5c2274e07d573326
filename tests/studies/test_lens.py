"""The lens of a small model: on the replaced sequences' tokens, and read without the model."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import spearmanr

from layergeom.errors import NotMeasurableError
from layergeom.geometry import sequence_draws
from layergeom.studies import LensStudy, PGAStudy, Session
from layergeom.studies.settings import generator
from reference.bootstrap import replicate
from reference.kl import divergence
from tiny_models import DEPTH

BANK, REPLACED, LENGTH, SKIP = 9, 2, 16, 1


def test_readings_are_those_of_the_replaced_sequences_without_skipped_positions(
    readout_session: Session,
) -> None:
    study = LensStudy(readout_session)
    network = readout_session.model.network
    ids = torch.from_numpy(readout_session.states.tokens[BANK : BANK + REPLACED])
    kl, agreement = study.artefact.array("kl"), study.artefact.array("agreement")
    assert kl.shape == agreement.shape == (DEPTH + 1, REPLACED, LENGTH - SKIP)
    with torch.no_grad():
        found = network(ids, output_hidden_states=True, use_cache=False)
        # The last entry is after the norm; the others are the states before each block.
        for layer, hidden in enumerate(found.hidden_states[:-1]):
            lens = network.get_output_embeddings()(network.gpt_neox.final_layer_norm(hidden))
            for s in range(REPLACED):
                for p in range(SKIP, LENGTH):
                    own, other = found.logits[s, p].numpy(), lens[s, p].numpy()
                    place = (layer, s, p - SKIP)
                    assert kl[place] == pytest.approx(divergence(own, other), abs=1e-5)
                    assert agreement[place] == (own.argmax() == other.argmax())


def test_the_last_layer_reads_as_the_prediction_itself(readout_session: Session) -> None:
    last = LensStudy(readout_session).table().query("depth == @DEPTH").set_index("quantity")
    assert last.loc["kl", ["value", "ci_low", "ci_high"]].tolist() == [0.0, 0.0, 0.0]
    assert last.loc["agreement", ["value", "ci_low", "ci_high"]].tolist() == [1.0, 1.0, 1.0]


def test_the_table_has_the_median_divergence_and_the_share_of_agreement(
    readout_session: Session,
) -> None:
    sizes = readout_session.settings.sizes.model_copy(
        update={"replaced_sequences": 4, "bootstrap_draws": 60}
    )
    study = LensStudy(Session(replace(readout_session.settings, sizes=sizes)))
    table = study.table()
    assert list(table.columns) == ["point", "depth", "quantity", "value", "ci_low", "ci_high"]
    kl = study.artefact.array("kl")
    assert kl.shape[1] == 4
    agreement = study.artefact.array("agreement")
    draws = sequence_draws(4, 60, generator(study.settings.seed, "bootstrap lens"))
    where = np.repeat(np.arange(4), LENGTH - SKIP)
    for layer in range(DEPTH):
        rows = table[table["depth"] == layer].set_index("quantity")
        for quantity, tokens, summary in (
            ("kl", kl[layer].ravel(), np.median),
            ("agreement", agreement[layer].ravel(), np.mean),
        ):
            drawn = [summary(tokens[replicate(where, draw)]) for draw in draws]
            expected = [summary(tokens), *np.percentile(drawn, [2.5, 97.5])]
            found = rows.loc[quantity, ["value", "ci_low", "ci_high"]].tolist()
            assert found == pytest.approx(expected)


def test_correlations_with_z_are_over_the_layers(readout_session: Session) -> None:
    study = LensStudy(readout_session)
    table = study.table()
    z = PGAStudy(readout_session).profile().by_layer(1)["z"].to_numpy()[: DEPTH + 1]
    found = study.correlations().set_index("quantity")
    assert set(found.index) == {"kl", "agreement"}
    for quantity, row in found.iterrows():
        values = table[table["quantity"] == quantity]["value"]
        assert row["value"] == pytest.approx(spearmanr(values, z).statistic)
        assert -1.0 <= row["ci_low"] <= row["ci_high"] <= 1.0


def test_one_sequence_leaves_no_interval(readout_session: Session) -> None:
    sizes = readout_session.settings.sizes.model_copy(update={"replaced_sequences": 1})
    study = LensStudy(Session(replace(readout_session.settings, sizes=sizes)))
    with pytest.raises(NotMeasurableError, match=r"1 query sequences: .* need 2 or more"):
        study.table()


def test_stored_readings_are_read_without_the_model(
    readout_session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = LensStudy(readout_session).table()

    def refuse(*_: object) -> None:
        raise AssertionError("the model was loaded")

    monkeypatch.setattr("layergeom.models.language_model.load_files", refuse)
    pd.testing.assert_frame_equal(LensStudy(Session(readout_session.settings)).table(), first)
