"""z under other choices: the default is the profile's, and each alternative moves one thing."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from layergeom.corpora.packing import spread_tokens
from layergeom.geometry import (
    PGASample,
    estimate_z,
    orthogonal_subspaces,
    random_subspaces,
    variance_matched_subspaces,
)
from layergeom.studies import ChoicesStudy, PGAStudy, Session, choices
from layergeom.studies.settings import generator
from reference import pga as reference
from tiny_models import WIDTH

POINTS = ["H_1", "H_2", "H_3", "out"]
K, NULLS, SAMPLES, SEED = 8, 12, 3, 3


@pytest.fixture
def study(readout_session: Session) -> ChoicesStudy:
    return ChoicesStudy(readout_session)


def rows_of(study: ChoicesStudy, choice: str, alternative: str = "") -> pd.DataFrame:
    table = study.table()
    rows = table[table["choice"].str.startswith(choice)]
    return rows[rows["alternative"].str.startswith(alternative)].set_index("point")


def removed(study: ChoicesStudy, point: str, sample: int) -> np.ndarray:
    sequences, positions = (where[sample] for where in study.pga.tokens)
    return study.pga.states.at(point)[sequences, positions].astype(np.float64)


def plain_z(
    study: ChoicesStudy, point: str, readout: np.ndarray, nulls: list[np.ndarray]
) -> tuple[float, float, float]:
    """z with its interval by slow means, for one null a sample."""
    samples = []
    for sample, null in enumerate(nulls):
        rho, rho_null = reference.subspace_pga(removed(study, point, sample), readout, null, 1)
        samples.append(PGASample(rho, rho_null))
    estimate = estimate_z(samples)
    return estimate.z, estimate.ci_low, estimate.ci_high


def test_every_alternative_has_every_point_and_the_default_comes_first(
    study: ChoicesStudy,
) -> None:
    table = study.table()
    assert study.points == POINTS
    pairs = table[["choice", "alternative"]].drop_duplicates()
    assert len(pairs) == 10
    assert len(table) == 10 * len(POINTS)
    assert table["point"].tolist() == POINTS * 10
    assert table["default"].tolist() == [True] * len(POINTS) + [False] * 9 * len(POINTS)
    assert pairs["choice"].tolist() == [
        "default",
        "gain of the final norm (left out)",
        "mean row of the vocabulary (kept)",
        *["readout dimension (8)"] * 2,
        *["random subspaces (uniform)"] * 2,
        *["tokens a sample (40)"] * 2,
        "seed (3)",
    ]


def test_the_default_is_the_profiles_first_samples(study: ChoicesStudy) -> None:
    profile = PGAStudy(study.session).profile()
    rows = rows_of(study, "default")
    for point in POINTS:
        chosen = profile.samples.query("point == @point and level == 1")["rho_readout"][:SAMPLES]
        nulls = profile.rho_null[point][profile.levels.index(1)]
        expected = estimate_z(
            [PGASample(rho, null) for rho, null in zip(chosen, nulls, strict=False)]
        )
        found = rows.loc[point, ["z", "ci_low", "ci_high"]].tolist()
        assert found == pytest.approx([expected.z, expected.ci_low, expected.ci_high])


@pytest.mark.parametrize("choice", ["gain of", "mean row of"])
def test_another_unembedding_moves_the_readout_alone(study: ChoicesStudy, choice: str) -> None:
    unembedding = study.pga.states.artefact.array("unembedding").astype(np.float64)
    if choice == "gain of":
        prepared = unembedding * study.session.model.final_norm.weight.numpy()
    else:
        prepared = unembedding - unembedding.mean(axis=0)
    readout = reference.readout_basis(prepared, K)
    for point in ("H_2", "out"):
        expected = plain_z(study, point, readout, [study.pga.subspaces] * SAMPLES)
        found = rows_of(study, choice).loc[point, ["z", "ci_low", "ci_high"]].tolist()
        assert found == pytest.approx(expected, abs=1e-4)
        assert found[0] != rows_of(study, "default").loc[point, "z"]


def test_a_smaller_readout_meets_the_same_subspaces_cut_short(study: ChoicesStudy) -> None:
    readout = reference.readout_basis(study.pga.states.artefact.array("unembedding"), K // 2)
    nulls = [study.pga.subspaces[:, :, : K // 2]] * SAMPLES
    found = rows_of(study, "readout dimension", "4").loc["H_2", ["z", "ci_low", "ci_high"]]
    assert found.tolist() == pytest.approx(plain_z(study, "H_2", readout, nulls), abs=1e-4)


def test_a_larger_readout_meets_subspaces_of_its_dimension(study: ChoicesStudy) -> None:
    readout = reference.readout_basis(study.pga.states.artefact.array("unembedding"), 2 * K)
    null = random_subspaces(WIDTH, 2 * K, NULLS, generator(SEED, "null subspaces"))
    found = rows_of(study, "readout dimension", "16").loc["H_2", ["z", "ci_low", "ci_high"]]
    assert found.tolist() == pytest.approx(
        plain_z(study, "H_2", readout, [null] * SAMPLES), abs=1e-4
    )


@pytest.mark.parametrize("null", ["orthogonal", "with the readout's variance"])
def test_the_other_nulls_follow_each_samples_own_states(study: ChoicesStudy, null: str) -> None:
    nulls = []
    for sample in range(SAMPLES):
        states = removed(study, "H_2", sample)
        rng = generator(SEED, "null subspaces")
        if null == "orthogonal":
            centred = states - states.mean(axis=0)
            leading = np.linalg.svd(centred)[2][:1].T
            nulls.append(orthogonal_subspaces(leading, K, NULLS, rng))
        else:
            without = reference.remove_components(states, 1)
            nulls.append(variance_matched_subspaces(without, study.pga.readout, NULLS, rng))
    expected = plain_z(study, "H_2", study.pga.readout, nulls)
    found = rows_of(study, "random", null).loc["H_2", ["z", "ci_low", "ci_high"]].tolist()
    assert found == pytest.approx(expected, abs=1e-3)


def test_another_seed_draws_other_tokens_and_subspaces(study: ChoicesStudy) -> None:
    places = spread_tokens(13, 16, 1, 40, SAMPLES, generator(SEED + 1, "pga tokens"))
    null = random_subspaces(WIDTH, K, NULLS, generator(SEED + 1, "null subspaces"))
    rhos = [
        reference.subspace_pga(study.pga.states.at("H_2")[where], study.pga.readout, null, 1)
        for where in zip(*places, strict=True)
    ]
    found = rows_of(study, "seed").loc["H_2"]
    assert found["rho_readout"] == pytest.approx(np.mean([rho for rho, _ in rhos]), abs=1e-6)
    assert found["z"] == pytest.approx(
        np.mean([PGASample(rho, nulls).z for rho, nulls in rhos]), abs=1e-4
    )
    assert found["z"] != rows_of(study, "default").loc["H_2", "z"]


def test_what_the_text_or_the_width_cannot_give_is_a_gap_with_its_reason(
    study: ChoicesStudy,
) -> None:
    many = rows_of(study, "tokens", "1000")
    assert many["z"].isna().all()
    assert many["reason"].str.contains("need 3000 tokens, and the 13 sequences have 195").all()
    few = rows_of(study, "tokens", "20")
    assert few["z"].notna().all()
    assert (few["reason"] == "").all()
    wide = ChoicesStudy(Session(replace(study.settings, readout_dim=WIDTH // 2)))
    rows = rows_of(wide, "readout dimension", str(WIDTH))
    assert rows["z"].isna().all()
    assert rows["reason"].str.contains(f"the largest is {WIDTH - 1}").all()
    assert rows_of(wide, "readout dimension", str(WIDTH // 4))["z"].notna().all()


def test_a_null_out_of_reach_at_one_point_is_a_gap_there_alone(
    readout_session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = variance_matched_subspaces
    study = ChoicesStudy(Session(replace(readout_session.settings, readout_dim=6)))
    barred = reference.remove_components(removed(study, "H_2", 1), 1)

    def refused(centred: np.ndarray, *rest: object) -> np.ndarray:
        if centred.shape == barred.shape and np.allclose(centred, barred, atol=1e-6):
            raise choices.GeometryError("no null matches it")
        return own(centred, *rest)

    monkeypatch.setattr(choices, "variance_matched_subspaces", refused)
    rows = rows_of(study, "random", "with the readout's variance")
    assert rows.loc["H_2", "reason"] == "no null matches it"
    assert rows["z"].isna().tolist() == [point == "H_2" for point in POINTS]


def test_marks_tell_where_sign_or_verdict_change(
    study: ChoicesStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    nan = float("nan")
    stored = pd.DataFrame(
        [
            ("default", True, "H_1", -3.0, -3.5, -2.5),
            ("default", True, "out", 1.0, 0.5, 1.5),
            ("same", False, "H_1", -4.0, -4.5, -3.5),
            ("same", False, "out", 0.5, -1.0, 1.9),
            ("weaker", False, "H_1", -3.0, -4.5, -1.5),
            ("weaker", False, "out", 2.6, 2.1, 3.1),
            ("turned", False, "H_1", 3.0, 2.5, 3.5),
            ("turned", False, "out", -1.0, -1.9, 0.0),
            ("gap", False, "H_1", nan, nan, nan),
            ("gap", False, "out", nan, nan, nan),
        ],
        columns=["choice", "default", "point", "z", "ci_low", "ci_high"],
    )
    found = SimpleNamespace(table=lambda _: stored.copy())
    monkeypatch.setattr(choices, "compute_or_load", lambda *_: found)
    table = study.table()
    assert table["sign_changes"].tolist() == [False] * 6 + [True, True] + [False] * 2
    assert table["verdict_changes"].tolist() == [
        *(False, False),
        *(False, False),
        *(True, True),
        *(True, False),
        *(False, False),
    ]


def test_the_gain_is_stored_and_read_without_the_model(
    study: ChoicesStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = study.gain

    def refuse(*_: object) -> None:
        raise AssertionError("the model was loaded")

    monkeypatch.setattr("layergeom.models.language_model.load_files", refuse)
    np.testing.assert_array_equal(ChoicesStudy(Session(study.settings)).gain, first)
