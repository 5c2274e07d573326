"""The ledger as tables: for its page, for its data file and for the terminal."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from layergeom.claims.evidence import Evidence
from layergeom.claims.ledger import Claim, Entry, counts, takes_no_part
from layergeom.claims.verdicts import ModelVerdict, Verdict
from layergeom.naming import ACROSS, slug

#: A claim's verdict and a model's stand side by side in the data.
_COLUMNS = {"verdict": "model_verdict"}


@dataclass(frozen=True)
class Links:
    """Links from the ledger's page to the pages that show the figures.

    Attributes:
        notebooks: the notebooks whose pages the book has; no other is linked to.
        models: the models that they are about.
    """

    notebooks: frozenset[str] = frozenset()
    models: frozenset[str] = frozenset()

    def figures(self, claim: Claim) -> str:
        """A link to the page that compares all models, or to the one that lists theirs."""
        if claim.notebook not in self.notebooks:
            return ""
        page = f"--{slug(ACROSS)}.ipynb" if claim.across else ".md"
        return f"[figure](../{claim.notebook}{page})"

    def model(self, claim: Claim, name: str) -> str:
        """A model's name, as a link to the page of its figure where there is one."""
        shown = re.sub(r"([\\`*_{}\[\]<>#&$])", r"\\\1", name)
        if claim.across or claim.notebook not in self.notebooks or name not in self.models:
            return shown
        return f"[{shown}](../{claim.notebook}--{slug(name)}.ipynb)"


def overview(entries: Iterable[Entry], links: Links) -> pd.DataFrame:
    """One row per claim: what the document says, and the verdict on all models together."""
    return pd.DataFrame(
        {
            "claim": entry.claim.id,
            "document, and its figure": (
                f"{entry.claim.published.document}: {entry.claim.published.statement} "
                f"(*{entry.claim.published.published}*)"
            ),
            "verdict": f"**{entry.finding.verdict}**",
            "shown in": links.figures(entry.claim),
        }
        for entry in entries
    )


def by_model(entries: Iterable[Entry], links: Links) -> pd.DataFrame:
    """One row per claim and model: what is measured, and the model's own verdict."""
    rows = [
        (
            entry.claim.id,
            links.model(entry.claim, model.model),
            model.measured,
            _own(model),
        )
        for entry in entries
        for model in entry.finding.models
    ]
    return pd.DataFrame(rows, columns=["claim", "model", "measured", "verdict"])


def _own(model: ModelVerdict) -> str:
    """A single model's verdict, which does not speak of models."""
    return "not testable" if model.verdict is Verdict.NOT_TESTABLE else str(model.verdict)


def rules(entries: Iterable[Entry]) -> pd.DataFrame:
    """One row per claim: what is measured, and when it counts as reproduced."""
    return pd.DataFrame(
        {
            "claim": entry.claim.id,
            "quantity": entry.claim.quantity,
            "reproduced where": entry.claim.rule,
            "needs": entry.claim.needs,
        }
        for entry in entries
    )


def in_full(entries: Iterable[Entry]) -> pd.DataFrame:
    """Everything: one row per claim and model, one for a claim that no model bears on."""
    return pd.DataFrame(
        {
            **_described(entry.claim),
            "verdict": str(entry.finding.verdict),
            **{_COLUMNS.get(key, key): value for key, value in _judged(model).items()},
        }
        for entry in entries
        for model in entry.finding.models or [None]
    )


def as_json(entries: Sequence[Entry], models: Sequence[Evidence]) -> dict[str, Any]:
    """The ledger as JSON values."""
    outside = takes_no_part(models)
    return {
        "models": [
            {
                "model": evidence.name,
                "family": evidence.family,
                "width": evidence.width,
                "depth": evidence.depth,
                "state_space": evidence.state_space,
                "takes_no_part": outside.get(evidence.name),
            }
            for evidence in models
        ],
        "counts": {str(verdict): count for verdict, count in counts(entries).items()},
        "claims": [
            {
                **_described(entry.claim),
                "verdict": str(entry.finding.verdict),
                "models": [_judged(model) for model in entry.finding.models],
            }
            for entry in entries
        ],
    }


def _described(claim: Claim) -> dict[str, str]:
    document = claim.published
    return {
        "claim": claim.id,
        "document": document.document,
        "statement": document.statement,
        "published": document.published,
        "quantity": claim.quantity,
        "rule": claim.rule,
        "needs": claim.needs,
        "notebook": claim.notebook,
    }


def _judged(found: ModelVerdict | None) -> dict[str, str | float | None]:
    if found is None:
        return dict.fromkeys(("model", "verdict", "measured", "value", "ci_low", "ci_high"))
    estimate = found.estimate
    return {
        "model": found.model,
        "verdict": str(found.verdict),
        "measured": found.measured,
        "value": None if estimate is None else estimate.value,
        "ci_low": None if estimate is None else estimate.ci_low,
        "ci_high": None if estimate is None else estimate.ci_high,
    }


def summary(entries: Iterable[Entry]) -> str:
    """How many claims got each verdict, in one line."""
    found: Mapping[Verdict, int] = counts(entries)
    parts = [f"{count} {verdict}" for verdict, count in found.items()]
    return f"{sum(found.values())} claims: {', '.join(parts)}."


def outsiders(models: Iterable[Evidence]) -> str:
    """One sentence for each model that takes no part; empty where all do."""
    reasons = takes_no_part(models).items()
    return " ".join(f"{name} takes no part: {reason}." for name, reason in reasons)


def as_text(entries: Iterable[Entry]) -> str:
    """The ledger for a terminal: each claim with its verdict, its models indented below it."""
    lines = []
    for entry in entries:
        said = entry.claim.published
        lines.append(
            f"{entry.claim.id:4}{entry.finding.verdict.upper()}  {said.document}: "
            f"{said.statement}; {said.published}"
        )
        lines += [
            f"      {found.model}: {_own(found)}; {found.measured}"
            for found in entry.finding.models
        ]
    return "\n".join(lines)
