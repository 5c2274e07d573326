"""The catalogue's rows are checked, and seeds and checkpoints follow from a recipe."""

from typing import Any

import pytest

from layergeom.models.catalogue import (
    ModelEntry,
    TrainedSource,
    base_name,
    catalogue,
    find_entry,
    is_trained,
)

WHEEL: dict[str, Any] = {
    "kind": "wheel",
    "file": "tiny.gguf",
    "sha256": "0" * 64,
    "parts": [{"package": "p", "version": "1", "member": "tiny.gguf"}],
}
RECIPE: dict[str, Any] = {
    "kind": "trained",
    "corpus": "wikipedia-sample",
    "vocabulary": 300,
    "context": 16,
    "network": {"type": "gpt_neox", "width": 16, "depth": 2, "heads": 2},
    "steps": 100,
    "batch": 4,
    "learning_rate": 0.01,
}
ROW: dict[str, Any] = {"title": "t", "family": "f", "bos": False, "licence": "l"}


def recipe(**changes: Any) -> TrainedSource:
    return TrainedSource.model_validate(RECIPE | changes)


def recipe_of(model: str) -> TrainedSource:
    entry = find_entry(model)
    assert entry is not None
    assert isinstance(entry.source, TrainedSource)
    return entry.source


def test_the_catalogue_holds_the_models_that_profiles_name() -> None:
    expected = {
        "smollm2-135m": "smollm2",
        "gemma3-270m": "gemma3",
        "mini-pythia-d32": "mini-pythia",
        "mini-pythia-d64": "mini-pythia",
        "mini-pythia-d128": "mini-pythia",
        "mini-mamba-d64": "mini-mamba",
        "smoke-pythia": "smoke-pythia",
        "smoke-mamba": "smoke-mamba",
    }
    assert {name: entry.family for name, entry in catalogue().items()} == expected


def test_gemma_needs_a_bos_and_its_terms_and_no_other_model_does() -> None:
    assert {name for name, entry in catalogue().items() if entry.bos} == {"gemma3-270m"}
    assert {name for name, entry in catalogue().items() if entry.terms} == {"gemma3-270m"}


def test_the_small_models_share_corpus_tokenizer_and_context() -> None:
    names = [name for name in catalogue() if name.startswith("mini-")]
    assert len(names) == 4
    shared = {(r.corpus, r.vocabulary, r.context) for r in map(recipe_of, names)}
    assert shared == {("wikipedia-sample", 2048, 128)}
    for name in names:
        assert f"-d{recipe_of(name).network.width}" in name


@pytest.mark.parametrize(
    "source",
    [
        WHEEL | {"sha256": "b179"},
        WHEEL | {"kind": "pickle"},
        WHEEL | {"sha265": "0" * 64},
        WHEEL | {"parts": []},
        RECIPE | {"network": {"type": "mamba", "width": 16, "depth": 2, "heads": 2}},
        RECIPE | {"network": {"type": "rwkv", "width": 16, "depth": 2}},
        RECIPE | {"seed": -1},
    ],
    ids=["short hash", "kind", "misspelt", "no part", "wrong shape", "unknown network", "seed"],
)
def test_a_wrong_row_is_an_error(source: dict[str, Any]) -> None:
    for right in (WHEEL, RECIPE):
        ModelEntry.model_validate(ROW | {"source": right})
    with pytest.raises(ValueError, match="validation error"):
        ModelEntry.model_validate(ROW | {"source": source})


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (1, [0, 1]),
        (4, [0, 1, 2, 3, 4]),
        (80, [0, 1, 2, 4, 10, 20, 30, 40, 50, 60, 70, 80]),
        (800, [0, 1, 2, 4, 8, 16, 32, 100, 200, 300, 400, 500, 600, 700, 800]),
    ],
)
def test_checkpoints_double_and_then_come_evenly(steps: int, expected: list[int]) -> None:
    assert list(recipe(steps=steps).checkpoint_steps) == expected


def test_the_small_models_keep_twelve_to_sixteen_checkpoints() -> None:
    for name, entry in catalogue().items():
        if isinstance(entry.source, TrainedSource):
            steps = entry.source.checkpoint_steps
            assert 12 <= len(steps) <= 16, name
            assert (steps[0], steps[-1]) == (0, entry.source.steps)


def test_tokens_seen_are_sequences_times_context() -> None:
    assert recipe().tokens_seen(25) == 25 * 4 * 16


def test_trained_on_the_spot_are_the_recipes_and_nothing_else() -> None:
    names = ["mini-pythia-d64", "mini-mamba-d64-seed3", "smollm2-135m", "owner/name"]
    assert [is_trained(name) for name in names] == [True, True, False, False]


def test_a_seed_behind_the_name_changes_the_seed_alone() -> None:
    plain, seeded = recipe_of("mini-pythia-d64"), recipe_of("mini-pythia-d64-seed12")
    assert (plain.seed, seeded.seed) == (0, 12)
    assert seeded.model_copy(update={"seed": 0}) == plain
    assert recipe_of("mini-pythia-d64-seed0") == plain


@pytest.mark.parametrize("name", ["smollm2-135m-seed1", "nosuch-seed1", "mini-pythia-d64-seed"])
def test_other_names_with_a_seed_are_not_in_the_catalogue(name: str) -> None:
    assert find_entry(name) is None
    assert base_name(name) == name
