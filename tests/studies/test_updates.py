"""The summary's figures are plain statistics of what is stored by token."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata, spearmanr

from layergeom.studies import BASELINES, CLASSES, Session, UpdatesStudy, middle_third
from layergeom.studies.controls import CONTROLS
from layergeom.studies.function_classes import function_classes
from layergeom.studies.updates_across import updates_overall, updates_profiles
from reference import bootstrap, energy
from tiny_models import DEPTH

BLOCK = 1


@pytest.fixture(scope="module")
def study(tiny_settings: Any) -> UpdatesStudy:
    return UpdatesStudy(Session(tiny_settings))


@pytest.fixture(scope="module")
def summary(study: UpdatesStudy) -> pd.DataFrame:
    return study.summary()


def row(table: pd.DataFrame, name: str, quantity: str, block: int | None = None) -> pd.Series:
    found = table[(table["class"] == name) & (table["quantity"] == quantity)]
    if block is not None:
        found = found[found["block"] == block]
    assert len(found) == 1, (name, quantity, block)
    return found.iloc[0]


def tokens(study: UpdatesStudy, name: str, block: int = BLOCK) -> pd.DataFrame:
    table = study.fits.block(block).tokens
    return table[table["class"] == name].reset_index(drop=True)


def of_class(table: pd.DataFrame, name: str) -> pd.DataFrame:
    return table[table["class"] == name].reset_index(drop=True)


def assert_median(
    found: pd.Series, values: pd.Series, sequences: pd.Series, draws: np.ndarray
) -> None:
    values, which = values.to_numpy(), sequences.to_numpy()
    assert found["value"] == pytest.approx(np.median(values), rel=1e-9)
    ends = np.percentile(bootstrap.medians(values, which, draws), [2.5, 97.5])
    np.testing.assert_allclose([found["ci_low"], found["ci_high"]], ends, rtol=1e-9)


def test_every_class_has_its_quantities_at_every_block(summary: pd.DataFrame) -> None:
    by_class = summary.groupby("class")["quantity"].agg(set)
    for name in CLASSES:
        assert {"kl", "spearman_relerr_kl", "partial_spearman_relerr_kl"} <= by_class[name]
        assert "energy_tokenwise_minus_residual_state" in by_class[name]
        assert "cos_tokenwise_minus_residual_state" in by_class[name]
    for name in BASELINES:
        assert "rel_err_state" in by_class[name]
        assert not any(quantity.startswith("kl") for quantity in by_class[name])
    extra = {"kl_single", "spearman_relerr_kl_single", "partial_spearman_relerr_kl_single"}
    assert by_class["orthogonal"] - by_class["diagonal"] == extra
    assert (
        (summary.groupby(["class", "quantity"])["block"].agg(list).map(sorted))
        .map(lambda blocks: blocks == list(range(DEPTH)))
        .all()
    )


@pytest.mark.parametrize("name", ["orthogonal", "mlp", "mean_update"])
def test_paired_difference_of_cosines_is_taken_token_by_token(
    study: UpdatesStudy, summary: pd.DataFrame, name: str
) -> None:
    table = tokens(study, name)
    more = table["cos_full_tokenwise_state"] - table["cos_full_residual_state"]
    found = row(summary, name, "cos_tokenwise_minus_residual_state", BLOCK)
    assert_median(found, more, table["sequence"], study.decomposed_draws)


@pytest.mark.parametrize("name", ["orthogonal", "low_rank"])
def test_energy_shares_and_their_difference_share_the_draws(
    study: UpdatesStudy, summary: pd.DataFrame, name: str
) -> None:
    states, places = study.fits.states, study.fits.query_places
    full = states.at(f"H_{BLOCK + 1}")[9:][places].astype(np.float64)
    t = study.fits.predicted(BLOCK, name).astype(np.float64)
    weightings = [np.ones(4), *study.decomposed_draws.astype(float)]
    with np.errstate(invalid="ignore"):
        shares = np.array(
            [energy.shares(full, t, full - t, places[0], 4, w) for w in weightings if _both(w)]
        )
    for part, values in (
        ("tokenwise", shares[:, 1]),
        ("residual", shares[:, 2]),
        ("tokenwise_minus_residual", shares[:, 1] - shares[:, 2]),
    ):
        found = row(summary, name, f"energy_{part}_state", BLOCK)
        ends = np.percentile(values[1:], [2.5, 97.5])
        expected = [values[0], *ends]
        np.testing.assert_allclose(found[["value", "ci_low", "ci_high"]].tolist(), expected)


def _both(weights: np.ndarray) -> bool:
    """Whether a draw holds sequences of either half; the others are gaps."""
    return bool(weights[::2].sum() and weights[1::2].sum())


def test_energy_by_dimension_agrees_with_the_summary_and_grows(
    study: UpdatesStudy, summary: pd.DataFrame
) -> None:
    table = study.energy_by_dimension(BLOCK, "orthogonal", "update")
    for part, rows in table.groupby("part"):
        assert list(rows["dimension"]) == list(range(1, len(rows) + 1))
        assert (np.diff(rows["value"]) >= 0).all()
        found = row(summary, "orthogonal", f"energy_{part}_update", BLOCK)
        at = rows[rows["dimension"] == study.settings.sizes.subspace_dim].iloc[0]
        columns = ["value", "ci_low", "ci_high"]
        np.testing.assert_allclose(found[columns].tolist(), at[columns].tolist())


def residuals(values: np.ndarray, given: np.ndarray) -> np.ndarray:
    """What a linear fit on the ranks of the given leaves of the ranks."""
    design = np.column_stack([np.ones(len(given)), *(rankdata(g) for g in given.T)])
    ranks = rankdata(values)
    return ranks - design @ np.linalg.lstsq(design, ranks, rcond=None)[0]


@pytest.mark.parametrize("ending", ["", "_single"])
def test_correlations_are_plain_and_given_length_and_position(
    study: UpdatesStudy, summary: pd.DataFrame, ending: str
) -> None:
    if ending:
        table = study.single.table()
        table = table[table["block"] == BLOCK]
    else:
        table = study.fits.block(BLOCK).effects("orthogonal")
        own = study.fits.states.at(f"H_{BLOCK + 1}")[9 + table["sequence"], table["position"]]
        np.testing.assert_allclose(table["length"], np.linalg.norm(own, axis=1), rtol=1e-6)
    error, kl = table["rel_err_state"].to_numpy(), table["kl"].to_numpy()
    given = table[["length", "position"]].to_numpy(dtype=float)
    plain = row(summary, "orthogonal", f"spearman_relerr_kl{ending}", BLOCK)["value"]
    partial = row(summary, "orthogonal", f"partial_spearman_relerr_kl{ending}", BLOCK)["value"]
    assert plain == pytest.approx(spearmanr(error, kl).statistic)
    expected = np.corrcoef(residuals(error, given), residuals(kl, given))[0, 1]
    assert partial == pytest.approx(expected, abs=1e-9)
    median = row(summary, "orthogonal", f"kl{ending}", BLOCK)
    assert_median(median, table["kl"], table["sequence"], study.replaced_draws)


@pytest.mark.parametrize("control", CONTROLS)
def test_controls_are_compared_token_by_token(study: UpdatesStudy, control: str) -> None:
    summary = study.equal_errors()
    assert set(summary["block"]) == set(range(DEPTH))
    own = of_class(study.fits.block(BLOCK).kl, "orthogonal")
    other = of_class(study.controls.block(BLOCK), control)
    assert (own[["sequence", "position"]] == other[["sequence", "position"]]).all(axis=None)
    draws, sequences = study.replaced_draws, own["sequence"]
    found = row(summary, "orthogonal", f"kl_{control}", BLOCK)
    assert_median(found, other["kl"], sequences, draws)
    found = row(summary, "orthogonal", f"kl_minus_{control}", BLOCK)
    assert_median(found, own["kl"] - other["kl"], sequences, draws)


def test_a_summary_does_not_pay_for_the_controls(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = UpdatesStudy(session)
    monkeypatch.setattr(type(study.controls), "_measure", None)
    assert not study.summary()["quantity"].str.contains("random|along").any()


def test_one_class_alone_is_summarised_without_single_positions(
    session: Session, summary: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = UpdatesStudy(session, ("orthogonal",))

    def refuse(*_: object) -> None:
        raise AssertionError("measured")

    monkeypatch.setattr(type(study.single), "_measure", refuse)
    alone = study.summary()
    assert not alone["quantity"].str.contains("single").any()
    whole = of_class(summary, "orthogonal").set_index(["block", "quantity"])["value"]
    for found in alone.to_dict("records"):
        assert found["value"] == pytest.approx(
            whole[found["block"], found["quantity"]], nan_ok=True
        )


def test_overall_takes_blocks_together_in_each_draw(study: UpdatesStudy) -> None:
    overall, middle = study.overall(), list(middle_third(DEPTH))
    rest = [block for block in range(DEPTH) if block not in middle]
    draws = study.decomposed_draws

    def drawn(column: str) -> np.ndarray:
        by_block = []
        for block in range(DEPTH):
            table = tokens(study, "diagonal", block)
            values, which = table[column].to_numpy(), table["sequence"].to_numpy()
            by_block.append([np.median(values), *bootstrap.medians(values, which, draws)])
        return np.array(by_block)

    error, cosine = drawn("rel_err_state"), drawn("cos_full_tokenwise_state")
    rho = []
    for block in range(DEPTH):
        table = study.fits.block(block).effects("diagonal")
        x, y = table["rel_err_state"].to_numpy(), table["kl"].to_numpy()
        which = table["sequence"].to_numpy()
        expected = bootstrap.spearmans(x, y, which, study.replaced_draws)
        rho.append([spearmanr(x, y).statistic, *expected])
    for quantity, values in {
        "median_rel_err_state": np.median(error, axis=0),
        "middle_minus_rest_rel_err_state": np.median(error[middle], axis=0)
        - np.median(error[rest], axis=0),
        "middle_minus_rest_cos_full_tokenwise_state": np.median(cosine[middle], axis=0)
        - np.median(cosine[rest], axis=0),
        "median_spearman_relerr_kl": np.median(rho, axis=0),
        "max_spearman_relerr_kl": np.max(rho, axis=0),
    }.items():
        found = row(overall, "diagonal", quantity)
        expected = [values[0], *np.percentile(values[1:], [2.5, 97.5])]
        np.testing.assert_allclose(
            found[["value", "ci_low", "ci_high"]].tolist(), expected, atol=1e-9, err_msg=quantity
        )
    with_effect = set(overall[overall["quantity"] == "max_spearman_relerr_kl"]["class"])
    assert with_effect == set(CLASSES)


@pytest.mark.parametrize(
    ("depth", "middle"), [(1, [0]), (3, [1]), (4, [1, 2]), (6, [2, 3]), (30, [*range(10, 20)])]
)
def test_middle_third_leaves_as_many_blocks_on_either_side(depth: int, middle: list[int]) -> None:
    assert list(middle_third(depth)) == middle


def test_best_class_has_the_lowest_error_and_baselines_do_not_compete(
    study: UpdatesStudy, summary: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study.fits, "undertrained", lambda: [1])
    table = function_classes(study)
    assert len(table) == DEPTH * len(CLASSES + BASELINES)
    assert set(table[table["baseline"]]["class"]) == set(BASELINES)
    flagged = table[table["undertrained"]]
    assert list(zip(flagged["class"], flagged["block"], strict=True)) == [("mlp", 1)]
    for block in range(DEPTH):
        rows = table[table["block"] == block].set_index("class")
        competing = [name for name in CLASSES if (name, block) != ("mlp", 1)]
        errors = {name: row(summary, name, "rel_err_state", block)["value"] for name in competing}
        assert list(rows.index[rows["best"]]) == [min(errors, key=errors.__getitem__)]
        for name, error in errors.items():
            assert rows.loc[name, "rel_err_state"] == error
            low = row(summary, name, "rel_err_state", block)["ci_low"]
            assert rows.loc[name, "rel_err_state_low"] == low


def test_an_undertrained_map_that_would_win_does_not(
    study: UpdatesStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    winning = function_classes(study).groupby("block")["rel_err_state"].min()
    monkeypatch.setattr(study.fits, "undertrained", lambda: list(range(DEPTH)))
    table = study.summary()
    table.loc[table["class"] == "mlp", "value"] = 0.0
    monkeypatch.setattr(study, "summary", lambda: table)
    best = function_classes(study)
    assert "mlp" not in set(best[best["best"]]["class"])
    assert len(winning) == DEPTH


def test_models_stand_side_by_side_with_their_kind_and_depth(
    session: Session, summary: pd.DataFrame
) -> None:
    table = updates_profiles([session, session])
    assert set(table["class"]) == {"orthogonal"}
    assert set(table["kind"]) == {"transformer"}
    assert len(table) == 2 * len(of_class(summary, "orthogonal"))
    depth = table.groupby("block")["relative_depth"].unique()
    np.testing.assert_allclose(np.concatenate(depth), (np.arange(DEPTH) + 0.5) / DEPTH)
    overall = updates_overall([session])
    assert set(overall["model"]) == {"tiny-neox"}
    assert (overall["layers"] == DEPTH).all()
