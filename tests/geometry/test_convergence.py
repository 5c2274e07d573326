"""Agreement of two models' distances: reference, invariances, planted agreement."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layergeom.geometry import (
    ConvergenceSample,
    GeometryError,
    ModelLayers,
    UndefinedCorrelationWarning,
    convergence,
    layers_agreement,
    random_subspaces,
)
from properties import deterministic
from reference import pga as reference

Model = tuple[np.ndarray, np.ndarray, np.ndarray]


def model(points: int, width: int, k: int, seed: int, null: int = 3) -> Model:
    """States, readout basis and null subspaces."""
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(points, width)) * 0.85 ** np.arange(width) + rng.normal(size=width)
    bases = random_subspaces(width, k, null + 1, rng)
    return states, bases[0], bases[1:]


def compare(first: Model, second: Model, ccr: int = 1) -> ConvergenceSample:
    (x, v, null), (y, w, other) = first, second
    return convergence(x, y, v, w, null, other, ccr)


def assert_same(found: ConvergenceSample, expected: ConvergenceSample, atol: float = 1e-6) -> None:
    assert found.full == pytest.approx(expected.full, abs=atol)
    assert found.readout == pytest.approx(expected.readout, abs=atol)
    np.testing.assert_allclose(found.random, expected.random, atol=atol)


@deterministic
@given(
    points=st.integers(8, 30),
    widths=st.tuples(st.integers(6, 20), st.integers(6, 20)),
    ccr=st.integers(0, 2),
    seed=st.integers(0, 2**32 - 2),
)
def test_equals_the_reference_for_models_of_any_widths(
    points: int, widths: tuple[int, int], ccr: int, seed: int
) -> None:
    first, second = model(points, widths[0], 2, seed), model(points, widths[1], 4, seed + 1)
    (x, v, null), (y, w, other) = first, second
    expected = ConvergenceSample(
        reference.agreement(x, y, np.eye(widths[0]), np.eye(widths[1]), ccr),
        reference.agreement(x, y, v, w, ccr),
        np.array([reference.agreement(x, y, a, b, ccr) for a, b in zip(null, other, strict=True)]),
    )
    assert_same(compare(first, second, ccr), expected)


@deterministic
@given(scale=st.floats(1e-3, 1e3), seed=st.integers(0, 2**32 - 1))
def test_a_rotated_and_scaled_copy_agrees_exactly(scale: float, seed: int) -> None:
    states, readout, null = model(40, 12, 4, seed)
    rotation = np.linalg.qr(np.random.default_rng(seed).normal(size=(12, 12))).Q
    copy = (scale * states @ rotation.T, rotation @ readout, rotation @ null)
    assert_same(
        compare((states, readout, null), copy), ConvergenceSample(1.0, 1.0, np.ones(3)), 1e-8
    )


def test_the_very_same_distances_agree_to_the_last_digit() -> None:
    same = model(40, 12, 4, seed=1)
    found = compare(same, same)
    assert (found.full, found.readout, found.random.tolist()) == (1.0, 1.0, [1.0] * 3)


@deterministic
@given(seed=st.integers(0, 2**32 - 2))
def test_order_of_points_and_of_models_changes_nothing(seed: int) -> None:
    first, second = model(25, 10, 3, seed), model(25, 8, 3, seed + 1)
    expected = compare(first, second)
    order = np.random.default_rng(seed).permutation(25)
    shuffled = [(states[order], v, null) for states, v, null in (first, second)]
    assert_same(compare(*shuffled), expected, 1e-12)
    assert_same(compare(second, first), expected, 1e-12)


def test_points_that_are_not_matched_do_not_agree() -> None:
    states, readout, null = model(60, 12, 4, seed=2)
    order = np.random.default_rng(2).permutation(60)
    assert abs(compare((states, readout, null), (states[order], readout, null)).full) < 0.1


def test_a_structure_shared_in_the_readout_alone_shows_there() -> None:
    rng = np.random.default_rng(3)
    shared, models = rng.normal(size=(80, 4)), []
    for width in (24, 16):
        axes = np.linalg.qr(rng.normal(size=(width, width))).Q
        own = 1.5 * rng.normal(size=(80, width - 4)) @ axes[:, 4:].T
        states = shared @ axes[:, :4].T + own + 5.0 * axes[:, 5]
        models.append((states, axes[:, :4], random_subspaces(width, 4, 20, rng)))
    found = compare(*models)
    assert found.readout > 0.9
    assert found.full < 0.5
    assert found.random.max() < 0.6


def test_one_component_is_removed_by_default() -> None:
    first, second = model(30, 10, 3, 4), model(30, 8, 3, 5)
    (x, v, null), (y, w, other) = first, second
    default = convergence(x, y, v, w, null, other)
    assert_same(default, compare(first, second, ccr=1), 0.0)
    assert abs(default.full - compare(first, second, ccr=0).full) > 1e-3


def test_every_layer_is_compared_with_every_layer_of_the_other() -> None:
    first = [model(30, 10, 3, seed) for seed in (6, 7)]
    second = [model(30, 8, 4, seed) for seed in (8, 9, 10)]
    (v, null), (w, other) = first[0][1:], second[0][1:]
    found = layers_agreement(
        ModelLayers([x for x, *_ in first], v, null), ModelLayers([y for y, *_ in second], w, other)
    )
    assert found.full.shape == (2, 3)
    assert found.random.shape == (3, 2, 3)
    for i, (x, *_) in enumerate(first):
        for j, (y, *_) in enumerate(second):
            assert_same(found.at(i, j), convergence(x, y, v, w, null, other), 0.0)


def test_without_random_subspaces_the_two_spaces_remain() -> None:
    first, second = model(30, 10, 3, 19), model(30, 8, 3, 20)
    (x, v, null), (y, w, other) = first, second
    found = convergence(x, y, v, w, null[:0], other[:0])
    expected = compare(first, second)
    assert (found.full, found.readout) == (expected.full, expected.readout)
    assert found.random.shape == (0,)


def test_equidistant_points_are_a_gap_with_a_named_warning() -> None:
    _, readout, null = model(6, 6, 2, seed=12)
    with pytest.warns(UndefinedCorrelationWarning):
        found = compare((np.eye(6), readout, null), model(6, 8, 2, seed=13), ccr=0)
    assert np.isnan([found.full, found.readout, *found.random]).tolist()[0]


def test_what_is_not_matched_is_refused_with_both_numbers() -> None:
    first = model(20, 10, 3, seed=14)
    with pytest.raises(GeometryError, match="20 points against 19"):
        compare(first, model(19, 10, 3, seed=15))
    with pytest.raises(GeometryError, match="3 random subspaces against 5"):
        compare(first, model(20, 10, 3, seed=15, null=5))


def test_bases_of_another_width_are_refused() -> None:
    states, readout, null = model(20, 10, 3, seed=16)
    for bad in ((states, readout[:-1], null), (states, readout, null[:, :-1])):
        with pytest.raises(GeometryError, match="do not match"):
            compare(bad, (states, readout, null))


def test_too_few_points_are_refused() -> None:
    states, readout, null = model(20, 10, 3, seed=17)
    with pytest.raises(GeometryError, match="3 matched points or more, got 2"):
        compare((states[:2], readout, null), (states[:2], readout, null))


def test_states_that_are_not_finite_are_refused() -> None:
    states, readout, null = model(20, 10, 3, seed=18)
    broken = states.copy()
    broken[1, 1] = np.nan
    with pytest.raises(GeometryError, match="not finite"):
        compare((states, readout, null), (broken, readout, null))
