"""Spectral metrics: hand-computed cases, published values, plain references, invariances."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layergeom.geometry import (
    GeometryError,
    alpha_req,
    condition_number,
    isoscore,
    mean_cosine,
    participation_ratio,
    partition_isotropy,
    rankme,
    rankme_centred,
    spectral_metrics,
)
from properties import deterministic
from reference import spectral as reference

Metric = Callable[[np.ndarray], float]
METRICS: dict[str, Metric] = {
    "rankme": rankme,
    "rankme_centred": rankme_centred,
    "alpha_req": alpha_req,
    "isoscore": isoscore,
    "partition_isotropy": partition_isotropy,
    "mean_cosine": mean_cosine,
    "participation_ratio": participation_ratio,
    "condition_number": condition_number,
}
#: What subtracting the mean cannot change.
CENTRED = ("rankme_centred", "alpha_req", "isoscore", "participation_ratio", "condition_number")

sizes = {
    "tokens": st.integers(14, 40),
    "width": st.integers(13, 30),
    "seed": st.integers(0, 2**32 - 1),
}


def cloud(tokens: int, width: int, seed: int) -> np.ndarray:
    """States of falling variance around a mean, short enough for plain exponentials."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(tokens, width)) * 0.9 ** np.arange(width) + rng.normal(size=width)


def with_singular_values(values: np.ndarray, tokens: int, seed: int = 0) -> np.ndarray:
    """A matrix of mean zero with these singular values, in random directions."""
    rng = np.random.default_rng(seed)
    left = rng.normal(size=(tokens, len(values)))
    left = np.linalg.qr(left - left.mean(axis=0)).Q
    right = np.linalg.qr(rng.normal(size=(len(values), len(values)))).Q
    return left @ np.diag(values) @ right.T


@deterministic
@given(**sizes)
def test_every_metric_equals_its_reference(tokens: int, width: int, seed: int) -> None:
    states = cloud(tokens, width, seed)
    rank = min(tokens - 1, width)
    centred = states - states.mean(axis=0)
    expected = {
        "rankme": reference.rankme(states),
        "rankme_centred": reference.rankme(centred),
        "alpha_req": reference.alpha_req(states, rank),
        "isoscore": reference.isoscore(states),
        "partition_isotropy": reference.partition_isotropy(states),
        "mean_cosine": reference.mean_cosine(states),
        "participation_ratio": reference.participation_ratio(states),
        "condition_number": reference.condition_number(states, rank),
    }
    assert spectral_metrics(states) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_one_call_gives_what_each_function_gives() -> None:
    states = cloud(30, 20, 1).astype(np.float32)
    assert spectral_metrics(states) == {name: metric(states) for name, metric in METRICS.items()}


@deterministic
@given(**sizes)
def test_a_rotation_changes_nothing(tokens: int, width: int, seed: int) -> None:
    states = cloud(tokens, width, seed)
    rotation = np.linalg.qr(np.random.default_rng(seed).normal(size=(width, width))).Q
    expected = pytest.approx(spectral_metrics(states), rel=1e-6, abs=1e-9)
    assert spectral_metrics(states @ rotation) == expected
    assert spectral_metrics(np.random.default_rng(seed).permutation(states)) == expected


@deterministic
@given(scale=st.floats(1e-3, 1e3), seed=st.integers(0, 2**32 - 1))
def test_scale_is_seen_by_the_partition_function_alone(scale: float, seed: int) -> None:
    states = cloud(25, 16, seed)
    once, scaled = spectral_metrics(states), spectral_metrics(scale * states)
    del once["partition_isotropy"], scaled["partition_isotropy"]
    assert scaled == pytest.approx(once, rel=1e-6)


def test_the_partition_function_sees_scale() -> None:
    states = cloud(25, 16, 2)
    assert partition_isotropy(0.01 * states) > 0.9 > 0.1 > partition_isotropy(5.0 * states)


@pytest.mark.parametrize("name", CENTRED)
def test_the_mean_does_not_matter_to_what_is_centred(name: str) -> None:
    states = cloud(25, 16, 3)
    moved = METRICS[name](states + 100.0)
    assert moved == pytest.approx(METRICS[name](states), rel=1e-8)


def test_the_mean_matters_to_what_is_raw() -> None:
    states = cloud(25, 16, 4)
    assert rankme(states + 100.0) < 0.5 * rankme(states)
    assert mean_cosine(states + 100.0) > 0.99


def test_rankme_by_hand() -> None:
    three_to_one = np.diag([3.0, 1.0])
    expected = 4.0 / 27.0**0.25  # exp(-(3/4 ln 3/4 + 1/4 ln 1/4))
    assert rankme(three_to_one) == pytest.approx(expected, rel=1e-6)
    assert rankme(7.0 * np.eye(5)) == pytest.approx(5.0, rel=1e-5)
    assert rankme(np.outer([1.0, 2.0, 2.0], [3.0, 4.0])) == pytest.approx(1.0, abs=1e-5)


def test_the_epsilon_of_rankme_is_that_of_the_paper() -> None:
    p = np.array([1.0, 0.0]) + 1e-7
    assert rankme(np.diag([5.0, 0.0])) == pytest.approx(math.exp(-np.sum(p * np.log(p))), rel=1e-12)


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.5])
def test_alpha_of_a_planted_power_law(exponent: float) -> None:
    ranks = np.arange(1, 121)
    states = with_singular_values(ranks ** (-exponent / 2), tokens=200)
    assert alpha_req(states) == pytest.approx(exponent, abs=1e-6)


def test_alpha_looks_at_ranks_ten_to_a_hundred() -> None:
    values = np.arange(1, 121) ** -0.5
    values[:9] *= 50.0
    values[100:] *= 1e-3
    assert alpha_req(with_singular_values(values, tokens=200)) == pytest.approx(1.0, abs=1e-6)
    values[9] *= 2.0
    assert alpha_req(with_singular_values(values, tokens=200)) > 1.01


def test_alpha_stops_at_the_numerical_rank() -> None:
    values = np.arange(1, 61) ** -0.5
    values[40:] = 0.0
    assert alpha_req(with_singular_values(values, tokens=90)) == pytest.approx(1.0, abs=1e-6)
    values[40:] = 1e-6
    assert alpha_req(with_singular_values(values, tokens=90)) > 2.0


def test_alpha_of_too_low_a_rank_is_refused_alone_and_a_gap_among_the_others() -> None:
    states = cloud(30, 10, 5)
    with pytest.raises(GeometryError, match="numerical rank of 10"):
        alpha_req(states)
    found = spectral_metrics(states)
    assert np.isnan(found.pop("alpha_req"))
    assert np.isfinite(list(found.values())).all()


@pytest.mark.parametrize(("used", "width"), [(1, 3), (2, 3), (3, 3), (9, 100), (57, 100)])
def test_isoscore_of_equal_variances_is_the_published_share(used: int, width: int) -> None:
    """(k - 1) / (n - 1) for k of n dimensions used evenly (Rudman et al.)."""
    values = np.where(np.arange(width) < used, 2.0, 0.0)
    states = with_singular_values(values, tokens=150)
    assert isoscore(states) == pytest.approx((used - 1) / (width - 1), abs=1e-9)


def test_isoscore_of_a_ball_is_near_one_and_of_a_line_zero() -> None:
    rng = np.random.default_rng(6)
    assert isoscore(rng.normal(size=(20_000, 10)) + 50.0) > 0.99
    line = np.outer(rng.normal(size=100), [1.0, 2.0, 3.0]) + 9.0
    assert isoscore(line) == pytest.approx(0.0, abs=1e-9)


@deterministic
@given(**sizes)
def test_isoscore_is_the_participation_ratio_on_another_scale(
    tokens: int, width: int, seed: int
) -> None:
    states = cloud(tokens, width, seed)
    expected = (participation_ratio(states) - 1.0) / (width - 1.0)
    assert isoscore(states) == pytest.approx(expected, rel=1e-9)


def test_partition_isotropy_by_hand() -> None:
    """Eigenvectors are the axes; Z(+-e1) = e^(+-2) + 1 and Z(+-e2) = e^(+-1) + 1."""
    expected = (math.exp(-2.0) + 1.0) / (math.exp(2.0) + 1.0)
    assert partition_isotropy(np.diag([2.0, 1.0])) == pytest.approx(expected, rel=1e-12)


def test_partition_isotropy_of_a_symmetric_cross_is_that_of_its_arms() -> None:
    """Opposite tokens make Z even: (2 + 2 cosh 1) / (2 + 2 cosh 2), arms of length 1 and 2."""
    cross = np.concatenate([np.diag([2.0, 1.0]), -np.diag([2.0, 1.0])])
    expected = (2.0 + 2.0 * math.cosh(1.0)) / (2.0 + 2.0 * math.cosh(2.0))
    assert partition_isotropy(cross) == pytest.approx(expected, rel=1e-12)


@pytest.mark.filterwarnings("error")
def test_long_states_do_not_overflow_the_partition_function() -> None:
    assert partition_isotropy(1e5 * cloud(20, 6, 7)) == 0.0
    long = np.concatenate([900.0 * np.eye(3), -900.0 * np.eye(3)])
    assert partition_isotropy(long) == pytest.approx(1.0)


def test_mean_cosine_by_hand() -> None:
    states = np.array([[2.0, 0.0], [0.0, 3.0], [5.0, 5.0]])
    assert mean_cosine(states) == pytest.approx(2.0 * math.sqrt(0.5) / 3.0)
    assert mean_cosine(np.array([[1.0, 2.0], [-2.0, -4.0]])) == pytest.approx(-1.0)


def test_participation_ratio_by_hand() -> None:
    states = with_singular_values(np.sqrt([3.0, 1.0, 0.0, 0.0]), tokens=9)
    assert participation_ratio(states) == pytest.approx(16.0 / 10.0)
    assert participation_ratio(with_singular_values(np.ones(6), tokens=9)) == pytest.approx(6.0)


def test_condition_number_by_hand() -> None:
    assert condition_number(with_singular_values(np.array([8.0, 2.0, 0.5]), 9)) == pytest.approx(16)


@pytest.mark.parametrize("far", [0.0, 1e3, 1e6])
@pytest.mark.parametrize("tokens", [12, 20, 21], ids=lambda n: f"{n} tokens")
def test_condition_number_stops_at_the_rank_that_centring_leaves(tokens: int, far: float) -> None:
    """Up to as many tokens as dimensions, centring makes the last singular value rounding."""
    rng = np.random.default_rng(8)
    states = rng.normal(size=(tokens, 20))
    values = reference.singular_values(states - states.mean(axis=0))
    expected = values[0] / values[min(tokens - 1, 20) - 1]
    found = condition_number(states + far * rng.normal(size=20))
    assert found == pytest.approx(expected, rel=1e-5)


def test_float32_states_are_measured_in_float64() -> None:
    states = cloud(25, 16, 9).astype(np.float32)
    before = states.copy()
    assert spectral_metrics(states) == spectral_metrics(states.astype(np.float64))
    np.testing.assert_array_equal(states, before)


@pytest.mark.parametrize("name", METRICS)
def test_states_without_a_spectrum_are_refused(name: str) -> None:
    broken = cloud(25, 16, 10)
    broken[3, 4] = np.nan
    with pytest.raises(GeometryError, match="not finite"):
        METRICS[name](broken)
    with pytest.raises(GeometryError, match="2 tokens or more, got 1"):
        METRICS[name](np.ones((1, 16)))
    with pytest.raises(GeometryError, match="zero vectors"):
        METRICS[name](np.zeros((25, 16)))


@pytest.mark.parametrize("name", CENTRED)
def test_states_that_are_all_the_same_are_refused(name: str) -> None:
    same = np.tile(np.random.default_rng(11).normal(size=16), (25, 1))
    with pytest.raises(GeometryError, match="25 states are all the same"):
        METRICS[name](same)


def test_a_zero_vector_has_no_cosine() -> None:
    states = np.eye(5)
    states[[1, 3]] = 0.0
    with pytest.raises(GeometryError, match="2 of 5 tokens are zero vectors"):
        mean_cosine(states)


def test_a_single_dimension_has_no_isoscore() -> None:
    with pytest.raises(GeometryError, match="width of 2 or more"):
        isoscore(np.arange(5.0)[:, None])
