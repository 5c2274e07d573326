"""A small model end to end: what is stored equals what plain code makes of the stored states."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from layergeom.errors import UsageError
from layergeom.studies import BASELINES, CLASSES, BlockUpdate, FitsStudy, Session
from reference import maps
from reference.energy import shares
from reference.kl import divergence
from reference.neighbours import nearest
from tiny_models import DEPTH, WIDTH

BANK, QUERY, REPLACED, LENGTH, SKIP = 9, 4, 2, 16, 1

#: 50 query tokens of 4 sequences: 13, 13, 12 and 12, from the first position that is not skipped.
PLACES = [(s, p) for s, count in enumerate((13, 13, 12, 12)) for p in range(SKIP, SKIP + count)]
REPLACED_PLACES = [(s, p) for s, p in PLACES if s < REPLACED]


@pytest.fixture(scope="module")
def study(tiny_settings: Any) -> FitsStudy:
    return FitsStudy(Session(tiny_settings))


@pytest.fixture(scope="module")
def updates(study: FitsStudy) -> list[BlockUpdate]:
    return list(study.blocks())


def query_states(study: FitsStudy, layer: int) -> np.ndarray:
    hidden = study.states.at(f"H_{layer}").astype(np.float64)
    return np.array([hidden[BANK + s, p] for s, p in PLACES])


def bank_states(study: FitsStudy, layer: int) -> np.ndarray:
    return study.states.at(f"H_{layer}")[:BANK, SKIP:].reshape(-1, WIDTH).astype(np.float64)


def of_class(table: pd.DataFrame, name: str) -> pd.DataFrame:
    return table[table["class"] == name].reset_index(drop=True)


def test_each_block_has_every_class_and_exactly_the_query_tokens_asked_for(
    updates: list[BlockUpdate],
) -> None:
    assert [update.block for update in updates] == list(range(DEPTH))
    for update in updates:
        assert set(update.tokens["class"]) == {*CLASSES, *BASELINES}
        assert set(update.kl["class"]) == set(CLASSES)
        for name in (*CLASSES, *BASELINES):
            rows = of_class(update.tokens, name)
            assert list(zip(rows["sequence"], rows["position"], strict=True)) == PLACES
        for name in CLASSES:
            assert list(of_class(update.kl, name)["sequence"]) == [s for s, _ in REPLACED_PLACES]


@pytest.mark.parametrize("name", CLASSES)
def test_errors_and_cosines_are_those_of_the_stored_predictions(
    study: FitsStudy, updates: list[BlockUpdate], name: str
) -> None:
    for update in updates:
        h, full = query_states(study, update.block), query_states(study, update.block + 1)
        predicted = update.fits.array(f"predicted_{name}").astype(np.float64)
        rows = of_class(update.tokens, name)
        for i in range(len(PLACES)):
            r = full[i] - predicted[i]
            cosine = (
                full[i]
                @ predicted[i]
                / np.sqrt(full[i] @ full[i])
                / np.sqrt(predicted[i] @ predicted[i])
            )
            assert rows["rel_err_state"][i] == pytest.approx(
                np.sqrt(r @ r) / np.sqrt(full[i] @ full[i]), rel=1e-6
            )
            assert rows["rel_err_update"][i] == pytest.approx(
                np.sqrt(r @ r) / np.sqrt((full[i] - h[i]) @ (full[i] - h[i])), rel=1e-6
            )
            assert rows["cos_full_tokenwise_state"][i] == pytest.approx(cosine, abs=1e-6)


def test_neighbours_are_the_nearest_bank_tokens(
    study: FitsStudy, updates: list[BlockUpdate]
) -> None:
    for update in updates[1:]:  # at layer 0 equal tokens are at equal distances
        expected = nearest(query_states(study, update.block), bank_states(study, update.block), 8)
        np.testing.assert_array_equal(update.fits.array("neighbours"), expected)


def test_neighbours_may_be_chosen_by_cosine_and_among_other_tokens_only(
    tiny_settings: Any,
) -> None:
    settings = replace(tiny_settings, metric="cosine", exclude_same_token=True)
    study = FitsStudy(Session(settings), classes=("orthogonal",))
    tokens = study.states.tokens
    query = np.array([tokens[BANK + s, p] for s, p in PLACES])
    bank = tokens[:BANK, SKIP:].ravel()
    found = study.block(1).fits.array("neighbours")
    expected = nearest(query_states(study, 1), bank_states(study, 1), 8, "cosine", query, bank)
    np.testing.assert_array_equal(found, expected)
    assert (bank[found] != query[:, None]).all()


@pytest.mark.parametrize("name", ["diagonal", "orthogonal", "low_rank", "identity_low_rank"])
def test_local_maps_are_fitted_on_the_stored_neighbours(
    study: FitsStudy, updates: list[BlockUpdate], name: str
) -> None:
    extra = (3,) if "low_rank" in name else ()
    for update in updates[1:]:
        below, above = (bank_states(study, update.block + i) for i in (0, 1))
        h, near = query_states(study, update.block), update.fits.array("neighbours")
        predicted = update.fits.array(f"predicted_{name}")
        for i in range(0, len(PLACES), 7):
            expected = getattr(maps, name)(h[i], below[near[i]], above[near[i]], *extra)
            np.testing.assert_allclose(predicted[i], expected, atol=1e-5)


def test_baselines_are_the_identity_the_mean_update_and_one_linear_map(
    study: FitsStudy, updates: list[BlockUpdate]
) -> None:
    for update in updates[1:]:
        below, above = (bank_states(study, update.block + i) for i in (0, 1))
        h, full = query_states(study, update.block), query_states(study, update.block + 1)
        near = update.fits.array("neighbours")
        predicted = {
            "identity": h,
            "mean_update": np.array(
                [maps.mean_update(h[i], below[n], above[n]) for i, n in enumerate(near)]
            ),
            "global_linear": maps.global_linear(h, below, above),
        }
        for name, t in predicted.items():
            expected = np.linalg.norm(full - t, axis=1) / np.linalg.norm(full, axis=1)
            found = of_class(update.tokens, name)["rel_err_state"]
            np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_energy_shares_are_measured_on_the_other_half(
    study: FitsStudy, updates: list[BlockUpdate]
) -> None:
    sequences = np.array([s for s, _ in PLACES])
    for update in updates:
        full = query_states(study, update.block + 1)
        t = update.fits.array("predicted_orthogonal").astype(np.float64)
        expected = shares(full, t, full - t, sequences, dim=4, weights=np.ones(QUERY))
        found = update.energy("orthogonal", "state").shares(np.ones((1, QUERY)))[:, 3, 0]
        np.testing.assert_allclose(found, expected, atol=1e-6)


def plain_kl(study: FitsStudy, block: int, replaced: np.ndarray) -> np.ndarray:
    """KL at every position of the replaced sequences, by a hook on the network itself."""
    network = study.session.model.network
    ids = torch.from_numpy(study.states.tokens[BANK : BANK + REPLACED])
    with torch.no_grad():
        own = network(ids, use_cache=False).logits.numpy()
        handle = network.gpt_neox.layers[block].register_forward_hook(
            lambda _m, _a, _o: torch.from_numpy(replaced)
        )
        changed = network(ids, use_cache=False).logits.numpy()
        handle.remove()
    return np.array(
        [[divergence(own[s, p], changed[s, p]) for p in range(LENGTH)] for s in range(REPLACED)]
    )


@pytest.mark.parametrize("name", CLASSES)
def test_kl_is_that_of_the_network_with_the_stored_predictions_in_place(
    study: FitsStudy, updates: list[BlockUpdate], name: str
) -> None:
    for update in updates:
        # The skipped position and the tokens not asked for keep the model's own output.
        replaced = study.states.at(f"H_{update.block + 1}")[BANK : BANK + REPLACED].copy()
        predicted = update.fits.array(f"predicted_{name}")
        for i, (s, p) in enumerate(REPLACED_PLACES):
            replaced[s, p] = predicted[i]
        kl = plain_kl(study, update.block, replaced)
        found = of_class(update.kl, name)["kl"].to_numpy()
        np.testing.assert_allclose(found, [kl[s, p] for s, p in REPLACED_PLACES], atol=1e-6)
        assert found.max() > 1e-4


def test_identity_without_skipped_positions_equals_skipping_the_block(
    tiny_settings: Any,
) -> None:
    sizes = tiny_settings.sizes.model_copy(update={"skip_positions": 0, "query_tokens": 0})
    study = FitsStudy(Session(replace(tiny_settings, sizes=sizes)), classes=("identity",))
    update = study.block(1)
    below = study.states.at("H_1")[BANK : BANK + REPLACED]
    expected = plain_kl(study, 1, below)
    np.testing.assert_allclose(update.kl["kl"], expected.ravel(), atol=1e-6)
    assert len(update.kl) == REPLACED * LENGTH


def test_the_mlps_training_is_told(study: FitsStudy, updates: list[BlockUpdate]) -> None:
    undertrained = [u.block for u in updates if u.fits.facts["mlp_undertrained"]]
    assert study.undertrained() == undertrained
    for update in updates:
        facts = update.fits.facts
        assert facts["mlp_curve"][0] == pytest.approx(1.0, abs=1e-5)
        assert facts["mlp_undertrained"] == (min(facts["mlp_curve"]) >= facts["mlp_global_linear"])


def test_a_second_run_reads_what_is_stored(
    updates: list[BlockUpdate], session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr(FitsStudy, "_fit", refuse)
    monkeypatch.setattr(FitsStudy, "_replace", refuse)
    for first, again in zip(updates, FitsStudy(session).blocks(), strict=True):
        pd.testing.assert_frame_equal(first.tokens, again.tokens)
        pd.testing.assert_frame_equal(first.kl, again.kl)


def with_sizes(session: Session, **sizes: int) -> FitsStudy:
    changed = session.settings.sizes.model_copy(update=sizes)
    return FitsStudy(Session(replace(session.settings, sizes=changed)), classes=("orthogonal",))


@pytest.mark.parametrize(
    ("sizes", "numbers"),
    [
        ({"query_tokens": 61}, "61 query tokens .* from 4 sequences, which have 60"),
        ({"neighbours": 136}, "136 neighbours asked for from a bank of 135 tokens"),
        ({"query_sequences": 1}, "1 query sequences: intervals need 2"),
        ({"bank_sequences": 5000}, r"gives \d+ sequences of 16 tokens, and 5004 are needed"),
    ],
)
def test_sizes_that_cannot_be_had_are_refused_with_both_numbers(
    session: Session, sizes: dict[str, int], numbers: str
) -> None:
    with pytest.raises(UsageError, match=numbers):
        list(with_sizes(session, **sizes).blocks())


def test_an_unknown_class_lists_the_known_ones(session: Session) -> None:
    with pytest.raises(UsageError, match=r"Did you mean 'orthogonal'.*Known: diagonal"):
        FitsStudy(session, classes=("ortogonal",))
