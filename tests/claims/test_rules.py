"""The rules at their edges: what counts, what does not, and what is only reported."""

from dataclasses import replace

import pandas as pd
import pytest

from layergeom.claims import Evidence, ModelVerdict, Results, Verdict
from layergeom.claims import readout as r
from layergeom.claims import updates as u
from layergeom.claims.evidence import first_third, intermediate, late, layers, regime_of
from layergeom.errors import NotMeasurableError
from layergeom.studies import CLASSES
from synthetic_evidence import (
    ZONE,
    agreement,
    evidence,
    one,
    overall,
    pga,
    probes,
    spectral,
    stacked,
    training,
    updates,
)

YES, NO, OPEN = Verdict.REPRODUCED, Verdict.NOT_REPRODUCED, Verdict.MIXED
NONE = Verdict.NOT_TESTABLE


def of(results: Results, name: str) -> Evidence:
    return next(model for model in results.models if model.name == name)


def only(models: tuple[ModelVerdict, ...]) -> ModelVerdict:
    (found,) = models
    return found


def test_parts_of_the_depth() -> None:
    table = pga(0.0)["pga"]
    parts = {part: list(part(table, 9)["depth"]) for part in (first_third, intermediate, late)}
    assert parts[first_third] == [1, 2, 3]
    assert parts[late] == [7, 8]
    assert parts[intermediate] == list(range(1, 9))
    assert list(layers(table, 9)["point"]) == [f"H_{layer}" for layer in range(1, 10)]
    assert list(first_third(table, 2)["depth"]) == [1]


def test_a_regime_needs_every_layer_but_the_input() -> None:
    table = ZONE["pga"]
    assert regime_of(table).collapse_zone == (7, 8)
    assert regime_of(table[table["depth"] > 0]).collapse_zone == (7, 8)
    with pytest.raises(NotMeasurableError, match="leaves layers out"):
        regime_of(table[table["depth"] != 4])


def test_the_figure_that_decides_comes_with_its_interval() -> None:
    cosine = [0.1, *[0.98] * 6, 0.97, 0.1]
    found = only(u.parallel(one(updates({"cos_full_tokenwise_state": cosine}, 0.005))).models)
    assert found.estimate is not None
    assert found.estimate.value == 0.97
    assert "0.970 [0.965, 0.975]" in found.measured
    assert "7 of 7 blocks" in found.measured


def test_one_block_less_aligned_by_interval_rules_u2_out() -> None:
    quantities = {
        "cos_tokenwise_minus_residual_state": [*[0.3] * 8, -0.1],
        "angle_tokenwise_residual_state": 80.0,
    }
    assert u.less_aligned(one(updates(quantities))).verdict is NO


def test_models_of_one_size_are_not_ordered_but_each_is_held_against_the_next_size() -> None:
    def model(name: str, width: int, median: float) -> Evidence:
        return evidence(name, overall({"median_spearman_relerr_kl": median}), width=width)

    seeds = [model("a", 32, 0.3), model("a-seed1", 32, 0.35), model("b", 64, 0.5)]
    assert u.stronger_in_larger(Results([*seeds, model("c", 128, 0.7)])).verdict is YES
    assert u.stronger_in_larger(Results([*seeds, model("b-seed1", 64, 0.7)])).verdict is NONE
    low = [*seeds, model("b-seed1", 64, 0.32), model("c", 128, 0.7)]
    assert u.stronger_in_larger(Results(low)).verdict is NO


def test_a_state_space_model_alone_has_nothing_to_be_compared_with() -> None:
    found = u.state_space(one(updates({"rel_err_state": 0.2}), state_space=True))
    assert found.verdict is NONE
    assert only(found.models).measured == "no transformer to compare it with"


def test_a_state_space_model_is_compared_with_all_transformers_together() -> None:
    def model(name: str, energy: float, state_space: bool) -> Evidence:
        table = updates({"energy_tokenwise_minus_residual_state": energy})
        return evidence(name, table, state_space=state_space)

    models = [model("a", 0.5, False), model("b", -0.5, False), model("mamba", 0.5, True)]
    found = u.state_space(Results(models))
    assert found.verdict is OPEN
    assert only(found.models).measured == "U3 reproduced (transformers: mixed)"


def undertrained(blocks: range) -> Verdict:
    shared = {
        "cos_tokenwise_minus_residual_state": 0.5,
        "angle_tokenwise_residual_state": 80.0,
        "spearman_relerr_kl": 0.8,
        "rel_err_state": 0.2,
    }
    energy = "energy_tokenwise_minus_residual_state"
    table = stacked(
        updates({**shared, energy: 0.5}, classes=CLASSES[:-1]),
        updates({**shared, energy: [*[-0.5] * 4, *[0.5] * 5]}, classes=("mlp",)),
    )
    return u.any_class(one(table, undertrained=frozenset(blocks))).verdict


def test_an_undertrained_mlp_decides_nothing() -> None:
    assert CLASSES[-1] == "mlp"
    assert undertrained(range(0)) is NO
    assert undertrained(range(4)) is YES
    assert undertrained(range(9)) is YES


def test_a_class_that_differs_is_named() -> None:
    table = stacked(
        updates({"energy_tokenwise_minus_residual_state": -0.5}, classes=["diagonal"]),
        updates({"energy_tokenwise_minus_residual_state": 0.5}, classes=["low_rank"]),
        updates(
            {
                "cos_tokenwise_minus_residual_state": 0.5,
                "angle_tokenwise_residual_state": 80.0,
                "spearman_relerr_kl": 0.8,
                "rel_err_state": 0.25,
            },
            classes=["diagonal", "low_rank"],
        ),
    )
    text = only(u.any_class(one(table)).models).measured
    assert "U3 not reproduced for diagonal, reproduced for low_rank" in text
    assert "U2 reproduced for all" in text
    assert text.endswith("RelErr: diagonal 0.25, low_rank 0.25")


@pytest.mark.parametrize(
    ("peaks", "wanted"),
    [
        ({5: 15.0}, YES),
        ({2: 15.0}, NO),
        ({2: 15.0, 5: 14.5}, OPEN),
        ({5: 40.0}, NO),
        ({5: 24.3}, OPEN),
    ],
)
def test_the_peak_of_a_large_model(peaks: dict[int, float], wanted: Verdict) -> None:
    assert r.organised_throughout(one(pga(peaks, rest=8.0), width=2048)).verdict is wanted


def test_a_model_of_another_width_is_reported_and_decides_nothing() -> None:
    found = r.organised_throughout(one(pga({5: 15.0}, rest=8.0), width=576))
    assert found.verdict is NONE
    assert only(found.models).measured.startswith("d = 576 decides nothing here; intermediate z")


@pytest.mark.parametrize(
    ("values", "out", "wanted"),
    [
        ({8: -5.0, 9: 5.0}, 5.0, YES),
        ({8: -5.0, 9: -1.0}, -1.0, NO),
        ({8: -5.0, 9: 0.2}, 5.0, OPEN),
        ({8: 0.0, 9: -5.0}, -5.0, NO),
        ({8: 0.0, 9: 5.0}, 5.0, OPEN),
    ],
)
def test_the_final_layer(values: dict[int, float], out: float, wanted: Verdict) -> None:
    assert r.recovers(one(pga(values, out=out))).verdict is wanted


@pytest.mark.parametrize(
    ("late_z", "losses", "wanted"),
    [
        ([5.0, -5.0], [5.0, 4.0], YES),
        ([5.0, -5.0], [5.0, 6.0], OPEN),
        ([5.0, 4.5], [5.0, 4.0], NO),
        ([-5.0, 5.0], [5.0, 4.0], NO),
    ],
)
def test_lost_in_training(late_z: list[float], losses: list[float], wanted: Verdict) -> None:
    assert r.lost_in_training(one(training(late_z, losses))).verdict is wanted


def test_one_level_must_bring_every_layer_back() -> None:
    halves = stacked(pga({1: -3.0}, rest=3.0, level=5), pga({2: -3.0}, rest=3.0, level=10))
    assert r.masked(one(halves, width=768)).verdict is NO
    either = stacked(pga({1: -3.0}, rest=3.0, level=5), pga(3.0, level=10))
    assert r.masked(one(either, width=768)).verdict is YES


def test_the_first_layers_input_is_no_layer() -> None:
    table = stacked(pga({0: -9.0}, rest=3.0, level=5), pga(-3.0, level=10))
    assert r.masked(one(table, width=768)).verdict is YES


def test_a_metric_that_moves_is_named_with_the_range_of_z() -> None:
    swinging = evidence("model", pga({8: -20.0}), spectral({3: 50.0}))
    calm = evidence("calm", pga({8: -9.0}), spectral(1.0))
    found = {model.model: model for model in r.spectra_flat(Results([swinging, calm])).models}
    assert found["model"].measured == "z ranges over 20.0; flat: 1 of 2 metrics (not rankme)"
    assert found["calm"].verdict is NONE
    assert "z ranges over 9.0, no more than 10" in found["calm"].measured


def test_a_single_model_has_no_spread_to_be_held_against() -> None:
    found = r.spectra_flat(one(pga({8: -20.0}), spectral({3: 0.5})))
    assert found.verdict is NONE
    assert "cannot be compared" in only(found.models).measured


def with_checkpoints(
    losses: list[float], late_z: list[float], name: str, bigram: float | None
) -> Evidence:
    return evidence(name, training(late_z, losses), bigram_loss=bigram)


@pytest.mark.parametrize(
    ("bigram", "losses", "wanted"),
    [
        (None, [7.0, 4.0], YES),  # the step after the first counts
        (4.5, [7.0, 4.0], YES),
        (3.5, [7.0, 4.0], OPEN),  # neither has learned more than bigrams
        (None, [7.0, 3.0], OPEN),  # never alike
    ],
)
def test_like_losses_count_once_something_is_learned(
    bigram: float | None, losses: list[float], wanted: Verdict
) -> None:
    first = with_checkpoints([7.0, 4.0], [-5.0, -5.0], "one", bigram)
    second = with_checkpoints(losses, [5.0, 5.0], "other", bigram)
    assert r.hidden_from_the_loss(Results([first, second])).verdict is wanted


def test_one_pair_with_like_losses_and_unlike_regimes_is_enough() -> None:
    shapes = {"a": -5.0, "b": -5.0, "c": 5.0}
    models = [with_checkpoints([7.0, 4.0], [z, z], name, 4.5) for name, z in shapes.items()]
    found = r.hidden_from_the_loss(Results(models))
    assert found.verdict is YES
    assert [pair.verdict for pair in found.models] == [NO, YES, YES]
    assert found.models[1].model == "a and c"
    assert "losses 4.00 and 4.00, regimes detour and direct" in found.models[1].measured


def test_pairs_that_could_not_be_measured_are_said() -> None:
    results = replace(agreement(0.1, 0.1), missing={"one and third": "no common end position"})
    found = r.agree_in_the_readout(results)
    assert found.verdict is YES
    assert found.models[-1] == ModelVerdict("one and third", NONE, "no common end position")


def test_an_unlikely_depth_does_not_decide_agreement() -> None:
    pair = agreement(0.1, 0.1)
    table = pair.pairs[0].along_depth
    table.loc[table["relative_depth"] == 0.0, ["value", "ci_low", "ci_high"]] = -5.0
    assert r.agree_in_the_readout(pair).verdict is YES


def test_probes_are_held_against_the_best_layer_and_the_mean_decides() -> None:
    found = only(r.probes_stay_accurate(one(ZONE, probes(zone=0.85, best=0.9))).models)
    assert found.verdict is NO
    assert found.measured.startswith("accuracy 0.850 [0.845, 0.855] in the zone H_7 to H_8, 0.900")


def test_widths_of_different_classes_are_not_compared() -> None:
    models = [
        evidence("a", pga(5.0), width=2048, family="x"),
        evidence("b", pga(5.0), width=2560, family="y"),
        evidence("c", pga({8: -5.0}, rest=5.0), width=64, family="x"),
        evidence("d", pga({8: -5.0}, rest=5.0), width=1024, family="y"),
        evidence("e", pga(0.0), width=1536, family="y"),
    ]
    found = r.width_decides(Results(models))
    assert found.verdict is YES
    assert {part.model: part.verdict for part in found.models} == {
        "d ≥ 2048": YES,
        "d ≤ 1024": YES,
        "1024 < d < 2048": NONE,
    }


def test_what_was_not_measured_says_why() -> None:
    model = evidence("model", missing={"losses": "model has no checkpoints"})
    found = only(r.lost_in_training(Results([model])).models)
    assert found == ModelVerdict("model", NONE, "model has no checkpoints")


def test_a_gap_leaves_a_rule_open() -> None:
    table = updates({"rel_err_state": [*[0.4] * 8, float("nan")]})
    assert u.small_residual(one(table)).verdict is OPEN
    rows: pd.DataFrame = pga({8: float("nan")}, rest=5.0)["pga"]
    assert r.detour(Results([evidence("model", {"pga": rows})])).verdict is OPEN
