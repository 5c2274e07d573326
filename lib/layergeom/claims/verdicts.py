"""Verdicts: one interval against a bound, many of them together, and models side by side.

An interval says of a rule that it holds, that it does not, or neither, and so does a rule that is
made of several: it holds where its parts make it hold, it does not where they rule it out, and is
*mixed* where the intervals leave both possible. A rule about every block is ruled out by one
block, one about half of them by more than half. (These are Kleene's three truth values.)

Where a rule says "by CI", the whole interval must lie on the bound's side for it to hold. Where it
names the figure alone, the figure decides whether it holds, and the whole interval must lie on
the other side to rule it out.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from layergeom.claims.evidence import Evidence
from layergeom.errors import NotMeasurableError
from layergeom.geometry.bootstrap import Estimate


class Verdict(StrEnum):
    """What becomes of a claim."""

    REPRODUCED = "reproduced"
    MIXED = "mixed"
    NOT_REPRODUCED = "not reproduced"
    NOT_TESTABLE = "not testable with these models"


@dataclass(frozen=True)
class ModelVerdict:
    """A claim judged on one model.

    Attributes:
        model: the model; where the rule compares, the pair, family or class of widths.
        verdict: its own verdict; not testable where the model lies outside the claim's domain.
        measured: what is measured, in words and figures.
        estimate: the figure that decides, with its interval, where one does.
    """

    model: str
    verdict: Verdict
    measured: str
    estimate: Estimate | None = None


@dataclass(frozen=True)
class Finding:
    """A claim judged on all models together."""

    verdict: Verdict
    models: tuple[ModelVerdict, ...]


def surely_above(estimate: Estimate, bound: float) -> Verdict:
    """Whether a figure lies above a bound, by its interval."""
    if estimate.ci_low > bound:
        return Verdict.REPRODUCED
    return Verdict.NOT_REPRODUCED if estimate.ci_high < bound else Verdict.MIXED


def surely_below(estimate: Estimate, bound: float) -> Verdict:
    """Whether a figure lies below a bound, by its interval."""
    return surely_above(_flipped(estimate), -bound)


def surely_higher(estimate: Estimate, other: Estimate) -> Verdict:
    """Whether one figure lies above another, their intervals apart."""
    if estimate.ci_low > other.ci_high:
        return Verdict.REPRODUCED
    return Verdict.NOT_REPRODUCED if estimate.ci_high < other.ci_low else Verdict.MIXED


def above(estimate: Estimate, bound: float) -> Verdict:
    """Whether a figure lies above a bound; only its interval rules that out."""
    if estimate.value > bound:
        return Verdict.REPRODUCED
    return Verdict.NOT_REPRODUCED if estimate.ci_high < bound else Verdict.MIXED


def below(estimate: Estimate, bound: float) -> Verdict:
    """Whether a figure lies below a bound; only its interval rules that out."""
    return above(_flipped(estimate), -bound)


def _flipped(estimate: Estimate) -> Estimate:
    return Estimate(-estimate.value, -estimate.ci_high, -estimate.ci_low)


def at_least(needed: int, verdicts: Sequence[Verdict]) -> Verdict:
    """Whether a rule holds in this many cases or more.

    Raises:
        NotMeasurableError: there is no case.
    """
    if not verdicts:
        raise NotMeasurableError("no block or layer to judge")
    if held(verdicts) >= needed:
        return Verdict.REPRODUCED
    possible = len(verdicts) - sum(v is Verdict.NOT_REPRODUCED for v in verdicts)
    return Verdict.NOT_REPRODUCED if possible < needed else Verdict.MIXED


def every(verdicts: Sequence[Verdict]) -> Verdict:
    """Whether a rule holds in every case."""
    return at_least(len(verdicts), verdicts)


def some(verdicts: Sequence[Verdict]) -> Verdict:
    """Whether a rule holds in one case or more."""
    return at_least(1, verdicts)


def half(verdicts: Sequence[Verdict]) -> Verdict:
    """Whether a rule holds in at least half of the cases."""
    return at_least(-(-len(verdicts) // 2), verdicts)


def held(verdicts: Iterable[Verdict]) -> int:
    """In how many cases a rule holds."""
    return sum(verdict is Verdict.REPRODUCED for verdict in verdicts)


def tally(verdicts: Sequence[Verdict]) -> str:
    """The cases in which a rule holds, such as ``3 of 28``."""
    return f"{held(verdicts)} of {len(verdicts)}"


def same(verdicts: Iterable[Verdict]) -> Verdict:
    """Whether verdicts agree; they disagree where one says yes and another no."""
    found = set(verdicts)
    if len(found) == 1:
        return Verdict.REPRODUCED
    opposed = {Verdict.REPRODUCED, Verdict.NOT_REPRODUCED} <= found
    return Verdict.NOT_REPRODUCED if opposed else Verdict.MIXED


def combined(models: Iterable[ModelVerdict]) -> Verdict:
    """The verdict of all models together: theirs where they agree, mixed where they differ.

    Models outside the claim's domain do not count; without any other it cannot be tested.
    """
    found = {model.verdict for model in models} - {Verdict.NOT_TESTABLE}
    if not found:
        return Verdict.NOT_TESTABLE
    return found.pop() if len(found) == 1 else Verdict.MIXED


def finding(models: Iterable[ModelVerdict]) -> Finding:
    """What is found on each model, with the verdict of all together."""
    found = tuple(models)
    return Finding(combined(found), found)


@dataclass(frozen=True)
class Widths:
    """Widths d for which a claim is made, both ends included."""

    first: int = 1
    last: float = float("inf")

    def __contains__(self, width: int) -> bool:
        return self.first <= width <= self.last


ANY_WIDTH = Widths()


def judge_each(
    models: Iterable[Evidence],
    rule: Callable[[Evidence], ModelVerdict],
    widths: Widths = ANY_WIDTH,
) -> Finding:
    """Judge each model by itself.

    A model of another width is measured and reported, and decides nothing; so does one of which
    something that the rule needs does not exist.
    """
    return finding(_judged(evidence, rule, widths) for evidence in models)


def _judged(
    evidence: Evidence, rule: Callable[[Evidence], ModelVerdict], widths: Widths
) -> ModelVerdict:
    try:
        found = rule(evidence)
    except NotMeasurableError as error:
        return ModelVerdict(evidence.name, Verdict.NOT_TESTABLE, str(error))
    if evidence.width in widths:
        return found
    outside = f"d = {evidence.width} decides nothing here; {found.measured}"
    return replace(found, verdict=Verdict.NOT_TESTABLE, measured=outside)
