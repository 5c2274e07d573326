"""The claims of Updates (arXiv 2604.02459), by the rules of the method.

Where the rule names no class of map, the one decides that the controls are run for: ``orthogonal``.
Figures of a block are medians over tokens with bootstrap intervals over sequences.
"""

from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pandas as pd

from layergeom.claims.evidence import Evidence, Results, estimates
from layergeom.claims.verdicts import (
    Finding,
    ModelVerdict,
    Verdict,
    above,
    below,
    every,
    finding,
    half,
    held,
    judge_each,
    same,
    surely_above,
    surely_below,
    surely_higher,
    tally,
)
from layergeom.errors import NotMeasurableError
from layergeom.geometry.bootstrap import Estimate
from layergeom.report.publish import with_interval
from layergeom.studies.fits import CLASSES, CONTROLLED


def _rows(evidence: Evidence, quantity: str, name: str = CONTROLLED) -> pd.DataFrame:
    """A quantity by block for a class of map; blocks with an undertrained ``mlp`` are left out.

    Raises:
        NotMeasurableError: no block is left.
    """
    table = evidence.table("updates")
    rows = table[(table["class"] == name) & (table["quantity"] == quantity)]
    if name == "mlp":
        rows = rows[~rows["block"].isin(evidence.undertrained)]
    if rows.empty:
        raise NotMeasurableError(f"no block has {quantity} for the class {name}")
    return rows.sort_values("block")


def _overall(evidence: Evidence, quantity: str, name: str = CONTROLLED) -> Estimate:
    """A quantity over all blocks for a class of map.

    Raises:
        NotMeasurableError: it was not measured.
    """
    table = evidence.table("overall")
    rows = table[(table["class"] == name) & (table["quantity"] == quantity)]
    if rows.empty:
        raise NotMeasurableError(f"{quantity} was not measured for the class {name}")
    return estimates(rows)[0]


def _shown(estimate: Estimate, digits: int = 2) -> str:
    return with_interval(estimate.value, estimate.ci_low, estimate.ci_high, digits)


def _lowest(found: list[Estimate]) -> Estimate:
    """The lowest figure that is defined."""
    return min(found, key=lambda e: e.value if np.isfinite(e.value) else np.inf)


def _highest(found: list[Estimate]) -> Estimate:
    """The highest figure that is defined."""
    return max(found, key=lambda e: e.value if np.isfinite(e.value) else -np.inf)


def _median(found: list[Estimate]) -> float:
    return float(pd.Series([estimate.value for estimate in found]).median())


def parallel(results: Results) -> Finding:
    """U1: the state cosine's interval lies above 0.95 at every block but the first and last."""

    def rule(evidence: Evidence) -> ModelVerdict:
        rows = _rows(evidence, "cos_full_tokenwise_state")
        inner = estimates(rows[rows["block"].between(1, evidence.depth - 2)])
        verdicts = [surely_above(cosine, 0.95) for cosine in inner]
        verdict, lowest = every(verdicts), _lowest(inner)
        text = (
            f"lowest state cosine {_shown(lowest, 3)} between the first and last block; above "
            f"0.95 in {tally(verdicts)} blocks"
        )
        return ModelVerdict(evidence.name, verdict, text, lowest)

    return judge_each(results.models, rule)


def less_aligned(results: Results) -> Finding:
    """U2: the residual is less aligned at every block, its angle above 60° in half of them.

    The cosines are compared token by token: the interval is that of the median difference. The
    angle is that between ``T(h)`` and ``r``.
    """
    return judge_each(results.models, _less_aligned)


def _less_aligned(evidence: Evidence, name: str = CONTROLLED) -> ModelVerdict:
    differences = estimates(_rows(evidence, "cos_tokenwise_minus_residual_state", name))
    angles = estimates(_rows(evidence, "angle_tokenwise_residual_state", name))
    clear = [surely_above(difference, 0.0) for difference in differences]
    wide = [above(angle, 60.0) for angle in angles]
    text = (
        f"less aligned in {tally(clear)} blocks; angle of T(h) and r above 60° in {tally(wide)}, "
        f"median {_median(angles):.0f}°"
    )
    return ModelVerdict(evidence.name, every([every(clear), half(wide)]), text)


def lower_share(results: Results) -> Finding:
    """U3: the residual's share of the dominant tokenwise subspace is lower at every block."""
    return judge_each(results.models, _lower_share)


def _lower_share(evidence: Evidence, name: str = CONTROLLED) -> ModelVerdict:
    found = estimates(_rows(evidence, "energy_tokenwise_minus_residual_state", name))
    verdicts = [surely_above(difference, 0.0) for difference in found]
    smallest = _lowest(found)
    text = (
        f"share of the tokenwise part less that of the residual: smallest {_shown(smallest)}; "
        f"above 0 in {tally(verdicts)} blocks"
    )
    return ModelVerdict(evidence.name, every(verdicts), text, smallest)


def predicts(results: Results) -> Finding:
    """U4: Spearman(RelErr, KL) is above 0.7 in at least half of the blocks."""

    def rule(evidence: Evidence) -> ModelVerdict:
        verdicts = _predicted(evidence)
        median = _overall(evidence, "median_spearman_relerr_kl")
        text = (
            f"Spearman {_shown(median)}, median over blocks; above 0.7 in {tally(verdicts)} blocks"
        )
        return ModelVerdict(evidence.name, half(verdicts), text, median)

    return judge_each(results.models, rule)


def _predicted(evidence: Evidence, name: str = CONTROLLED) -> list[Verdict]:
    """Whether Spearman(RelErr, KL) is above 0.7, by block."""
    return [above(found, 0.7) for found in estimates(_rows(evidence, "spearman_relerr_kl", name))]


def stronger_in_larger(results: Results) -> Finding:
    """U5: a family's median Spearman(RelErr, KL) rises with size, intervals apart at each step.

    A family is judged where it has models of three sizes or more; the size is L d², to which the
    number of parameters is proportional. Models of one size (from different seeds) are not
    compared with each other.
    """
    families: defaultdict[str, defaultdict[int, list[Estimate]]]
    families = defaultdict(lambda: defaultdict(list))
    for evidence in results.models:
        try:
            median = _overall(evidence, "median_spearman_relerr_kl")
        except NotMeasurableError:
            continue
        families[evidence.family][evidence.size].append(median)
    return finding(
        _rises(family, [sizes[size] for size in sorted(sizes)])
        for family, sizes in families.items()
    )


def _rises(family: str, sizes: list[list[Estimate]]) -> ModelVerdict:
    text = "; ".join(_shown(median) for medians in sizes for median in medians)
    if len(sizes) < 3:
        text = f"{len(sizes)} of the 3 sizes that are needed: {text}"
        return ModelVerdict(family, Verdict.NOT_TESTABLE, text)
    steps = [
        surely_higher(large, small)
        for smaller, larger in pairwise(sizes)
        for small in smaller
        for large in larger
    ]
    return ModelVerdict(family, every(steps), f"median Spearman from small to large: {text}")


def state_space(results: Results) -> Finding:
    """U6: a state-space model gets the verdicts of U1 to U4 that the transformers get.

    The transformers' verdict is that of all of them together. What cannot be tested on either
    side does not count.
    """
    rules: dict[str, Callable[[Results], Finding]] = {
        "U1": parallel,
        "U2": less_aligned,
        "U3": lower_share,
        "U4": predicts,
    }
    transformers = Results([evidence for evidence in results.models if not evidence.state_space])
    expected = {claim: judge(transformers).verdict for claim, judge in rules.items()}

    def rule(evidence: Evidence) -> ModelVerdict:
        own = {claim: judge(Results([evidence])).verdict for claim, judge in rules.items()}
        pairs = {
            claim: (own[claim], expected[claim])
            for claim in rules
            if Verdict.NOT_TESTABLE not in (own[claim], expected[claim])
        }
        if not pairs:
            raise NotMeasurableError("no transformer to compare it with")
        text = "; ".join(
            f"{claim} {found}" + ("" if found == wanted else f" (transformers: {wanted})")
            for claim, (found, wanted) in pairs.items()
        )
        return ModelVerdict(evidence.name, every([same(pair) for pair in pairs.values()]), text)

    return judge_each([evidence for evidence in results.models if evidence.state_space], rule)


def larger_in_the_middle(results: Results) -> Finding:
    """U7: in the middle third of the blocks RelErr is larger and the state cosine smaller.

    Median over the blocks of the middle third less that over the others, with a bootstrap over
    sequences that all blocks share.
    """

    def rule(evidence: Evidence) -> ModelVerdict:
        error = _overall(evidence, "middle_minus_rest_rel_err_state")
        cosine = _overall(evidence, "middle_minus_rest_cos_full_tokenwise_state")
        verdict = every([surely_above(error, 0.0), surely_below(cosine, 0.0)])
        text = f"middle third less the rest: RelErr {_shown(error, 3)}, cosine {_shown(cosine, 3)}"
        return ModelVerdict(evidence.name, verdict, text)

    return judge_each(results.models, rule)


def any_class(results: Results) -> Finding:
    """U8: U2, U3 and U4 get the same verdicts for every class of map.

    The baselines are no classes. An undertrained ``mlp`` decides nothing: its blocks are left
    out, and the class where none is left.
    """

    def rule(evidence: Evidence) -> ModelVerdict:
        found: dict[str, dict[str, Verdict]] = {"U2": {}, "U3": {}, "U4": {}}
        errors = []
        for name in CLASSES:
            try:
                error = _rows(evidence, "rel_err_state", name)["value"].median()
                judged = (
                    _less_aligned(evidence, name).verdict,
                    _lower_share(evidence, name).verdict,
                    half(_predicted(evidence, name)),
                )
            except NotMeasurableError:
                continue
            errors.append(f"{name} {error:.2f}")
            for claim, verdict in zip(found, judged, strict=True):
                found[claim][name] = verdict
        if len(errors) < 2:
            raise NotMeasurableError(f"{len(errors)} class of map to compare; 2 are needed")
        verdict = every([same(by_class.values()) for by_class in found.values()])
        agreement = "; ".join(f"{claim} {_by_class(found[claim])}" for claim in found)
        return ModelVerdict(evidence.name, verdict, f"{agreement}. RelErr: {', '.join(errors)}")

    return judge_each(results.models, rule)


def _by_class(verdicts: dict[str, Verdict]) -> str:
    """One verdict if all classes share it, else each verdict with its classes."""
    grouped: defaultdict[Verdict, list[str]] = defaultdict(list)
    for name, verdict in verdicts.items():
        grouped[verdict].append(name)
    if len(grouped) == 1:
        return f"{next(iter(grouped))} for all"
    return ", ".join(f"{verdict} for {' and '.join(names)}" for verdict, names in grouped.items())


def residual_matters(results: Results) -> Finding:
    """U9: the error ``r`` costs more than an equally long one along ``T(h) - h``, in half.

    Token by token: the interval is that of the median difference of the two KLs.
    """

    def rule(evidence: Evidence) -> ModelVerdict:
        found = estimates(_rows(evidence, "kl_minus_along_tokenwise"))
        verdicts = [surely_above(difference, 0.0) for difference in found]
        against = held(surely_below(difference, 0.0) for difference in found)
        text = (
            f"KL of r above that of an equal error along T(h) - h in {tally(verdicts)} blocks, "
            f"below in {against}; median difference over blocks "
            f"{_median(found):.3g} nats"
        )
        return ModelVerdict(evidence.name, half(verdicts), text)

    return judge_each(results.models, rule)


def small_residual(results: Results) -> Finding:
    """U10: the state RelErr is below 0.5 at every block."""

    def rule(evidence: Evidence) -> ModelVerdict:
        found = estimates(_rows(evidence, "rel_err_state"))
        verdicts = [below(error, 0.5) for error in found]
        largest = _highest(found)
        text = f"largest RelErr {_shown(largest)}; below 0.5 in {tally(verdicts)} blocks"
        return ModelVerdict(evidence.name, every(verdicts), text, largest)

    return judge_each(results.models, rule)
