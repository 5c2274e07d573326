"""The claims of Readout (arXiv 2605.17084), by the rules of the method.

z is that at CCR-1 unless a rule names another level, with the interval over disjoint token
samples and over the draw of the null. The collapse zone is the longest run of intermediate layers
whose intervals lie below -2; what is said of it is said of models that have one.
"""

from collections import defaultdict
from collections.abc import Iterable
from itertools import combinations

import numpy as np
import pandas as pd

from layergeom.claims.evidence import (
    Agreement,
    Evidence,
    Results,
    between,
    estimates,
    first_third,
    intermediate,
    late,
    layers,
    regime_of,
)
from layergeom.claims.verdicts import (
    Finding,
    ModelVerdict,
    Verdict,
    Widths,
    above,
    every,
    finding,
    judge_each,
    some,
    surely_above,
    surely_below,
    surely_higher,
    tally,
)
from layergeom.errors import NotMeasurableError
from layergeom.geometry.bootstrap import Estimate
from layergeom.geometry.means import sample_mean_estimate
from layergeom.report.publish import with_interval

#: Widths for which the document makes its claims about small models, masked ones and large ones.
SMALL = Widths(last=1024)
MASKED = Widths(first=768)
LARGE = Widths(first=2048)

#: A layer is organised for the readout above this z, and against it below its negative.
ORGANISED = 2.0
#: Range of z over the layers beyond which it swings.
SWING = 10.0
#: Largest difference of losses that count as like, as a share of the smaller.
LIKE_LOSS = 0.05
#: Accuracy that a probe may lose and still be called accurate.
TWO_POINTS = 0.02


def _shown(estimate: Estimate, digits: int = 1) -> str:
    return with_interval(estimate.value, estimate.ci_low, estimate.ci_high, digits)


def _extreme(rows: pd.DataFrame, find: str) -> pd.Series:
    """The row of the highest or lowest z that is defined.

    Raises:
        NotMeasurableError: there is no row, or none is defined.
    """
    defined = rows[np.isfinite(rows["z"])]
    if defined.empty:
        raise NotMeasurableError("z is undefined at every layer asked for")
    return defined.loc[defined["z"].idxmax() if find == "highest" else defined["z"].idxmin()]


def _estimate(row: pd.Series, column: str = "z") -> Estimate:
    return Estimate(float(row[column]), float(row["ci_low"]), float(row["ci_high"]))


def _at(row: pd.Series) -> str:
    """A row's z with its interval and point, such as ``3.1 [2.0, 4.2] at H_5``."""
    return f"{_shown(_estimate(row))} at {row['point']}"


def organised_throughout(results: Results) -> Finding:
    """R1 (d ≥ 2048): every intermediate layer above 2; the peak in the middle third, 9 to 24.

    Every lower bound must lie above 2. The peak is the highest z; that it lies outside the middle
    third is certain where its interval lies above those of all layers there, and that it lies
    outside 9 to 24 where its whole interval does.
    """

    def rule(evidence: Evidence) -> ModelVerdict:
        inner = intermediate(evidence.z(), evidence.depth)
        verdicts = [surely_above(z, ORGANISED) for z in estimates(inner, "z")]
        peak, lowest = _extreme(inner, "highest"), _extreme(inner, "lowest")
        verdict = every([every(verdicts), _in_the_middle(peak, inner, evidence.depth), _high(peak)])
        text = f"intermediate z peaks at {_at(peak)}; lowest {_at(lowest)}"
        return ModelVerdict(evidence.name, verdict, text, _estimate(peak))

    return judge_each(results.models, rule, LARGE)


def _in_the_middle(peak: pd.Series, inner: pd.DataFrame, depth: int) -> Verdict:
    middle = inner[(inner["depth"] > depth / 3) & (inner["depth"] <= 2 * depth / 3)]
    if peak["depth"] in set(middle["depth"]):
        return Verdict.REPRODUCED
    elsewhere = peak["ci_low"] > middle["ci_high"].max()
    return Verdict.NOT_REPRODUCED if elsewhere else Verdict.MIXED


def _high(peak: pd.Series) -> Verdict:
    if 9.0 <= peak["z"] <= 24.0:
        return Verdict.REPRODUCED
    outside = peak["ci_high"] < 9.0 or peak["ci_low"] > 24.0
    return Verdict.NOT_REPRODUCED if outside else Verdict.MIXED


def detour(results: Results) -> Finding:
    """R2 (d ≤ 1024): the regime is *detour*.

    It is where some late layer has its interval wholly below -2, and certainly is not where every
    late layer has its interval wholly above -2.
    """

    def rule(evidence: Evidence) -> ModelVerdict:
        regime = evidence.regime()
        rows = late(evidence.z(), evidence.depth)
        verdict = some([surely_below(z, -ORGANISED) for z in estimates(rows, "z")])
        lowest = _extreme(rows, "lowest")
        text = f"regime {regime.regime}; lowest z of the late layers {_at(lowest)}"
        return ModelVerdict(evidence.name, verdict, text, _estimate(lowest))

    return judge_each(results.models, rule, SMALL)


def recovers(results: Results) -> Finding:
    """R3 (d ≤ 1024): at the final layer z is above 0 and has risen from the zone, by CI.

    Both must hold at ``H_L`` and at ``out``. The rise is that from the zone's lowest layer, the
    intervals apart. Without a zone there is nothing to rise from, and that part stays open.
    """

    def rule(evidence: Evidence) -> ModelVerdict:
        z = evidence.z()
        final = [z[z["point"] == point] for point in (f"H_{evidence.depth}", "out")]
        if any(rows.empty for rows in final):
            raise NotMeasurableError("z at the final layer: not measured")
        ends = [rows.iloc[0] for rows in final]
        positive = [surely_above(_estimate(row), 0.0) for row in ends]
        zone = evidence.regime().collapse_zone
        if zone is None:
            rises, bottom = [Verdict.MIXED], "no collapse zone"
        else:
            lowest = _extreme(between(z, *zone), "lowest")
            bottom = f"zone down to {_at(lowest)}"
            rises = [surely_higher(_estimate(row), _estimate(lowest)) for row in ends]
        text = f"{_at(ends[0])}, {_at(ends[1])}; {bottom}"
        return ModelVerdict(evidence.name, every([*positive, *rises]), text)

    return judge_each(results.models, rule, SMALL)


def lost_in_training(results: Results) -> Finding:
    """R4 (d ≤ 1024, checkpoints): a late layer is organised early and falls as the loss falls.

    A late layer shows it with a step whose lower bound lies above 2 and a later step of lower loss
    whose interval lies below that of the first; one late layer is enough. A layer rules it out
    where every step's interval lies below 2 (never organised), or the last one's above 2 without
    such a fall (kept).
    """

    def rule(evidence: Evidence) -> ModelVerdict:
        steps = _training(evidence)
        rows = late(steps, evidence.depth)
        verdicts = [_lost(group) for _, group in rows.groupby("point", sort=False)]
        peak = _extreme(rows, "highest")
        last = _extreme(rows[rows["step"] == rows["step"].max()], "lowest")
        text = (
            f"late layers: highest z {_at(peak)} after step {peak['step']}; at the last step "
            f"{last['step']} the lowest is {_at(last)}; organised and lost in {tally(verdicts)}"
        )
        return ModelVerdict(evidence.name, some(verdicts), text)

    return judge_each(results.models, rule, SMALL)


def _training(evidence: Evidence) -> pd.DataFrame:
    """Steps in order: z by point, with the validation loss of the step."""
    losses = evidence.table("losses")[["step", "validation_loss"]]
    return evidence.table("training").merge(losses, on="step").sort_values("step", kind="stable")


def _lost(layer: pd.DataFrame) -> Verdict:
    """Whether one layer, its steps in order, was organised and lost it."""
    steps = list(zip(estimates(layer, "z"), layer["validation_loss"].tolist(), strict=True))
    for (early, early_loss), (later, later_loss) in combinations(steps, 2):
        fell = later.ci_high < early.ci_low and later_loss < early_loss
        if early.ci_low > ORGANISED and fell:
            return Verdict.REPRODUCED
    never = all(z.ci_high < ORGANISED for z, _ in steps)
    kept = steps[-1][0].ci_low > ORGANISED
    return Verdict.NOT_REPRODUCED if never or kept else Verdict.MIXED


def masked(results: Results) -> Finding:
    """R5 (d ≥ 768): at CCR-5 or at CCR-10, one level for all layers, every lower bound above 0.

    Narrower models are reported and decide nothing.
    """

    def rule(evidence: Evidence) -> ModelVerdict:
        levels = {level: layers(evidence.z(level), evidence.depth) for level in (5, 10)}
        if any(rows.empty for rows in levels.values()):
            raise NotMeasurableError("CCR-5 and CCR-10: not measured")
        verdicts = {
            level: [surely_above(z, 0.0) for z in estimates(rows, "z")]
            for level, rows in levels.items()
        }
        text = "; ".join(
            f"CCR-{level}: {tally(verdicts[level])} layers above 0, lowest "
            f"{_at(_extreme(rows, 'lowest'))}"
            for level, rows in levels.items()
        )
        return ModelVerdict(evidence.name, some([every(v) for v in verdicts.values()]), text)

    return judge_each(results.models, rule, MASKED)


def turns_dark(results: Results) -> Finding:
    """R6 (a zone): the first component's dark share there is higher than before, and than chance.

    Mean over the zone's layers less that over the first third, and the mean itself against
    ``1 - k/d``: both by the Student t interval over the disjoint samples of tokens.
    """

    def rule(evidence: Evidence) -> ModelVerdict:
        zone = evidence.zone()
        table = evidence.table("components")
        leading = table[table["component"] == 1]
        inside = _by_sample(between(leading, *zone), "dark_share")
        rise = sample_mean_estimate(
            inside - _by_sample(first_third(leading, evidence.depth), "dark_share")
        )
        there = sample_mean_estimate(inside)
        verdict = every([surely_above(rise, 0.0), surely_above(there, evidence.random_dark)])
        text = (
            f"dark share {_shown(there, 3)} in the zone H_{zone[0]} to H_{zone[1]}, by "
            f"{_shown(rise, 3)} more than in the first third; a random direction's is "
            f"{evidence.random_dark:.3f}"
        )
        return ModelVerdict(evidence.name, verdict, text, rise)

    return judge_each(results.models, rule)


def _by_sample(rows: pd.DataFrame, column: str) -> np.ndarray:
    """Mean over layers in each sample.

    Raises:
        NotMeasurableError: there is no row.
    """
    if rows.empty:
        raise NotMeasurableError(f"{column}: not measured at the layers asked for")
    return rows.groupby("sample")[column].mean().to_numpy()


def spectra_flat(results: Results) -> Finding:
    """R7 (z's range over the layers beyond 10): no spectral metric moves as much as usual.

    Each metric's range over a model's layers must lie below one standard deviation (ddof 1) of
    its values at all layers of all models; this is ruled out where even the nearest ends of the
    intervals of its extremes are further apart. A single model has no other to be compared with.
    """
    measured = [evidence for evidence in results.models if "spectral" in evidence.tables]

    def rule(evidence: Evidence) -> ModelVerdict:
        z = layers(evidence.z(), evidence.depth)["z"]
        span = float(z.max() - z.min())
        own = layers(evidence.table("spectral"), evidence.depth)
        if not span > SWING:
            raise NotMeasurableError(f"z ranges over {span:.1f}, no more than {SWING:g}")
        if len(measured) < 2:
            raise NotMeasurableError("one model: its metrics cannot be compared with others'")
        flat = {
            str(metric): _flat(rows, _spread(measured, str(metric)))
            for metric, rows in own.groupby("metric", sort=False)
        }
        moving = [metric for metric, verdict in flat.items() if verdict is not Verdict.REPRODUCED]
        text = f"z ranges over {span:.1f}; flat: {tally(list(flat.values()))} metrics"
        text += f" (not {', '.join(moving)})" if moving else ""
        return ModelVerdict(evidence.name, every(list(flat.values())), text)

    return judge_each(results.models, rule)


def _spread(models: Iterable[Evidence], metric: str) -> float:
    tables = [layers(evidence.table("spectral"), evidence.depth) for evidence in models]
    values = pd.concat(tables)
    return float(values.loc[values["metric"] == metric, "value"].std(ddof=1))


def _flat(rows: pd.DataFrame, spread: float) -> Verdict:
    if rows["value"].max() - rows["value"].min() < spread:
        return Verdict.REPRODUCED
    moves = rows["ci_low"].max() - rows["ci_high"].min() > spread
    return Verdict.NOT_REPRODUCED if moves else Verdict.MIXED


def hidden_from_the_loss(results: Results) -> Finding:
    """R8 (two models with checkpoints): like losses at a matched step, unlike regimes.

    Steps are matched by number, and losses are like within 5 % of the smaller. Before training all
    losses are alike, so that a step counts only where both models beat the bigram model that their
    loss is held against, or, without one, from the second checkpoint on. The claim says that such
    a pair exists: one is enough. It is not reproduced where there are like losses and their regimes
    are alike every time; where no losses are alike, neither is shown.
    """
    trained = [e for e in results.models if {"training", "losses"} <= set(e.tables)]
    if len(trained) < 2:
        return Finding(Verdict.NOT_TESTABLE, ())
    pairs = tuple(_loss_hides(*pair) for pair in combinations(trained, 2))
    judged = [pair.verdict for pair in pairs if pair.verdict is not Verdict.MIXED]
    return Finding(some(judged) if judged else Verdict.MIXED, pairs)


def _loss_hides(first: Evidence, second: Evidence) -> ModelVerdict:
    losses, others = _learned(first), _learned(second)
    like = [
        step
        for step in losses.index.intersection(others.index)
        if abs(losses[step] - others[step]) <= LIKE_LOSS * min(losses[step], others[step])
    ]
    pair = f"{first.name} and {second.name}"
    if not like:
        text = "losses never within 5 % at a matched step at which both have learned"
        return ModelVerdict(pair, Verdict.MIXED, text)
    regimes = {step: (_regime_at(first, step), _regime_at(second, step)) for step in like}
    unlike = [step for step, (own, other) in regimes.items() if own != other]
    step = (unlike or like)[-1]
    text = (
        f"losses within 5 % at {len(like)} matched steps, regimes different at {len(unlike)}; "
        f"step {step}: losses {losses[step]:.2f} and {others[step]:.2f}, regimes "
        f"{' and '.join(regimes[step])}"
    )
    return ModelVerdict(pair, Verdict.REPRODUCED if unlike else Verdict.NOT_REPRODUCED, text)


def _learned(evidence: Evidence) -> pd.Series:
    """Validation loss by step, at the checkpoints that have learned something."""
    losses = evidence.table("losses").set_index("step")["validation_loss"].sort_index()
    if evidence.bigram_loss is None:
        return losses.iloc[1:]
    return losses[losses < evidence.bigram_loss]


def _regime_at(evidence: Evidence, step: int) -> str:
    table = evidence.table("training")
    return regime_of(table[table["step"] == step]).regime


def agree_in_the_readout(results: Results) -> Finding:
    """R9 (two models): they agree more in readout space than in full space, and than in random.

    Paired differences over the same points of the text; the figure is the median over matched
    depths. So are the ends of its interval: the errors at all depths come from the same points.
    """

    def judge(pair: Agreement) -> ModelVerdict:
        against = {
            name: _median_over_depth(pair, f"readout_minus_{name}") for name in ("full", "random")
        }
        verdict = every([surely_above(difference, 0.0) for difference in against.values()])
        text = "; ".join(f"readout less {name} {_shown(d, 3)}" for name, d in against.items())
        return ModelVerdict(f"{pair.first} and {pair.second}", verdict, text)

    missing = [
        ModelVerdict(pair, Verdict.NOT_TESTABLE, reason) for pair, reason in results.missing.items()
    ]
    return finding([*(judge(pair) for pair in results.pairs), *missing])


def _median_over_depth(pair: Agreement, quantity: str) -> Estimate:
    rows = pair.along_depth[pair.along_depth["quantity"] == quantity]
    return _medians(rows)


def _medians(rows: pd.DataFrame, column: str = "value") -> Estimate:
    """Median over rows, and medians of the ends of their intervals."""
    value, low, high = rows[[column, "ci_low", "ci_high"]].median()
    return Estimate(float(value), float(low), float(high))


def high_z_probes_better(results: Results) -> Finding:
    """R10 (d ≥ 2048): Spearman of z and probe accuracy over the layers is above 0, by CI.

    The probe on the mean over a text's tokens decides.
    """

    def rule(evidence: Evidence) -> ModelVerdict:
        correlation = _correlation(evidence, "probe_correlation", "mean")
        text = f"Spearman of z and accuracy over layers {_shown(correlation, 2)}"
        return ModelVerdict(evidence.name, surely_above(correlation, 0.0), text, correlation)

    return judge_each(results.models, rule, LARGE)


def _correlation(evidence: Evidence, table: str, quantity: str) -> Estimate:
    """A stored correlation with z over the layers.

    Raises:
        NotMeasurableError: it was not measured.
    """
    found = evidence.table(table)
    rows = found[found["quantity"] == quantity]
    if rows.empty:
        raise NotMeasurableError(f"{table} of {quantity}: not measured")
    return estimates(rows)[0]


def probes_stay_accurate(results: Results) -> Finding:
    """R11 (d ≤ 1024, a zone): accuracy in the zone is at least the peak less 2 points.

    Median over the zone's layers against the best layer; it is ruled out by the median of the
    upper ends. The probe on the mean over a text's tokens decides.
    """

    def rule(evidence: Evidence) -> ModelVerdict:
        zone = evidence.zone()
        table = evidence.table("probe")
        mean = layers(table[table["pooling"] == "mean"], evidence.depth)
        inside = _medians(between(mean, *zone), "accuracy")
        peak = float(mean["accuracy"].max())
        bound = peak - TWO_POINTS
        verdict = Verdict.REPRODUCED if inside.value >= bound else above(inside, bound)
        text = (
            f"accuracy {_shown(inside, 3)} in the zone H_{zone[0]} to H_{zone[1]}, {peak:.3f} at "
            "the best layer"
        )
        return ModelVerdict(evidence.name, verdict, text, inside)

    return judge_each(results.models, rule, SMALL)


def width_decides(results: Results) -> Finding:
    """R12 (two families of one class of widths): within a class the regimes agree.

    The classes are the document's: d up to 1024, from 2048 on, and what lies between. A class with
    models of one family alone is not judged. Regimes agree where all are the same, and disagree
    where one is *detour* and another *direct*; beside *mixed*, which is neither, it stays open.
    """
    classes: defaultdict[str, list[Evidence]] = defaultdict(list)
    for evidence in results.models:
        if "pga" in evidence.tables:
            classes[_width_class(evidence.width)].append(evidence)
    return finding(_regimes_agree(name, models) for name, models in classes.items())


def _width_class(width: int) -> str:
    if width in SMALL:
        return "d ≤ 1024"
    return "d ≥ 2048" if width in LARGE else "1024 < d < 2048"


def _regimes_agree(name: str, models: list[Evidence]) -> ModelVerdict:
    regimes = {evidence.name: evidence.regime().regime for evidence in models}
    text = ", ".join(f"{model} {regime}" for model, regime in regimes.items())
    if len({evidence.family for evidence in models}) < 2:
        return ModelVerdict(name, Verdict.NOT_TESTABLE, f"one family alone: {text}")
    found = set(regimes.values())
    if len(found) == 1:
        return ModelVerdict(name, Verdict.REPRODUCED, text)
    opposed = {"detour", "direct"} <= found
    return ModelVerdict(name, Verdict.NOT_REPRODUCED if opposed else Verdict.MIXED, text)


def random_does_as_well(results: Results) -> Finding:
    """R13 (a zone): in the zone the null's mean is at or above the readout's rho, by CI.

    Mean over the zone's layers of the difference, with the Student t interval over the disjoint
    samples of tokens.
    """

    def rule(evidence: Evidence) -> ModelVerdict:
        zone = evidence.zone()
        table = evidence.table("pga_samples")
        inside = between(table[table["level"] == 1], *zone)
        excess = sample_mean_estimate(
            _by_sample(inside, "null_mean") - _by_sample(inside, "rho_readout")
        )
        text = (
            f"mean of random subspaces less readout {_shown(excess, 3)} in the zone H_{zone[0]} to "
            f"H_{zone[1]}"
        )
        return ModelVerdict(evidence.name, surely_above(excess, 0.0), text, excess)

    return judge_each(results.models, rule)


def not_decodability(results: Results) -> Finding:
    """R14: Spearman of the lens's agreement and z over the layers has an interval that holds 0.

    With few layers the interval is wide, and holding 0 then says little.
    """

    def rule(evidence: Evidence) -> ModelVerdict:
        correlation = _correlation(evidence, "lens_correlation", "agreement")
        held = correlation.ci_low <= 0.0 <= correlation.ci_high
        apart = correlation.ci_low > 0.0 or correlation.ci_high < 0.0
        verdict = Verdict.NOT_REPRODUCED if apart else Verdict.MIXED
        text = f"Spearman of lens agreement and z over layers {_shown(correlation, 2)}"
        return ModelVerdict(
            evidence.name, Verdict.REPRODUCED if held else verdict, text, correlation
        )

    return judge_each(results.models, rule)
