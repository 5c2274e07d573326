"""The ledger of claims: what both documents say, and what becomes of it on the models at hand."""

from layergeom.claims.evidence import Agreement, Evidence, Results
from layergeom.claims.gather import gather, gather_all
from layergeom.claims.ledger import CLAIMS, Claim, Entry, ledger
from layergeom.claims.tables import (
    Links,
    as_json,
    as_text,
    by_model,
    in_full,
    outsiders,
    overview,
    rules,
    summary,
)
from layergeom.claims.verdicts import Finding, ModelVerdict, Verdict

__all__ = [
    "CLAIMS",
    "Agreement",
    "Claim",
    "Entry",
    "Evidence",
    "Finding",
    "Links",
    "ModelVerdict",
    "Results",
    "Verdict",
    "as_json",
    "as_text",
    "by_model",
    "gather",
    "gather_all",
    "in_full",
    "ledger",
    "outsiders",
    "overview",
    "rules",
    "summary",
]
