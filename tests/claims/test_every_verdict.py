"""Every claim on made-up results that must give each of the four verdicts."""

from dataclasses import replace

import pytest

from layergeom.claims import CLAIMS, Claim, Results, Verdict, ledger
from layergeom.studies import CLASSES
from synthetic_evidence import (
    ZONE,
    agreement,
    correlation,
    dark_shares,
    evidence,
    null_excess,
    one,
    overall,
    pga,
    probes,
    spectral,
    stacked,
    together,
    training,
    updates,
)

YES, NO, OPEN = Verdict.REPRODUCED, Verdict.NOT_REPRODUCED, Verdict.MIXED
NONE = Verdict.NOT_TESTABLE

COSINES = "cos_tokenwise_minus_residual_state"
ANGLE = "angle_tokenwise_residual_state"
ENERGY = "energy_tokenwise_minus_residual_state"
SPEARMAN = "spearman_relerr_kl"
MEDIAN = "median_spearman_relerr_kl"
#: U1, U2 and U3 hold on these.
ALIKE = {"cos_full_tokenwise_state": 0.99, COSINES: 0.5, ANGLE: 80.0, ENERGY: 0.5}


def family(*medians: float, half: float = 0.01) -> Results:
    """A family whose models grow from left to right."""
    return Results(
        [
            evidence(f"d{width}", overall({MEDIAN: median}, half), width=width)
            for width, median in zip((32, 64, 128), medians, strict=False)
        ]
    )


def architectures(transformer: float, state_space: float) -> Results:
    """A transformer and a state-space model that differ in Spearman at most."""
    both = [
        evidence(
            name,
            updates({**ALIKE, SPEARMAN: spearman}),
            overall({MEDIAN: spearman}),
            state_space=name == "mamba",
        )
        for name, spearman in (("pythia", transformer), ("mamba", state_space))
    ]
    return Results(both)


def by_class(first: float, others: float, half: float = 0.01) -> Results:
    """A model whose first class of map has another energy difference than the others."""
    shared = {COSINES: 0.5, ANGLE: 80.0, SPEARMAN: 0.8, "rel_err_state": 0.2}
    return one(
        stacked(
            updates({**shared, ENERGY: first}, half, CLASSES[:1]),
            updates({**shared, ENERGY: others}, classes=CLASSES[1:]),
        )
    )


def middle(error: float, cosine: float) -> Results:
    return one(
        overall(
            {
                "middle_minus_rest_rel_err_state": error,
                "middle_minus_rest_cos_full_tokenwise_state": cosine,
            }
        )
    )


def masking(five: float, ten: float, width: int = 768) -> Results:
    return one(stacked(pga(five, level=5), pga(ten, level=10)), width=width)


def still(values: dict[int, float], other: float, half: float = 0.01) -> Results:
    """A model whose z swings, beside one with another level of the metric that moves."""
    swinging = evidence("model", pga({8: -20.0}), spectral(values, half=half))
    return Results([swinging, evidence("other", pga(0.0), spectral(other))])


def like_losses(late: float, loss: float) -> Results:
    """Two models with checkpoints; the second one's late layers and loss are given."""
    first = evidence("one", training([5.0, 5.0, 5.0], [7.0, 5.0, 4.0]))
    return Results([first, evidence("other", training([5.0, 5.0, late], [7.0, loss, loss]))])


def regimes(*late: float, families: tuple[str, ...] = ("pythia", "mamba")) -> Results:
    return Results(
        [
            evidence(name, pga({8: z}, rest=5.0), family=name)
            for name, z in zip(families, late, strict=True)
        ]
    )


def large(value: float, half: float = 0.1, width: int = 2048) -> Results:
    return one(correlation("probe_correlation", "mean", value, half), width=width)


CASES: dict[str, dict[Verdict, Results]] = {
    "U1": {
        YES: one(updates({"cos_full_tokenwise_state": [0.1, *[0.98] * 7, 0.1]})),
        NO: one(updates({"cos_full_tokenwise_state": [0.98, *[0.98] * 6, 0.9, 0.98]})),
        OPEN: one(updates({"cos_full_tokenwise_state": 0.955})),
        NONE: one(updates({"cos_full_tokenwise_state": 0.98}, depth=2), depth=2),
    },
    "U2": {
        YES: one(updates({COSINES: 0.3, ANGLE: [*[70.0] * 5, *[10.0] * 4]})),
        NO: one(updates({COSINES: 0.3, ANGLE: [*[70.0] * 4, *[10.0] * 5]})),
        OPEN: one(updates({COSINES: [*[0.3] * 8, 0.005], ANGLE: 70.0})),
        NONE: one(),
    },
    "U3": {
        YES: one(updates({ENERGY: 0.3})),
        NO: one(updates({ENERGY: [*[0.3] * 8, -0.3]})),
        OPEN: one(updates({ENERGY: [*[0.3] * 8, 0.005]})),
        NONE: one(),
    },
    "U4": {
        YES: one(updates({SPEARMAN: [*[0.75] * 5, *[0.1] * 4]}), overall({MEDIAN: 0.75})),
        NO: one(updates({SPEARMAN: [*[0.75] * 4, *[0.1] * 5]}), overall({MEDIAN: 0.1})),
        OPEN: one(updates({SPEARMAN: [*[0.75] * 4, *[0.695] * 5]}), overall({MEDIAN: 0.695})),
        NONE: one(),
    },
    "U5": {
        YES: family(0.4, 0.5, 0.6),
        NO: family(0.4, 0.5, 0.3),
        OPEN: family(0.4, 0.5, 0.505),
        NONE: family(0.4, 0.5),
    },
    "U6": {
        YES: architectures(0.3, 0.3),
        NO: architectures(0.8, 0.3),
        OPEN: architectures(0.8, 0.695),
        NONE: Results(architectures(0.8, 0.8).models[:1]),
    },
    "U7": {
        YES: middle(0.1, -0.1),
        NO: middle(0.1, 0.1),
        OPEN: middle(0.1, -0.005),
        NONE: one(),
    },
    "U8": {
        YES: by_class(-0.5, -0.5),
        NO: by_class(-0.5, 0.5),
        OPEN: by_class(0.05, 0.5, half=0.1),
        NONE: one(updates({COSINES: 0.5, ANGLE: 80.0, ENERGY: 0.5, SPEARMAN: 0.8})),
    },
    "U9": {
        YES: one(updates({"kl_minus_along_tokenwise": [*[0.1] * 5, *[-0.1] * 4]})),
        NO: one(updates({"kl_minus_along_tokenwise": [*[0.1] * 4, *[-0.1] * 5]})),
        OPEN: one(updates({"kl_minus_along_tokenwise": [*[0.1] * 4, *[0.001] * 5]})),
        NONE: one(),
    },
    "U10": {
        YES: one(updates({"rel_err_state": 0.4})),
        NO: one(updates({"rel_err_state": [*[0.4] * 8, 0.6]})),
        OPEN: one(updates({"rel_err_state": [*[0.4] * 8, 0.505]})),
        NONE: one(),
    },
    "R1": {
        YES: one(pga({5: 15.0}, rest=8.0), width=2048),
        NO: one(pga({5: 15.0, 7: 1.0}, rest=8.0), width=2048),
        OPEN: one(pga({5: 15.0, 7: 2.2}, rest=8.0), width=2048),
        NONE: one(pga({5: 15.0}, rest=8.0), width=2047),
    },
    "R2": {
        YES: one(pga({8: -5.0})),
        NO: one(pga({5: -5.0}, rest=5.0)),
        OPEN: one(pga({8: -2.2})),
        NONE: one(pga({8: -5.0}), width=1025),
    },
    "R3": {
        YES: one(ZONE),
        NO: one(pga({7: -5.0, 8: -5.0, 9: 5.0}, rest=5.0, out=-1.0)),
        OPEN: one(pga(5.0, out=5.0)),
        NONE: one(ZONE, width=1025),
    },
    "R4": {
        YES: one(training([0.0, 5.0, -5.0], [7.0, 5.0, 4.0])),
        NO: one(training([0.0, 0.0, -5.0], [7.0, 5.0, 4.0])),
        OPEN: one(training([0.0, 2.2, -5.0], [7.0, 5.0, 4.0])),
        NONE: one(pga(0.0)),
    },
    "R5": {
        YES: masking(-1.0, 1.0),
        NO: masking(-1.0, -1.0),
        OPEN: masking(-1.0, 0.2),
        NONE: masking(1.0, 1.0, width=767),
    },
    "R6": {
        YES: one(ZONE, dark_shares(0.95, 0.8)),
        NO: one(ZONE, dark_shares(0.7, 0.6)),
        OPEN: one(ZONE, dark_shares(0.85, 0.8, noise=0.1)),
        NONE: one(pga(0.0), dark_shares(0.95, 0.8)),
    },
    "R7": {
        YES: still({3: 0.5}, other=5.0),
        NO: still({3: 50.0}, other=0.0),
        OPEN: still({3: 50.0}, other=0.0, half=40.0),
        NONE: Results([evidence("model", pga({8: -9.0}), spectral(0.0))]),
    },
    "R8": {
        YES: like_losses(late=-5.0, loss=4.1),
        NO: like_losses(late=5.0, loss=4.1),
        OPEN: like_losses(late=-5.0, loss=3.0),
        NONE: Results(like_losses(late=-5.0, loss=4.1).models[:1]),
    },
    "R9": {
        YES: agreement(0.1, 0.1),
        NO: agreement(0.1, -0.1),
        OPEN: agreement(0.1, 0.005),
        NONE: one(),
    },
    "R10": {
        YES: large(0.5),
        NO: large(-0.5),
        OPEN: large(0.05),
        NONE: large(0.5, width=2047),
    },
    "R11": {
        YES: one(ZONE, probes(zone=0.885, best=0.9)),
        NO: one(ZONE, probes(zone=0.8, best=0.9)),
        OPEN: one(ZONE, probes(zone=0.878, best=0.9)),
        NONE: one(ZONE, probes(zone=0.885, best=0.9), width=1025),
    },
    "R12": {
        YES: regimes(-5.0, -5.0),
        NO: regimes(-5.0, 5.0),
        OPEN: regimes(-5.0, 0.0),
        NONE: regimes(-5.0, -5.0, families=("pythia", "pythia")),
    },
    "R13": {
        YES: one(ZONE, null_excess(0.1)),
        NO: one(ZONE, null_excess(-0.1)),
        OPEN: one(ZONE, null_excess(0.01, noise=0.1)),
        NONE: one(pga(0.0), null_excess(0.1)),
    },
    "R14": {
        YES: one(correlation("lens_correlation", "agreement", 0.1, 0.3)),
        NO: one(correlation("lens_correlation", "agreement", 0.5, 0.3)),
        # One model says yes and one says no: an interval that holds 0 leaves no third case.
        OPEN: together(
            one(correlation("lens_correlation", "agreement", 0.1, 0.3)),
            one(correlation("lens_correlation", "agreement", 0.5, 0.3)),
        ),
        NONE: one(),
    },
}


def verdict(claim: Claim, results: Results) -> Verdict:
    (entry,) = ledger(results, [claim])
    return entry.finding.verdict


@pytest.mark.parametrize("wanted", Verdict, ids=str)
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_made_up_results_get_their_verdict(claim: Claim, wanted: Verdict) -> None:
    assert verdict(claim, CASES[claim.id][wanted]) is wanted


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_a_model_that_does_not_beat_bigrams_decides_nothing(claim: Claim) -> None:
    weak = CASES[claim.id][YES]
    weak = replace(weak, models=[replace(e, decides=False, bigram_loss=1.0) for e in weak.models])
    assert verdict(claim, weak) is NONE
    (entry,) = ledger(together(CASES[claim.id][NO], weak), [claim])
    assert entry.finding.verdict is NO
    aside = [model for model in entry.finding.models if model.model.endswith(" 1")]
    assert {model.verdict for model in aside} <= {NONE}
    assert all(model.measured.startswith("takes no part; ") for model in aside)


#: Those judged on all models at once; of the others, each model is judged by itself.
AT_ONCE = {"U5", "U6", "R7", "R8", "R12"}
EACH = [claim for claim in CLAIMS if claim.id not in AT_ONCE]


@pytest.mark.parametrize("claim", EACH, ids=lambda claim: claim.id)
def test_models_that_differ_are_mixed_and_each_keeps_its_own_verdict(claim: Claim) -> None:
    (entry,) = ledger(together(CASES[claim.id][YES], CASES[claim.id][NO]), [claim])
    assert entry.finding.verdict is OPEN
    assert {model.verdict for model in entry.finding.models} == {YES, NO}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_what_is_measured_is_said_in_figures(claim: Claim) -> None:
    for wanted in (YES, NO, OPEN):
        (entry,) = ledger(CASES[claim.id][wanted], [claim])
        assert entry.finding.models
        assert all(any(c.isdigit() for c in m.measured) for m in entry.finding.models) or (
            claim.id in {"U6", "R12"}
        )
        assert "nan" not in " ".join(model.measured for model in entry.finding.models)
