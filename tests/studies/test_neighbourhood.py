"""Each alternative is the fit that it says, and the default is that of the other pages."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from layergeom.geometry.neighbours import Metric
from layergeom.studies import NeighbourhoodStudy, Session
from layergeom.studies.neighbourhood import choices
from layergeom.studies.settings import SIZES
from reference import maps
from reference.neighbours import nearest
from tiny_models import DEPTH, WIDTH

BANK, LENGTH, SKIP = 9, 16, 1


@pytest.fixture(scope="module")
def study(tiny_settings: Any) -> NeighbourhoodStudy:
    return NeighbourhoodStudy(Session(tiny_settings))


def test_the_alternatives_are_those_of_the_method() -> None:
    found = choices(SIZES["default"], "euclidean", False)
    by_choice = {
        name: [(c.alternative, c.default) for c in found if c.choice == name]
        for name in ("neighbours", "rank", "metric", "same_token")
    }
    assert by_choice == {
        "neighbours": [("16", False), ("32", False), ("64", True), ("128", False)],
        "rank": [("2", False), ("8", True), ("32", False)],
        "metric": [("euclidean", True), ("cosine", False)],
        "same_token": [("kept", True), ("left out", False)],
    }


@pytest.mark.parametrize("exclude", [False, True])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_each_choice_has_one_default_and_moves_alone(metric: Metric, exclude: bool) -> None:
    found = choices(SIZES["smoke"], metric, exclude)
    for name in {c.choice for c in found}:
        assert sum(c.default for c in found if c.choice == name) == 1
    for c in found:
        moved = {
            "neighbours": c.neighbours != 16,
            "rank": c.rank != 4,
            "metric": c.metric != metric,
            "same_token": c.exclude != exclude,
        }
        assert moved.pop(c.choice) == (not c.default)
        assert not any(moved.values())
        assert (c.map_class == "low_rank") == (c.choice == "rank")


def test_every_alternative_is_one_dense_fit_per_token(study: NeighbourhoodStudy) -> None:
    table, fits, states = study.table(), study.updates.fits, study.updates.fits.states
    assert study.facts == {"blocks": [0, 1, 2], "tokens": 50}
    assert set(table["block"]) == {0, 1, 2}
    block = 1
    sequences, positions = fits.query_places
    h, full = (
        states.at(f"H_{layer}")[BANK:][sequences, positions].astype(np.float64)
        for layer in (block, block + 1)
    )
    below, above = (
        states.at(f"H_{layer}")[:BANK, SKIP:].reshape(-1, WIDTH).astype(np.float64)
        for layer in (block, block + 1)
    )
    ids = states.tokens[BANK:][sequences, positions]
    bank_ids = states.tokens[:BANK, SKIP:].ravel()
    for choice in choices(study.settings.sizes, "euclidean", False):
        groups = (ids, bank_ids) if choice.exclude else ()
        near = nearest(h, below, choice.neighbours, choice.metric, *groups)
        extra = (choice.rank,) if choice.map_class == "low_rank" else ()
        fit = getattr(maps, choice.map_class)
        t = np.array([fit(h[i], below[n], above[n], *extra) for i, n in enumerate(near)])
        errors = np.linalg.norm(full - t, axis=1) / np.linalg.norm(full, axis=1)
        rows = table[
            (table["block"] == block)
            & (table["choice"] == choice.choice)
            & (table["alternative"] == choice.alternative)
        ]
        value = rows[rows["quantity"] == "rel_err_state"]["value"].item()
        assert value == pytest.approx(np.median(errors), rel=1e-5), choice
        assert (rows["default"] == choice.default).all()


def test_the_default_is_what_the_other_pages_show(study: NeighbourhoodStudy) -> None:
    table, summary = study.table(), study.updates.summary()
    for name, choice in (("orthogonal", "metric"), ("low_rank", "rank")):
        for quantity in ("rel_err_state", "angle_tokenwise_residual_state"):
            ours = table[
                (table["choice"] == choice) & table["default"] & (table["quantity"] == quantity)
            ]
            theirs = summary[(summary["class"] == name) & (summary["quantity"] == quantity)]
            for column in ("value", "ci_low", "ci_high"):
                np.testing.assert_allclose(ours[column], theirs[column], rtol=1e-5)


def test_what_a_small_bank_cannot_give_is_left_out(session: Session) -> None:
    sizes = session.settings.sizes.model_copy(update={"neighbours": 100})
    study = NeighbourhoodStudy(Session(replace(session.settings, sizes=sizes)))
    found = study._block(1).table("choices")
    assert BANK * (LENGTH - SKIP) == 135
    assert list(found[found["choice"] == "neighbours"]["alternative"].unique()) == [
        "25",
        "50",
        "100",
    ]


def test_blocks_and_tokens_are_few_and_spread(
    study: NeighbourhoodStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert study.blocks == list(range(DEPTH))
    monkeypatch.setattr("layergeom.studies.neighbourhood.TOKENS", 10)
    few = NeighbourhoodStudy(study.session).query
    assert len(few) == 10
    assert (few[0], few[-1]) == (0, 49)
    assert np.diff(few).max() - np.diff(few).min() <= 1
