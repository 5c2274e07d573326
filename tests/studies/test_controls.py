"""Errors of equal length: as long as the residual, in place of it, and told apart from it."""

import numpy as np
import pandas as pd
import pytest
import torch

from layergeom.geometry.bootstrap import median_estimate, sequence_draws
from layergeom.studies import FitsStudy, Session
from layergeom.studies.controls import CONTROLS, ControlsStudy
from layergeom.studies.single import SinglePositionsStudy
from planted_network import SIZES, TOKENS, planted_session
from reference.kl import divergence

BLOCK = 1
BANK, REPLACED = 9, 2


@pytest.fixture(scope="module")
def planted() -> FitsStudy:
    return FitsStudy(planted_session(), ("orthogonal", "diagonal"))


def own(fits: FitsStudy, block: int) -> pd.DataFrame:
    table = fits.block(block).kl
    return table[table["class"] == "orthogonal"].reset_index(drop=True)


def test_a_residual_that_decides_by_its_direction_beats_every_control(planted: FitsStudy) -> None:
    kl, controls = own(planted, 0), ControlsStudy(planted).block(0)
    draws = sequence_draws(SIZES.replaced_sequences, 200, np.random.default_rng(0))
    for control in CONTROLS:
        other = controls[controls["class"] == control].reset_index(drop=True)
        more = (kl["kl"] - other["kl"]).to_numpy()
        found = median_estimate(more, kl["sequence"].to_numpy(), draws)
        assert found.ci_low > 0.3, control
        assert kl["kl"].median() > 2 * other["kl"].median(), control


def test_in_the_planted_model_the_residual_is_what_crosses_tokens(planted: FitsStudy) -> None:
    states, places = planted.states, planted.query_places
    above = states.at("H_1")[SIZES.bank_sequences :][places]
    residual = above - planted.predicted(0, "orthogonal")
    crossed = np.square(residual[:, TOKENS:]).sum() / np.square(residual).sum()
    assert crossed > 0.9


def test_one_at_a_time_is_all_at_once_where_nothing_above_crosses_tokens(
    planted: FitsStudy,
) -> None:
    single = SinglePositionsStudy(planted).table()
    single = single[single["block"] == 0]
    both = single.merge(own(planted, 0), on=["sequence", "position"], suffixes=("", "_all"))
    assert len(both) == SIZES.single_positions
    np.testing.assert_allclose(both["kl"], both["kl_all"], atol=1e-6)
    np.testing.assert_allclose(both["length"], both["length_all"])


@pytest.fixture
def fits(session: Session) -> FitsStudy:
    return FitsStudy(session)


def errors_put_in(fits: FitsStudy, monkeypatch: pytest.MonkeyPatch) -> dict[str, np.ndarray]:
    """What each control takes away from the block's own output at the replaced tokens."""
    outputs: dict[str, np.ndarray] = {}

    def note(block: int, given: dict[str, np.ndarray]) -> pd.DataFrame:
        outputs.update(given)
        return pd.DataFrame({"class": list(given), "kl": 0.0})

    monkeypatch.setattr(fits, "perturb", note)
    ControlsStudy(fits)._measure(BLOCK)
    full = fits.states.at(f"H_{BLOCK + 1}")[fits.replaced_rows][fits.replaced_places]
    return {name: full.astype(np.float64) - output for name, output in outputs.items()}


def test_every_control_is_as_long_as_the_residual_and_points_where_it_says(
    fits: FitsStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    h, full = (
        fits.states.at(f"H_{layer}")[fits.replaced_rows][fits.replaced_places].astype(np.float64)
        for layer in (BLOCK, BLOCK + 1)
    )
    predicted = fits.predicted(BLOCK, "orthogonal")[: len(full)].astype(np.float64)
    residual = full - predicted
    errors = errors_put_in(fits, monkeypatch)
    assert set(errors) == set(CONTROLS)
    for error in errors.values():
        np.testing.assert_allclose(
            np.linalg.norm(error, axis=1), np.linalg.norm(residual, axis=1), rtol=1e-9
        )

    def unit(vectors: np.ndarray) -> np.ndarray:
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    along = np.sum(unit(errors["along_tokenwise"]) * unit(predicted - h), axis=1)
    np.testing.assert_allclose(along, 1.0)
    cosines = unit(errors["other_token"]) @ unit(residual).T
    assert (cosines.argmax(axis=1) != np.arange(len(residual))).all()
    np.testing.assert_allclose(cosines.max(axis=1), 1.0)
    assert np.abs(np.sum(unit(errors["random"]) * unit(residual), axis=1)).mean() < 0.4


def test_kl_is_that_of_the_network_with_the_control_in_place(
    fits: FitsStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = ControlsStudy(fits).block(BLOCK)
    with monkeypatch.context() as patch:
        error = errors_put_in(fits, patch)["along_tokenwise"]
    full = fits.states.at(f"H_{BLOCK + 1}")[BANK : BANK + REPLACED].copy()
    sequences, positions = fits.replaced_places
    full[sequences, positions] -= error.astype(np.float32)
    network = fits.session.model.network
    ids = torch.from_numpy(fits.states.tokens[BANK : BANK + REPLACED])
    with torch.no_grad():
        before = network(ids, use_cache=False).logits.numpy()
        handle = network.gpt_neox.layers[BLOCK].register_forward_hook(
            lambda _m, _a, _o: torch.from_numpy(full)
        )
        after = network(ids, use_cache=False).logits.numpy()
        handle.remove()
    expected = [
        divergence(before[s, p], after[s, p]) for s, p in zip(*fits.replaced_places, strict=True)
    ]
    found = stored[stored["class"] == "along_tokenwise"]["kl"]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_seed_repeats_the_random_controls_and_blocks_draw_their_own(
    fits: FitsStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = errors_put_in(fits, monkeypatch)["random"]
    np.testing.assert_array_equal(first, errors_put_in(fits, monkeypatch)["random"])
    assert ControlsStudy(fits).inputs(0) != ControlsStudy(fits).inputs(1)
