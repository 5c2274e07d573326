"""The ledger as tables: one row per claim, one per model, links that exist, strict JSON."""

import json
from dataclasses import replace

import pandas as pd
import pytest

from layergeom import claims
from layergeom.claims import CLAIMS, Entry, Links, Results
from synthetic_evidence import evidence, pga, updates

NOTEBOOKS = frozenset(claim.notebook for claim in CLAIMS)


@pytest.fixture
def results() -> Results:
    tables = (pga({8: -5.0}, rest=5.0), updates({"rel_err_state": 0.4}))
    return Results([evidence("owner/<one>", *tables), evidence("two", *tables, decides=False)])


@pytest.fixture
def entries(results: Results) -> tuple[Entry, ...]:
    return claims.ledger(results)


def test_the_overview_has_one_row_per_claim(entries: tuple[Entry, ...]) -> None:
    table = claims.overview(entries, Links())
    assert list(table["claim"]) == [claim.id for claim in CLAIMS]
    row = table.set_index("claim").loc["R2"]
    assert row["document, and its figure"].startswith("Readout: for d ≤ 1024, z falls below 0")
    assert "-32" in row["document, and its figure"]
    assert row["verdict"] == "**reproduced**"


def test_each_models_row_says_what_is_measured(entries: tuple[Entry, ...]) -> None:
    table = claims.by_model(entries, Links()).set_index("claim")
    text = "largest RelErr 0.40 [0.39, 0.41]; below 0.5 in 9 of 9 blocks"
    assert table.loc["U10"].to_numpy().tolist() == [
        [r"owner/\<one\>", text, "reproduced"],
        ["two", f"takes no part; {text}", "not testable"],
    ]
    assert set(table["model"]) == {r"owner/\<one\>", "two", "d ≤ 1024"}
    assert list(claims.by_model([], Links()).columns) == ["claim", "model", "measured", "verdict"]


def test_links_lead_to_pages_of_the_book_and_to_no_other(entries: tuple[Entry, ...]) -> None:
    links = Links(NOTEBOOKS, frozenset({"owner/<one>"}))
    table = claims.overview(entries, links).set_index("claim")["shown in"]
    assert table["R2"] == "[figure](../readout/pga_by_layer.md)"
    assert table["U5"] == "[figure](../updates/correlation_table--all-models.ipynb)"
    models = claims.by_model(entries, links).drop_duplicates("claim").set_index("claim")["model"]
    assert models["R2"] == r"[owner/\<one\>](../readout/pga_by_layer--owner-one.ipynb)"
    assert models["R12"] == "d ≤ 1024"
    few = Links(NOTEBOOKS - {"readout/pga_by_layer"}, frozenset({"owner/<one>"}))
    assert claims.overview(entries, few).set_index("claim")["shown in"]["R2"] == ""
    unlinked = claims.by_model(entries, few).set_index("claim")["model"]["R2"]
    assert list(unlinked) == [r"owner/\<one\>", "two"]


def test_the_data_hold_every_claim_with_the_deciding_figure(entries: tuple[Entry, ...]) -> None:
    table = claims.in_full(entries)
    assert set(table["claim"]) == {claim.id for claim in CLAIMS}
    row = table.drop_duplicates("claim").set_index("claim").loc["U10"]
    assert (row["verdict"], row["model_verdict"]) == ("reproduced", "reproduced")
    assert (row["value"], row["ci_low"], row["ci_high"]) == pytest.approx((0.4, 0.39, 0.41))
    empty = table.set_index("claim").loc["U6"]
    assert empty["verdict"] == "not testable with these models"
    assert pd.isna(empty["model"])


def test_the_summary_counts_every_claim(entries: tuple[Entry, ...]) -> None:
    text = claims.summary(entries)
    assert text.startswith("24 claims: 2 reproduced, ")
    assert text.endswith("not testable with these models.")
    counted = [int(word) for word in text.replace(",", "").split() if word.isdigit()]
    assert counted[0] == sum(counted[1:])


def test_a_model_that_takes_no_part_is_said_with_its_reason(results: Results) -> None:
    assert claims.outsiders(results.models[:1]) == ""
    weak = replace(results.models[1], bigram_loss=5.0)
    text = claims.outsiders([results.models[0], weak])
    assert text.startswith("two takes no part: its held-out loss does not beat the 5.00 nats")


def test_json_holds_the_same_ledger(entries: tuple[Entry, ...], results: Results) -> None:
    printed = json.loads(json.dumps(claims.as_json(entries, results.models), allow_nan=False))
    assert [row["claim"] for row in printed["claims"]] == [claim.id for claim in CLAIMS]
    row = next(row for row in printed["claims"] if row["claim"] == "U10")
    assert row["verdict"] == "reproduced"
    assert row["models"][0]["model"] == "owner/<one>"
    assert row["models"][0]["value"] == pytest.approx(0.4)
    assert sum(printed["counts"].values()) == len(CLAIMS)
    assert {"rule", "published", "statement", "document"} <= set(row)


def test_the_terminal_shows_verdicts_and_figures(entries: tuple[Entry, ...]) -> None:
    text = claims.as_text(entries)
    assert "R2  REPRODUCED  Readout: for d ≤ 1024" in text
    assert "      owner/<one>: reproduced; largest RelErr 0.40" in text


def test_every_rule_is_shown(entries: tuple[Entry, ...]) -> None:
    table = claims.rules(entries)
    assert len(table) == len(CLAIMS)
    assert (table.map(len) > 0).all(axis=None)
