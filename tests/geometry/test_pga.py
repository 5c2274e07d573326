"""Subspace PGA: its reference, its invariances, planted effects and intervals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from layergeom.geometry import (
    GeometryError,
    PGASample,
    UndefinedCorrelationWarning,
    estimate_z,
    random_subspaces,
    readout_basis,
    subspace_pga,
    subspace_pga_levels,
)
from properties import deterministic
from reference import pga as reference

WIDTH, K = 16, 4


def case(seed: int, tokens: int = 30, null: int = 8) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States, unembedding and null subspaces."""
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(tokens, WIDTH)) * 0.8 ** np.arange(WIDTH) + 2.0
    return states, rng.normal(size=(50, WIDTH)), random_subspaces(WIDTH, K, null, rng)


def assert_same(found: PGASample, expected: PGASample) -> None:
    assert found.rho_readout == pytest.approx(expected.rho_readout, abs=1e-6)
    np.testing.assert_allclose(found.rho_null, expected.rho_null, atol=1e-6)


@deterministic
@given(
    data=st.data(),
    tokens=st.integers(8, 40),
    width=st.integers(6, 40),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_level_equals_the_reference(
    data: st.DataObject, tokens: int, width: int, seed: int
) -> None:
    k = data.draw(st.integers(2, width - 1))
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(tokens, width)) + 3.0 * rng.normal(size=width)
    readout = readout_basis(rng.normal(size=(60, width)), k)
    subspaces = random_subspaces(width, k, 3, rng)
    for level, found in subspace_pga_levels(states, readout, subspaces, (0, 1, 2)).items():
        assert_same(found, PGASample(*reference.subspace_pga(states, readout, subspaces, level)))


def test_equals_the_reference_in_float32_with_a_rogue_dimension() -> None:
    rng = np.random.default_rng(0)
    states = (rng.normal(size=(120, 96)) * 0.97 ** np.arange(96) + 1.0).astype(np.float32)
    states[:, 3] *= 30.0  # a rogue dimension
    readout = readout_basis(rng.normal(size=(400, 96)), 24)
    subspaces = random_subspaces(96, 24, 2, rng)
    for level, found in subspace_pga_levels(states, readout, subspaces, (0, 1, 10)).items():
        plain = reference.subspace_pga(states.astype(np.float64), readout, subspaces, level)
        assert_same(found, PGASample(*plain))


@pytest.mark.parametrize("level", [1, 2, 5])
def test_one_level_is_that_of_several(level: int) -> None:
    states, unembedding, null = case(1)
    readout = readout_basis(unembedding, K)
    alone = subspace_pga(states, readout, null, ccr=level)
    assert_same(alone, subspace_pga_levels(states, readout, null, (0, 1, 2, 5))[level])


def test_one_component_is_removed_by_default() -> None:
    states, unembedding, null = case(2)
    readout = readout_basis(unembedding, K)
    samples = subspace_pga_levels(states, readout, null, (0, 1))
    found = subspace_pga(states, readout, null)
    assert_same(found, samples[1])
    assert abs(found.rho_readout - samples[0].rho_readout) > 1e-3


@deterministic
@given(seed=st.integers(0, 2**32 - 1), level=st.integers(1, 3))
def test_a_rotation_of_everything_changes_nothing(seed: int, level: int) -> None:
    states, unembedding, null = case(seed)
    rotation = np.linalg.qr(np.random.default_rng(seed).normal(size=(WIDTH, WIDTH))).Q
    turned = subspace_pga(
        states @ rotation.T,
        readout_basis(unembedding @ rotation.T, K),
        np.stack([rotation @ basis for basis in null]),
        level,
    )
    assert_same(turned, subspace_pga(states, readout_basis(unembedding, K), null, level))


def test_a_rotation_of_the_states_alone_changes_the_result() -> None:
    states, unembedding, null = case(3)
    rotation = np.linalg.qr(np.random.default_rng(3).normal(size=(WIDTH, WIDTH))).Q
    readout = readout_basis(unembedding, K)
    turned = subspace_pga(states @ rotation.T, readout, null)
    assert abs(turned.rho_readout - subspace_pga(states, readout, null).rho_readout) > 1e-3


@deterministic
@given(seed=st.integers(0, 2**32 - 1), scale=st.floats(1e-3, 1e3))
def test_scale_and_order_of_the_tokens_change_nothing(seed: int, scale: float) -> None:
    states, unembedding, null = case(seed)
    readout = readout_basis(unembedding, K)
    expected = subspace_pga(states, readout, null)
    shuffled = np.random.default_rng(seed).permutation(states)
    assert_same(subspace_pga(scale * states, readout, null), expected)
    assert_same(subspace_pga(shuffled, readout, null), expected)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_states_inside_the_readout_keep_every_distance(level: int) -> None:
    rng = np.random.default_rng(4)
    _, unembedding, null = case(4)
    readout = readout_basis(unembedding, K)
    states = rng.normal(size=(40, K)) @ readout.T
    found = subspace_pga_levels(states, readout, null, (0, 1, 2))[level]
    assert found.rho_readout == pytest.approx(1.0, abs=1e-6)
    assert found.rho_null.max() < 0.999
    assert found.p == pytest.approx(1 / (len(null) + 1))


def p_values(draws: int, readout_is_random: bool) -> np.ndarray:
    """Empirical p-values over draws, spread evenly inside their steps of 1 / (m + 1)."""
    rng = np.random.default_rng(5)
    null, found = 19, []
    for _ in range(draws):
        states = rng.normal(size=(20, 10)) * 0.7 ** np.arange(10)
        bases = random_subspaces(10, 3, null + 1, rng)
        readout = bases[0] if readout_is_random else np.eye(10)[:, 1:4]
        found.append(subspace_pga(states, readout, bases[1:]).p)
    return np.array(found) - rng.uniform(size=draws) / (null + 1)


def test_a_random_readout_gives_uniform_p_values() -> None:
    assert kstest(p_values(200, readout_is_random=True), "uniform").pvalue > 0.05


def test_a_readout_along_the_variance_gives_small_p_values() -> None:
    """The same test has the power to fail."""
    assert kstest(p_values(60, readout_is_random=False), "uniform").pvalue < 1e-6


def test_removing_a_dominant_dark_component_brings_a_planted_readout_back() -> None:
    """A detour in small: what the readout organises is drowned by one direction it cannot see."""
    rng = np.random.default_rng(6)
    basis = np.linalg.qr(rng.normal(size=(32, 32))).Q
    readout, dark = basis[:, :8], basis[:, 8]
    organised = rng.normal(size=(100, 8)) @ readout.T
    drowned = 10.0 * np.outer(rng.normal(size=100), dark)
    states = organised + drowned + 0.2 * rng.normal(size=(100, 32))
    null = random_subspaces(32, 8, 40, rng)
    samples = subspace_pga_levels(states, readout, null, (0, 1))
    assert samples[0].z < -10.0
    assert samples[0].rho_readout < samples[0].null_mean - 0.5
    assert samples[1].z > 4.0
    assert samples[1].rho_readout > 0.9


def test_statistics_of_a_sample_by_hand() -> None:
    sample = PGASample(0.3, np.array([0.0, 0.1, 0.2, 0.3]))
    assert sample.null_mean == pytest.approx(0.15)
    assert sample.null_std == pytest.approx(np.sqrt(0.05 / 3))  # ddof 1
    assert sample.z == pytest.approx(0.15 / np.sqrt(0.05 / 3))
    assert sample.p == pytest.approx(2 / 5)  # an equal one counts as at least as high


@pytest.mark.parametrize(("rho", "p"), [(-1.0, 1.0), (0.15, 3 / 5), (0.9, 1 / 5)])
def test_p_counts_the_subspaces_at_least_as_high(rho: float, p: float) -> None:
    assert PGASample(rho, np.array([0.0, 0.1, 0.2, 0.3])).p == pytest.approx(p)


def test_a_null_without_spread_gives_no_z() -> None:
    assert np.isnan(PGASample(0.9, np.full(4, 0.5)).z)


def samples_at(*z: float) -> list[PGASample]:
    """Samples of the given z: three subspaces of mean 0 and standard deviation 1."""
    return [PGASample(value, np.array([-1.0, 0.0, 1.0])) for value in z]


@pytest.mark.parametrize(
    ("z", "mean", "half"),
    [
        # t(0.975, 1) sqrt(2/2 + 1/3 + 2^2/(2*2)): two samples that differ
        ((1.0, 3.0), 2.0, 12.706204736 * np.sqrt(7.0 / 3.0)),
        # t(0.975, 2) sqrt(1/3 + 1/3 + 2^2/(2*2)): three samples
        ((1.0, 2.0, 3.0), 2.0, 4.302652730 * np.sqrt(5.0 / 3.0)),
        # t(0.975, 3) sqrt(0 + 1/3 + 0): samples that agree still share the null's error
        ((0.0, 0.0, 0.0, 0.0), 0.0, 3.182446305 * np.sqrt(1.0 / 3.0)),
        # t(0.975, m-1 = 2) sqrt(1/3 + 2^2/(2*2)): one sample, the null's error alone
        ((2.0,), 2.0, 4.302652730 * np.sqrt(4.0 / 3.0)),
    ],
    ids=["two", "three", "equal", "one"],
)
def test_interval_of_z_by_hand(z: tuple[float, ...], mean: float, half: float) -> None:
    found = estimate_z(samples_at(*z))
    assert found.samples == len(z)
    assert found.z == pytest.approx(mean)
    assert found.ci_low == pytest.approx(mean - half, rel=1e-8)
    assert found.ci_high == pytest.approx(mean + half, rel=1e-8)


def test_a_gap_in_one_sample_is_a_gap_in_the_mean() -> None:
    found = estimate_z([*samples_at(1.0), PGASample(float("nan"), np.array([-1.0, 0.0, 1.0]))])
    assert np.isnan([found.z, found.ci_low, found.ci_high]).all()


def test_no_sample_is_refused() -> None:
    with pytest.raises(GeometryError, match="no sample"):
        estimate_z([])


def test_equidistant_tokens_are_a_gap_with_a_named_warning() -> None:
    rng = np.random.default_rng(7)
    readout = readout_basis(rng.normal(size=(30, 6)), 2)
    with pytest.warns(UndefinedCorrelationWarning):
        found = subspace_pga_levels(np.eye(6), readout, random_subspaces(6, 2, 3, rng), (0, 1))[0]
    assert np.isnan(found.rho_readout)
    assert np.isnan(found.rho_null).all()
    assert np.isnan(found.z)


@pytest.mark.parametrize("zeros", [1, 2])
def test_tokens_that_become_zero_are_refused_with_their_number(zeros: int) -> None:
    """Opposite pairs have mean zero, so that tokens at the origin stay there."""
    half = np.random.default_rng(8).integers(1, 9, size=(6, 5)).astype(np.float64)
    states = np.concatenate([half, -half, np.zeros((zeros, 5))])
    bases = random_subspaces(5, 2, 3, np.random.default_rng(8))
    with pytest.raises(GeometryError, match=f"{zeros} of {12 + zeros} tokens are zero vectors"):
        subspace_pga_levels(states, bases[0], bases[1:], (0, 1))


def test_a_token_that_is_zero_inside_a_subspace_only_is_refused() -> None:
    half = np.random.default_rng(9).integers(1, 9, size=(6, 5)).astype(np.float64)
    half[0, :2] = 0.0
    states, axes = np.concatenate([half, -half]), np.eye(5)
    null = random_subspaces(5, 2, 3, np.random.default_rng(9))
    with pytest.raises(GeometryError, match="2 of 12 tokens are zero vectors"):
        subspace_pga_levels(states, axes[:, :2], null, (0, 1))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_states_that_are_not_finite_are_refused(value: float) -> None:
    states, unembedding, null = case(10)
    states[4, 2] = value
    with pytest.raises(GeometryError, match="not finite"):
        subspace_pga(states, readout_basis(unembedding, K), null)


def test_too_few_tokens_are_refused() -> None:
    states, unembedding, null = case(11)
    with pytest.raises(GeometryError, match="3 tokens or more, got 2"):
        subspace_pga(states[:2], readout_basis(unembedding, K), null)


def test_too_many_components_are_refused_with_the_largest() -> None:
    states, unembedding, null = case(12, tokens=9)
    with pytest.raises(GeometryError, match="between 0 and 7"):
        subspace_pga(states, readout_basis(unembedding, K), null, ccr=8)


def test_bases_that_do_not_match_are_refused_with_their_shapes() -> None:
    states, unembedding, null = case(13)
    readout = readout_basis(unembedding, K)
    for bad_readout, bad_null in (
        (readout_basis(unembedding, K - 1), null),
        (readout[:-1], null[:, :-1]),
        (readout, null[:, :, :-1]),
    ):
        with pytest.raises(GeometryError, match="do not match"):
            subspace_pga(states, bad_readout, bad_null)
