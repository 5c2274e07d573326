"""All 24 claims are there, with what a reader needs to judge them."""

import re

from layergeom.claims import CLAIMS
from layergeom.claims.ledger import counts, ledger, takes_no_part
from layergeom.claims.verdicts import Verdict
from layergeom.report.published import published
from synthetic_evidence import evidence, one

IDS = [*(f"U{n}" for n in range(1, 11)), *(f"R{n}" for n in range(1, 15))]


def test_all_claims_of_both_documents_are_there_in_order() -> None:
    assert [claim.id for claim in CLAIMS] == IDS
    assert list(published()) == IDS


def test_each_has_document_statement_figure_rule_and_function_of_its_own() -> None:
    for claim in CLAIMS:
        said = claim.published
        assert said.document == {"U": "Updates", "R": "Readout"}[claim.id[0]]
        for text in (said.statement, said.published, claim.quantity, claim.rule, claim.needs):
            assert text.strip()
        assert re.match(rf"{claim.id}\b", claim.judge.__doc__ or "")
    assert len({claim.judge for claim in CLAIMS}) == len(IDS)


def test_without_any_model_nothing_can_be_tested() -> None:
    found = counts(ledger(one()))
    assert found[Verdict.NOT_TESTABLE] == sum(found.values()) == len(IDS)


def test_why_a_model_takes_no_part_is_said() -> None:
    weak = evidence("weak", decides=False, bigram_loss=5.25)
    assert "5.25 nats of a bigram model" in takes_no_part([weak, evidence("fine")])["weak"]
    assert list(takes_no_part([weak, evidence("fine")])) == ["weak"]
