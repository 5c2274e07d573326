"""Intervals against bounds, many of them together, and models side by side."""

import pytest

from layergeom.claims.verdicts import (
    ModelVerdict,
    Verdict,
    above,
    below,
    combined,
    every,
    half,
    same,
    some,
    surely_above,
    surely_below,
    surely_higher,
)
from layergeom.errors import NotMeasurableError
from layergeom.geometry.bootstrap import NOT_DEFINED, Estimate

YES, NO, OPEN = Verdict.REPRODUCED, Verdict.NOT_REPRODUCED, Verdict.MIXED
NONE = Verdict.NOT_TESTABLE


@pytest.mark.parametrize(
    ("estimate", "sure", "plain"),
    [
        (Estimate(2.0, 1.5, 2.5), YES, YES),
        (Estimate(1.2, 0.8, 1.6), OPEN, YES),
        (Estimate(0.8, 0.4, 1.2), OPEN, OPEN),
        (Estimate(0.2, 0.0, 0.4), NO, NO),
        (NOT_DEFINED, OPEN, OPEN),
    ],
)
def test_an_interval_against_a_bound(estimate: Estimate, sure: Verdict, plain: Verdict) -> None:
    assert surely_above(estimate, 1.0) is sure
    assert above(estimate, 1.0) is plain
    mirrored = Estimate(-estimate.value, -estimate.ci_high, -estimate.ci_low)
    assert surely_below(mirrored, -1.0) is sure
    assert below(mirrored, -1.0) is plain


def test_one_interval_against_another() -> None:
    low, high = Estimate(1.0, 0.5, 1.5), Estimate(3.0, 2.0, 4.0)
    assert surely_higher(high, low) is YES
    assert surely_higher(low, high) is NO
    assert surely_higher(high, Estimate(2.0, 1.5, 2.5)) is OPEN
    assert surely_higher(high, NOT_DEFINED) is OPEN


@pytest.mark.parametrize(
    ("verdicts", "all_of_them", "at_least_half", "one_of_them"),
    [
        ([YES, YES], YES, YES, YES),
        ([YES, OPEN], OPEN, YES, YES),
        ([YES, NO], NO, YES, YES),
        ([YES, NO, NO], NO, NO, YES),
        ([YES, NO, OPEN], NO, OPEN, YES),
        ([OPEN, NO], NO, OPEN, OPEN),
        ([NO, NO], NO, NO, NO),
    ],
)
def test_many_together(
    verdicts: list[Verdict], all_of_them: Verdict, at_least_half: Verdict, one_of_them: Verdict
) -> None:
    assert every(verdicts) is all_of_them
    assert half(verdicts) is at_least_half
    assert some(verdicts) is one_of_them


def test_nothing_to_judge_is_no_verdict() -> None:
    for quantifier in (every, half, some):
        with pytest.raises(NotMeasurableError, match="no block or layer"):
            quantifier([])


@pytest.mark.parametrize(
    ("verdicts", "wanted"),
    [([YES, YES], YES), ([OPEN, OPEN], YES), ([YES, OPEN], OPEN), ([YES, OPEN, NO], NO)],
)
def test_verdicts_that_agree(verdicts: list[Verdict], wanted: Verdict) -> None:
    assert same(verdicts) is wanted


@pytest.mark.parametrize(
    ("verdicts", "wanted"),
    [
        ([YES, YES], YES),
        ([NO, NO], NO),
        ([YES, NO], OPEN),
        ([YES, OPEN], OPEN),
        ([YES, NONE], YES),
        ([NONE], NONE),
        ([], NONE),
    ],
)
def test_models_side_by_side(verdicts: list[Verdict], wanted: Verdict) -> None:
    models = [ModelVerdict(str(i), verdict, "") for i, verdict in enumerate(verdicts)]
    assert combined(models) is wanted
