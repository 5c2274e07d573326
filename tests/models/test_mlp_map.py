"""The shared network learns what one linear map cannot, and says when it has not."""

import numpy as np
import pytest
import torch

from layergeom.models.mlp_map import EPOCHS, HELD_OUT, MlpFit, fit_mlp_map

WIDTH = 32
SEQUENCES = 32
LENGTH = 128


def states(seed: int, count: int = SEQUENCES * LENGTH) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, WIDTH)).astype(np.float32)


def planted(x: np.ndarray) -> np.ndarray:
    """An update that is even in the state, of which no linear map sees anything."""
    return x + np.abs(x[:, :1]) - np.float32(0.8)


SEQUENCE_OF = np.repeat(np.arange(SEQUENCES), LENGTH)


@pytest.fixture(scope="module")
def fit() -> MlpFit:
    bank = states(0)
    return fit_mlp_map(states(1, 200), bank, planted(bank), SEQUENCE_OF, seed=0)


def test_starts_as_the_identity(fit: MlpFit) -> None:
    # The identity's squared error is all of the update: 1 in the curve's unit.
    assert fit.curve[0] == pytest.approx(1.0, abs=1e-6)


def test_learns_a_planted_map_better_than_one_linear_map(fit: MlpFit) -> None:
    assert min(fit.curve) < 0.7 * fit.global_linear
    assert not fit.undertrained
    assert len(fit.curve) <= EPOCHS + 1


def test_predicts_tokens_that_it_was_not_trained_on(fit: MlpFit) -> None:
    query = states(1, 200)
    missed = np.square(planted(query) - fit.predicted).sum()
    assert missed < 0.7 * np.square(planted(query) - query).sum()
    assert fit.predicted.dtype == np.float32


def test_global_linear_is_one_ridge_map_on_the_same_split(fit: MlpFit) -> None:
    x = states(0).astype(np.float64)
    y = planted(states(0)).astype(np.float64)
    held = SEQUENCE_OF % HELD_OUT == HELD_OUT - 1
    gram = x[~held].T @ x[~held]
    ridge = 1e-3 * np.trace(gram) / (~held).sum()
    solution = np.linalg.solve(gram + ridge * np.eye(WIDTH), x[~held].T @ y[~held])
    missed = np.square(y[held] - x[held] @ solution).sum()
    expected = missed / np.square(y[held] - x[held]).sum()
    assert fit.global_linear == pytest.approx(expected, rel=1e-4)


def fit_to_noise() -> MlpFit:
    bank = states(0, 512)
    above = bank + states(2, 512)
    return fit_mlp_map(states(1, 20), bank, above, np.arange(512) // 32, seed=0)


def test_same_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    bank = states(0, 512)
    first, second, other = (
        fit_mlp_map(states(1, 20), bank, planted(bank), np.arange(512) // 32, seed)
        for seed in (3, 3, 4)
    )
    assert first.predicted.tobytes() == second.predicted.tobytes()
    assert first.curve == second.curve
    assert first.predicted.tobytes() != other.predicted.tobytes()


def test_training_does_not_move_the_global_generator() -> None:
    before = torch.get_rng_state()
    fit_to_noise()
    assert torch.equal(torch.get_rng_state(), before)


def test_the_best_epoch_is_kept() -> None:
    # Nothing of this update can be learned: the identity it started from stays the best.
    fit = fit_to_noise()
    assert len(fit.curve) > 1
    assert min(fit.curve) == fit.curve[0]
    np.testing.assert_array_equal(fit.predicted, states(1, 20))


def test_a_map_that_ends_above_one_linear_map_is_undertrained() -> None:
    bank = states(0, 512)
    turn = np.linalg.qr(np.random.default_rng(5).standard_normal((WIDTH, WIDTH))).Q
    fit = fit_mlp_map(states(1, 20), bank, bank @ turn.astype(np.float32), np.arange(512) // 32, 0)
    assert fit.global_linear < 1e-4 < min(fit.curve)
    assert fit.undertrained


def test_a_bank_of_few_sequences_still_holds_one_out() -> None:
    bank = states(0, 512)
    fit = fit_mlp_map(states(1, 20), bank, planted(bank), np.arange(512) // 256, seed=0)
    assert fit.curve[0] == pytest.approx(1.0, abs=1e-6)
