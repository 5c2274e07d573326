"""Dark and variance shares of a small model against a plain decomposition of its states."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from layergeom.studies import ComponentsStudy, Session
from reference.pga import readout_basis
from tiny_models import DEPTH, WIDTH

POINTS = ["H_0", "H_1", "H_2", "H_3", "out"]


def plain_shares(study: ComponentsStudy, point: str, sample: int) -> tuple[np.ndarray, np.ndarray]:
    sequences, positions = (where[sample] for where in study.pga.tokens)
    states = study.pga.states.at(point)[sequences, positions].astype(np.float64)
    _, values, rows = np.linalg.svd(states - states.mean(axis=0))
    basis = readout_basis(study.pga.states.artefact.array("unembedding"), study.pga.readout_dim)
    dark = [1.0 - np.sum((row @ basis) ** 2) for row in rows[:10]]
    return np.array(dark), values[:10] ** 2 / np.sum(values**2)


def test_shares_are_those_of_the_sampled_states(readout_session: Session) -> None:
    study = ComponentsStudy(readout_session)
    table = study.samples()
    assert list(table["point"].unique()) == POINTS
    assert len(table) == len(POINTS) * 4 * 10
    for (point, sample), group in table.groupby(["point", "sample"]):
        dark, variance = plain_shares(study, str(point), int(sample))
        assert list(group["component"]) == list(range(1, 11))
        np.testing.assert_allclose(group["dark_share"], dark, atol=1e-5)
        np.testing.assert_allclose(group["variance_share"], variance, atol=1e-6)


def test_a_random_direction_is_dark_by_what_the_readout_leaves(readout_session: Session) -> None:
    assert ComponentsStudy(readout_session).random == 1.0 - 8 / WIDTH
    other = replace(readout_session.settings, readout_dim=5)
    assert ComponentsStudy(Session(other)).random == 1.0 - 5 / WIDTH


def test_layers_have_means_and_students_intervals_in_order(readout_session: Session) -> None:
    study = ComponentsStudy(readout_session)
    table, samples = study.by_layer(), study.samples()
    assert list(table.columns) == [
        *("point", "depth", "component", "dark_share", "dark_low", "dark_high"),
        *("variance_share", "variance_low", "variance_high"),
    ]
    assert list(table["depth"][::10]) == [0, 1, 2, DEPTH, DEPTH]
    row = table[(table["point"] == "H_2") & (table["component"] == 3)].iloc[0]
    chosen = samples[(samples["point"] == "H_2") & (samples["component"] == 3)]["dark_share"]
    low, high = stats.t.interval(0.95, 3, loc=chosen.mean(), scale=stats.sem(chosen))
    assert (row["dark_share"], row["dark_low"], row["dark_high"]) == pytest.approx(
        (chosen.mean(), low, high)
    )


def planted(dark: list[list[float]]) -> pd.DataFrame:
    """Dark shares of the first component by sample and layer; the second one's are nonsense."""
    rows = [
        {"point": point, "depth": min(depth, len(row) - 2), "component": c, "sample": sample}
        | {"dark_share": share if c == 1 else 0.1 * sample}
        for sample, row in enumerate(dark)
        for depth, (point, share) in enumerate(zip(POINTS, row, strict=True))
        for c in (1, 2)
    ]
    return pd.DataFrame(rows)


def test_the_rise_is_that_of_the_zone_over_the_first_third(
    readout_session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Layers 0 to 3 and out: the first third of three blocks is layer 1.
    dark = [[0.9, 0.2, 0.6, 0.8, 0.0], [0.1, 0.3, 0.9, 0.7, 0.0], [0.5, 0.1, 0.5, 0.7, 1.0]]
    monkeypatch.setattr(ComponentsStudy, "samples", lambda _: planted(dark))
    found = ComponentsStudy(readout_session).rise((2, 3))
    assert found.value == pytest.approx(0.5)
    assert found.ci_low < found.value < found.ci_high
    single = ComponentsStudy(readout_session).rise((2, 2))
    low, high = stats.t.interval(0.95, 2, loc=1.4 / 3, scale=stats.sem([0.4, 0.6, 0.4]))
    assert (single.value, single.ci_low, single.ci_high) == pytest.approx((1.4 / 3, low, high))


def test_a_second_run_reads_what_is_stored(
    readout_session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ComponentsStudy(readout_session).samples()

    def refuse(*_: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr(ComponentsStudy, "_measure", refuse)
    pd.testing.assert_frame_equal(
        ComponentsStudy(Session(readout_session.settings)).samples(), first
    )
