"""Regimes and collapse zones on profiles made by hand."""

import numpy as np
import pytest

from layergeom.geometry import GeometryError, RegimeVerdict, classify_regime

#: Nine blocks, so ten points; layers 7 and 8 lie beyond two thirds of the depth.
DEPTH = 9


def verdict(z: dict[int, float], elsewhere: float = 0.0, half: float = 0.5) -> RegimeVerdict:
    """Regime of a profile that is ``elsewhere`` except at the layers named."""
    profile = np.array([z.get(layer, elsewhere) for layer in range(DEPTH + 1)])
    return classify_regime(profile - half, profile + half)


@pytest.mark.parametrize("layer", [7, 8])
def test_one_late_layer_below_is_a_detour(layer: int) -> None:
    assert verdict({layer: -3.0}) == RegimeVerdict("detour", (layer, layer))


def test_a_late_layer_below_is_a_detour_however_high_the_others() -> None:
    assert verdict({7: -3.0}, elsewhere=9.0).regime == "detour"


@pytest.mark.parametrize("layer", [1, 4, 6])
def test_a_layer_up_to_two_thirds_makes_no_detour(layer: int) -> None:
    assert verdict({layer: -3.0}) == RegimeVerdict("mixed", (layer, layer))


@pytest.mark.parametrize("end", [0, DEPTH])
def test_the_input_and_the_final_layer_are_not_judged(end: int) -> None:
    assert verdict({end: -9.0}) == RegimeVerdict("mixed", None)
    assert verdict({end: -9.0}, elsewhere=5.0) == RegimeVerdict("direct", None)


def test_every_layer_above_is_direct() -> None:
    assert verdict({}, elsewhere=3.0) == RegimeVerdict("direct", None)


def test_one_layer_not_wholly_above_is_mixed() -> None:
    assert verdict({5: 2.4}, elsewhere=3.0) == RegimeVerdict("mixed", None)


def test_an_interval_that_reaches_the_threshold_is_not_beyond_it() -> None:
    assert verdict({8: -2.5}) == RegimeVerdict("mixed", None)
    assert verdict({8: -2.5}, half=0.49).regime == "detour"
    assert verdict({}, elsewhere=2.5).regime == "mixed"
    assert verdict({}, elsewhere=2.5, half=0.49).regime == "direct"


def test_the_collapse_zone_is_the_longest_run() -> None:
    low = dict.fromkeys((1, 2, 4, 5, 6, 8), -5.0)
    assert verdict(low) == RegimeVerdict("detour", (4, 6))


def test_the_collapse_zone_stays_within_the_intermediate_layers() -> None:
    assert verdict({}, elsewhere=-5.0) == RegimeVerdict("detour", (1, DEPTH - 1))


def test_a_gap_breaks_a_run_and_is_never_direct() -> None:
    low = dict.fromkeys((3, 4, 6), -5.0) | {5: np.nan}
    assert verdict(low) == RegimeVerdict("mixed", (3, 4))
    assert verdict({5: np.nan}, elsewhere=5.0).regime == "mixed"


def test_ends_of_different_length_are_refused_with_both() -> None:
    with pytest.raises(GeometryError, match="4 lower ends against 5 upper ends"):
        classify_regime(np.zeros(4), np.zeros(5))


def test_a_single_block_has_no_intermediate_layer() -> None:
    with pytest.raises(GeometryError, match="1 blocks"):
        classify_regime(np.zeros(2), np.zeros(2))
