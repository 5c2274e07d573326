"""Spectral metrics of a small model: of the right tokens, and correlated with its own z."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from layergeom.geometry import spectral_metrics
from layergeom.studies import PGAStudy, Session, SpectralStudy
from tiny_models import DEPTH

POINTS = ["H_0", "H_1", "H_2", "H_3", "out"]


def test_metrics_are_those_of_the_sampled_states(readout_session: Session) -> None:
    study = SpectralStudy(readout_session)
    table = study.samples()
    for point in ("H_1", "out"):
        for sample in (0, 3):
            sequences, positions = (where[sample] for where in study.pga.tokens)
            expected = spectral_metrics(study.pga.states.at(point)[sequences, positions])
            rows = table[(table["point"] == point) & (table["sample"] == sample)]
            assert dict(zip(rows["metric"], rows["value"], strict=True)) == pytest.approx(expected)


def test_the_table_has_every_point_and_metric_with_students_intervals(
    readout_session: Session,
) -> None:
    study = SpectralStudy(readout_session)
    table = study.table()
    assert list(table.columns) == ["point", "depth", "metric", "value", "ci_low", "ci_high"]
    assert list(table["point"].unique()) == POINTS
    assert set(table["metric"]) == {
        *("rankme", "rankme_centred", "alpha_req", "isoscore", "partition_isotropy"),
        *("mean_cosine", "participation_ratio", "condition_number"),
    }
    assert len(table) == len(POINTS) * 8
    assert list(table.drop_duplicates("point")["depth"]) == [0, 1, 2, DEPTH, DEPTH]
    row = table[(table["point"] == "H_1") & (table["metric"] == "rankme")].iloc[0]
    samples = study.samples()
    chosen = samples[(samples["point"] == "H_1") & (samples["metric"] == "rankme")]["value"]
    low, high = stats.t.interval(0.95, 3, loc=chosen.mean(), scale=stats.sem(chosen))
    assert (row["value"], row["ci_low"], row["ci_high"]) == pytest.approx(
        (chosen.mean(), low, high)
    )


def test_correlations_are_over_the_layers_and_leave_the_final_norm_out(
    readout_session: Session,
) -> None:
    study = SpectralStudy(readout_session)
    table, found = study.table(), study.correlations()
    z = PGAStudy(readout_session).profile().by_layer(1)["z"].to_numpy()[: DEPTH + 1]
    assert len(found) == 8
    for row in found.itertuples():
        values = table[(table["metric"] == row.metric) & (table["point"] != "out")]["value"]
        assert row.value == pytest.approx(stats.spearmanr(values, z).statistic)
        assert -1.0 <= row.ci_low <= row.ci_high <= 1.0


def test_a_metric_that_is_z_itself_correlates_by_one(
    readout_session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same samples are drawn for metric and z, so nothing comes between the two."""
    samples = PGAStudy(readout_session).profile().samples
    planted = samples[samples["level"] == 1].rename(columns={"z": "value"})
    monkeypatch.setattr(SpectralStudy, "samples", lambda _: planted.assign(metric="z"))
    found = SpectralStudy(readout_session).correlations().iloc[0]
    assert (found["value"], found["ci_low"], found["ci_high"]) == pytest.approx((1.0, 1.0, 1.0))


def test_a_second_run_reads_what_is_stored(
    readout_session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = SpectralStudy(readout_session).samples()

    def refuse(*_: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr(SpectralStudy, "_measure", refuse)
    again = SpectralStudy(Session(readout_session.settings)).samples()
    pd.testing.assert_frame_equal(again, first)
    assert np.isfinite(again["value"]).all()
