"""A whole detour, planted: late layers are organised along the readout and one direction hides it.

The leading component of the late layers grows strong and dark, so that z falls below zero where
nothing is removed, and comes back once that component is.
"""

from functools import cache

import numpy as np
import pytest

from layergeom.geometry import (
    classify_regime,
    component_shares,
    estimate_z,
    random_subspaces,
    subspace_pga_levels,
)

DEPTH, WIDTH, K, TOKENS, SAMPLES = 9, 32, 8, 80, 6
AXES = np.linalg.qr(np.random.default_rng(0).normal(size=(WIDTH, WIDTH))).Q
READOUT, DARK = AXES[:, :K], AXES[:, K]
#: Blocks after which the dark component grows.
ZONE = (6, 7, 8)


def layer(point: int, sample: int) -> np.ndarray:
    """Hidden states after ``point`` blocks: what the readout sees, some noise, and the mask."""
    rng = np.random.default_rng([point, sample])
    seen = rng.normal(size=(TOKENS, K)) @ READOUT.T
    noise = 0.3 * rng.normal(size=(TOKENS, WIDTH))
    strength = 8.0 if point in ZONE else 0.3
    return seen + noise + strength * np.outer(rng.normal(size=TOKENS), DARK) + 2.0


@cache
def profile(level: int) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the interval of z at every capture point."""
    null = random_subspaces(WIDTH, K, 60, np.random.default_rng(1))
    ends = []
    for point in range(DEPTH + 1):
        samples = [
            subspace_pga_levels(layer(point, s), READOUT, null, (level,))[level]
            for s in range(SAMPLES)
        ]
        estimate = estimate_z(samples)
        ends.append((estimate.ci_low, estimate.ci_high))
    low, high = np.array(ends).T
    return low, high


def test_untouched_the_late_layers_are_a_detour() -> None:
    low, high = profile(level=0)
    assert (high[list(ZONE)] < -2.0).all()
    assert (low[1:6] > 2.0).all()
    verdict = classify_regime(low, high)
    assert verdict.regime == "detour"
    assert verdict.collapse_zone == (ZONE[0], ZONE[-1])


def test_without_the_leading_component_the_readout_is_back_at_every_layer() -> None:
    low, high = profile(level=1)
    assert (low > 2.0).all()
    assert classify_regime(low, high).regime == "direct"
    assert classify_regime(low, high).collapse_zone is None


@pytest.mark.parametrize("point", range(1, DEPTH))
def test_the_leading_component_is_dark_in_the_zone_and_nowhere_else(point: int) -> None:
    shares = component_shares(layer(point, 0), READOUT, 1)
    if point in ZONE:
        assert shares.dark_share[0] > 0.95 > 1.0 - K / WIDTH
        assert shares.variance_share[0] > 0.5
    else:
        assert shares.dark_share[0] < 0.5
        assert shares.variance_share[0] < 0.5
