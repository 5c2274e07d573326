"""The ledger: every claim of both documents, its rule, and what becomes of it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from layergeom.claims import readout, updates
from layergeom.claims.evidence import Evidence, Results
from layergeom.claims.verdicts import Finding, ModelVerdict, Verdict
from layergeom.report.published import Published, published


@dataclass(frozen=True)
class Claim:
    """One claim.

    Attributes:
        id: as the ledger counts it.
        quantity: what is measured.
        rule: when the claim is reproduced.
        needs: the models that it needs.
        judge: the rule as a function of stored results.
        notebook: the notebook whose page shows it.
        across: whether that page compares all models.
    """

    id: str
    quantity: str
    rule: str
    needs: str
    judge: Callable[[Results], Finding]
    notebook: str
    across: bool = False

    @property
    def published(self) -> Published:
        """Document, statement in our own words, and the document's figure."""
        return published()[self.id]


CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="U1",
        quantity="cosine of h' and T(h)",
        rule="interval above 0.95 at every block but the first and last",
        needs="any model of three blocks or more",
        judge=updates.parallel,
        notebook="updates/alignment_by_layer",
    ),
    Claim(
        id="U2",
        quantity="cosine of h' and T(h) less that of h' and r; angle of T(h) and r",
        rule="difference above 0 by interval at every block, angle above 60° in at least half",
        needs="any model",
        judge=updates.less_aligned,
        notebook="updates/alignment_by_layer",
    ),
    Claim(
        id="U3",
        quantity="energy share in the dominant tokenwise subspace, T(h) less r",
        rule="above 0 by interval at every block",
        needs="any model",
        judge=updates.lower_share,
        notebook="updates/tokenwise_subspace",
    ),
    Claim(
        id="U4",
        quantity="Spearman of RelErr and KL over tokens",
        rule="above 0.7 in at least half of the blocks",
        needs="any model",
        judge=updates.predicts,
        notebook="updates/error_vs_perturbation",
    ),
    Claim(
        id="U5",
        quantity="Spearman of RelErr and KL, median over blocks",
        rule="rises with size, intervals apart",
        needs="three models of one family or more",
        judge=updates.stronger_in_larger,
        notebook="updates/correlation_table",
        across=True,
    ),
    Claim(
        id="U6",
        quantity="verdicts of U1 to U4",
        rule="the same on a state-space model as on transformers",
        needs="a state-space model and a transformer",
        judge=updates.state_space,
        notebook="updates/architectures",
        across=True,
    ),
    Claim(
        id="U7",
        quantity="RelErr and cosine of h' and T(h), middle third less the other blocks",
        rule="RelErr above 0 and cosine below 0, by interval",
        needs="any model",
        judge=updates.larger_in_the_middle,
        notebook="updates/layer_regimes",
    ),
    Claim(
        id="U8",
        quantity="verdicts of U2 to U4 by class of map",
        rule="the same for every class",
        needs="any model",
        judge=updates.any_class,
        notebook="updates/function_classes",
    ),
    Claim(
        id="U9",
        quantity="KL of the error r less that of an equally long error along T(h) - h",
        rule="above 0 by interval in at least half of the blocks",
        needs="any model",
        judge=updates.residual_matters,
        notebook="updates/equal_errors",
    ),
    Claim(
        id="U10",
        quantity="RelErr, |r| / |h'|",
        rule="below 0.5 at every block",
        needs="any model",
        judge=updates.small_residual,
        notebook="updates/layer_regimes",
    ),
    Claim(
        id="R1",
        quantity="z at intermediate layers",
        rule="every lower bound above 2; the peak in the middle third, 9 to 24",
        needs="d ≥ 2048",
        judge=readout.organised_throughout,
        notebook="readout/pga_by_layer",
    ),
    Claim(
        id="R2",
        quantity="z at late layers",
        rule="regime detour: a late layer's interval wholly below -2",
        needs="d ≤ 1024",
        judge=readout.detour,
        notebook="readout/pga_by_layer",
    ),
    Claim(
        id="R3",
        quantity="z at the final layer, before and after the final norm",
        rule="above 0, and risen from the collapse zone, by interval, at both",
        needs="d ≤ 1024",
        judge=readout.recovers,
        notebook="readout/pga_by_layer",
    ),
    Claim(
        id="R4",
        quantity="z at late layers by training step, with validation loss",
        rule="a step with its lower bound above 2, later a fall by interval at a lower loss",
        needs="d ≤ 1024, with checkpoints",
        judge=readout.lost_in_training,
        notebook="readout/training_dynamics",
    ),
    Claim(
        id="R5",
        quantity="z at every layer, at CCR-5 and CCR-10",
        rule="at one of the two levels every lower bound above 0",
        needs="d ≥ 768",
        judge=readout.masked,
        notebook="readout/masking",
    ),
    Claim(
        id="R6",
        quantity="dark share of the first component, collapse zone less first third",
        rule="above 0 by interval, and the share itself above 1 - k/d",
        needs="a collapse zone",
        judge=readout.turns_dark,
        notebook="readout/pc1_migration",
    ),
    Claim(
        id="R7",
        quantity="range of each spectral metric over the layers",
        rule="below one standard deviation over models and layers",
        needs="two models, one whose z ranges over more than 10",
        judge=readout.spectra_flat,
        notebook="readout/spectral_metrics",
    ),
    Claim(
        id="R8",
        quantity="validation loss and regime at matched steps",
        rule="losses within 5 %, regimes different",
        needs="two models with checkpoints",
        judge=readout.hidden_from_the_loss,
        notebook="readout/training_dynamics",
    ),
    Claim(
        id="R9",
        quantity="agreement of two models' distances, readout less full and less random space",
        rule="both above 0 by interval",
        needs="two models",
        judge=readout.agree_in_the_readout,
        notebook="readout/convergence",
        across=True,
    ),
    Claim(
        id="R10",
        quantity="Spearman of z and probe accuracy over layers",
        rule="above 0 by interval",
        needs="d ≥ 2048",
        judge=readout.high_z_probes_better,
        notebook="readout/probe_utility",
    ),
    Claim(
        id="R11",
        quantity="probe accuracy in the collapse zone against the best layer's",
        rule="at least the best layer's less 2 points",
        needs="d ≤ 1024, a collapse zone",
        judge=readout.probes_stay_accurate,
        notebook="readout/probe_utility",
    ),
    Claim(
        id="R12",
        quantity="regime by class of widths",
        rule="the same within a class, across families",
        needs="two families in one class of widths",
        judge=readout.width_decides,
        notebook="readout/scale_table",
        across=True,
    ),
    Claim(
        id="R13",
        quantity="mean of random subspaces less readout (rho), in the collapse zone",
        rule="above 0 by interval",
        needs="a collapse zone",
        judge=readout.random_does_as_well,
        notebook="readout/pga_by_layer",
    ),
    Claim(
        id="R14",
        quantity="Spearman of lens agreement and z over layers",
        rule="its interval holds 0, which says little where there are few layers",
        needs="any model",
        judge=readout.not_decodability,
        notebook="readout/logit_lens",
    ),
)


@dataclass(frozen=True)
class Entry:
    """A claim with what becomes of it."""

    claim: Claim
    finding: Finding


def ledger(results: Results, claims: Sequence[Claim] = CLAIMS) -> tuple[Entry, ...]:
    """Judge every claim; a model that does not beat its bigram model decides none.

    What is measured of such a model alone is reported beside the others.
    """
    deciding = results.taking_part()
    outside = [evidence for evidence in results.models if not evidence.decides]
    entries = []
    for claim in claims:
        found = claim.judge(deciding)
        aside = [row for evidence in outside for row in _reported(claim, evidence)]
        entries.append(Entry(claim, Finding(found.verdict, (*found.models, *aside))))
    return tuple(entries)


def _reported(claim: Claim, evidence: Evidence) -> Iterator[ModelVerdict]:
    for found in claim.judge(Results([evidence])).models:
        if found.verdict is not Verdict.NOT_TESTABLE:
            text = f"takes no part; {found.measured}"
            yield replace(found, verdict=Verdict.NOT_TESTABLE, measured=text)


def counts(entries: Iterable[Entry]) -> dict[Verdict, int]:
    """How many claims got each verdict, those of none included."""
    found = [entry.finding.verdict for entry in entries]
    return {verdict: found.count(verdict) for verdict in Verdict}


def takes_no_part(models: Iterable[Evidence]) -> dict[str, str]:
    """Why a model decides nothing, by its name."""
    return {
        evidence.name: f"its held-out loss does not beat the {evidence.bigram_loss:.2f} nats of a "
        "bigram model"
        for evidence in models
        if not evidence.decides and evidence.bigram_loss is not None
    }
