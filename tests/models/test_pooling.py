"""Pooled vectors are those of each text run alone, whatever else is in its batch."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from layergeom.errors import LayergeomError
from layergeom.models.capture import capture
from layergeom.models.language_model import LanguageModel
from layergeom.models.pooling import BATCH_TOKENS, pooled_states
from tiny_models import DEPTH, TOKENS, WIDTH

LENGTHS = (5, 9, 5, 3, 9, 9, 2)


def sequences(lengths: tuple[int, ...] = LENGTHS) -> list[list[int]]:
    rng = np.random.default_rng(0)
    return [[int(i) for i in rng.integers(3, TOKENS, length)] for length in lengths]


@pytest.mark.parametrize("architecture", ["gpt_neox", "mamba", "gemma2"])
@pytest.mark.parametrize("skip", [0, 1])
def test_each_text_is_pooled_as_if_alone(
    tiny: Callable[[str], LanguageModel], architecture: str, skip: int
) -> None:
    model, texts = tiny(architecture), sequences()
    found = pooled_states(model, texts, skip)
    assert found.points == ("H_0", "H_1", "H_2", "H_3", "out")
    assert found.mean.shape == found.last.shape == (DEPTH + 2, len(texts), WIDTH)
    for row, text in enumerate(texts):
        alone = capture(model, np.array([text]))
        for point, states in enumerate([*alone.hidden, alone.out]):
            mean = np.mean(states[0, skip:].astype(np.float64), axis=0)
            np.testing.assert_allclose(found.mean[point, row], mean, atol=2e-5)
            np.testing.assert_allclose(found.last[point, row], states[0, -1], atol=2e-5)


def test_many_texts_of_one_length_run_in_batches(tiny: Callable[[str], LanguageModel]) -> None:
    model = tiny("gpt_neox")
    texts = sequences((32,) * (BATCH_TOKENS // 32 + 3))
    found = pooled_states(model, texts, 1)
    alone = pooled_states(model, texts[-1:], 1)
    np.testing.assert_allclose(found.mean[:, -1], alone.mean[:, 0], atol=2e-5)


def test_states_that_are_not_finite_are_named(tiny: Callable[[str], LanguageModel]) -> None:
    model = tiny("gpt_neox")

    def spoil(_module: object, _arguments: object, output: torch.Tensor) -> torch.Tensor:
        spoilt = output[0] if isinstance(output, tuple) else output
        changed = spoilt.clone()
        if changed.shape[1] == 9:  # not the text that the contract is checked on
            changed[0, 2, 1] = float("nan")
        return (changed, *output[1:]) if isinstance(output, tuple) else changed

    handle = model.blocks[1].register_forward_hook(spoil)
    try:
        with pytest.raises(LayergeomError, match="not finite at H_2"):
            pooled_states(model, sequences(), 1)
    finally:
        handle.remove()
