"""From a real model's stored results to its ledger."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import synthetic_evidence
from layergeom import claims
from layergeom.claims import Evidence, Results
from layergeom.claims.gather import TABLES
from layergeom.studies import CLASSES, PGAStudy, Session, Settings, Sizes
from tiny_models import save_tiny

SIZES = Sizes(
    sequence_length=16,
    pga_tokens=40,
    pga_samples=3,
    null_subspaces=12,
    bank_sequences=9,
    query_sequences=4,
    replaced_sequences=2,
    single_positions=4,
    bootstrap_draws=10,
    neighbours=8,
    rank=3,
    subspace_dim=4,
)


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> list[Session]:
    """Two architectures on one short text."""
    folder: Path = tmp_path_factory.mktemp("given")
    rng = np.random.default_rng(0)
    words = ["layer", "norm", "state", "block", "token", "head", "rank", "angle", "tells"]
    stretches = [" ".join(rng.choice(words, 70)) + "." for _ in range(80)]
    text = folder / "text.txt"
    text.write_text("\n\n".join(stretches))
    models = [save_tiny(folder / f"tiny-{name}", name) for name in ("gpt_neox", "mamba")]
    return [Session(Settings(str(model), str(text), SIZES)) for model in models]


@pytest.fixture(scope="module")
def results(sessions: list[Session]) -> Results:
    return claims.gather_all(sessions)


def test_every_table_is_there_or_says_why_not(results: Results) -> None:
    for model in results.models:
        assert set(model.tables) | set(model.missing) == set(TABLES)
        assert set(model.missing) == {"probe", "probe_correlation", "losses", "training"}
        assert "no checkpoints" in model.missing["losses"]
        assert "telling articles apart needs 2" in model.missing["probe"]


MADE_UP = (
    synthetic_evidence.updates({"kl": 1.0}),
    synthetic_evidence.overall({"median_rel_err_state": 1.0}),
    synthetic_evidence.ZONE,
    synthetic_evidence.null_excess(0.0),
    synthetic_evidence.dark_shares(0.0, 0.0),
    synthetic_evidence.spectral(1.0),
    synthetic_evidence.correlation("lens_correlation", "agreement", 0.0, 0.1),
)


@pytest.mark.parametrize("tables", MADE_UP, ids=lambda tables: next(iter(tables)))
def test_made_up_evidence_has_the_columns_that_the_studies_give(
    results: Results, tables: dict[str, pd.DataFrame]
) -> None:
    """A rule that is tested on columns of its own would fail on a real model."""
    for model in results.models:
        for name, table in tables.items():
            assert set(table.columns) <= set(model.tables[name].columns)


def test_the_evidence_is_that_of_the_studies(results: Results, sessions: list[Session]) -> None:
    neox, mamba = results.models
    assert (neox.name, neox.state_space, mamba.state_space) == ("tiny-gpt_neox", False, True)
    assert (neox.width, neox.depth, neox.bigram_loss, neox.decides) == (32, 3, None, True)
    profile = PGAStudy(sessions[0]).profile()
    assert neox.regime() == profile.regime()
    assert neox.random_dark == 1 - profile.readout_dim / 32
    assert set(CLASSES) <= set(neox.tables["updates"]["class"])


def test_two_models_are_compared_where_their_tokens_match(results: Results) -> None:
    (pair,) = results.pairs
    assert (pair.first, pair.second) == ("tiny-gpt_neox", "tiny-mamba")


#: What two small models without checkpoints, of two families, cannot be asked. Of three blocks,
#: they have no late layer before the final one either.
ABSENT = {"U5", "R1", "R2", "R4", "R5", "R8", "R10", "R11"}
#: What needs a collapse zone, or a z that swings.
DEPENDS = {"R6", "R7", "R13"}


def test_claims_of_a_domain_that_is_there_end_in_a_verdict(results: Results) -> None:
    found = {entry.claim.id: entry.finding.verdict for entry in claims.ledger(results)}
    untested = {name for name, v in found.items() if v is claims.Verdict.NOT_TESTABLE}
    assert untested - DEPENDS == ABSENT


def test_one_model_has_no_pair_and_says_so(sessions: list[Session]) -> None:
    found = claims.gather_all(sessions[:1])
    assert found.pairs == ()
    assert "agreement between models needs 2 or more" in found.missing["all models"]
    (entry,) = claims.ledger(found, [c for c in claims.CLAIMS if c.id == "R9"])
    assert entry.finding.verdict is claims.Verdict.NOT_TESTABLE


def test_a_model_that_came_as_it_is_always_takes_part(results: Results) -> None:
    model: Evidence = results.models[0]
    assert results.taking_part().models == results.models
    assert model.bigram_loss is None
