"""Sizes and seeds: validated, named, and one generator for each purpose."""

import pytest
from pydantic import ValidationError

from layergeom.errors import UsageError
from layergeom.studies import SIZES, Sizes, named_sizes
from layergeom.studies.settings import generator


def test_default_sizes_are_those_of_the_method() -> None:
    sizes = Sizes()
    assert (sizes.sequence_length, sizes.skip_positions) == (128, 1)
    assert (sizes.pga_tokens, sizes.pga_samples, sizes.null_subspaces) == (600, 8, 100)
    assert sizes.bank_sequences * sizes.sequence_length == 4096
    assert sizes.query_sequences * sizes.sequence_length == 2048
    assert sizes.replaced_sequences * sizes.sequence_length == 1024
    assert (sizes.neighbours, sizes.rank, sizes.subspace_dim) == (64, 8, 8)
    assert sizes.bootstrap_draws == 1000


def test_smoke_sizes_are_those_of_the_method() -> None:
    sizes = named_sizes("smoke")
    assert (sizes.sequence_length, sizes.pga_tokens, sizes.pga_samples) == (32, 120, 3)
    assert (sizes.null_subspaces, sizes.bootstrap_draws) == (20, 100)
    assert sizes.bank_sequences * sizes.sequence_length == 512
    assert sizes.query_sequences * sizes.sequence_length == 256
    assert sizes.replaced_sequences * sizes.sequence_length == 128
    assert (sizes.neighbours, sizes.rank, sizes.subspace_dim) == (16, 4, 4)


@pytest.mark.parametrize(
    "wrong", [{"neighbors": 4}, {"neighbours": 0}, {"pga_samples": -1}, {"bootstrap_draws": 1}]
)
def test_a_misspelt_or_senseless_size_is_an_error(wrong: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        Sizes(**wrong)


def test_unknown_sizes_list_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"Did you mean 'smoke'.*Known: default, smoke"):
        named_sizes("smok")
    assert set(SIZES) == {"default", "smoke"}


def test_each_seed_and_purpose_has_a_generator_of_its_own() -> None:
    draws = {
        (seed, purpose): generator(seed, purpose).integers(0, 2**62)
        for seed in (0, 1)
        for purpose in ("sequences", "pga")
    }
    assert len(set(draws.values())) == 4
    assert generator(1, "pga").integers(0, 2**62) == draws[1, "pga"]
