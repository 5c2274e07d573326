"""The gain of the final norm, measured on the norm, against what each architecture stores."""

from collections.abc import Callable

import numpy as np
import pytest

from layergeom.models.language_model import LanguageModel
from layergeom.models.norm_gain import final_norm_gain
from tiny_models import ARCHITECTURES, WIDTH

#: Gemma's norms multiply by one more than their weight; OLMo's have none.
ONE_MORE = ("gemma", "gemma2", "gemma3_text")
NO_WEIGHT = ("olmo",)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_is_what_the_norm_multiplies_by(
    tiny: Callable[[str], LanguageModel], architecture: str
) -> None:
    model = tiny(architecture)
    if architecture in NO_WEIGHT:
        assert not list(model.final_norm.parameters())
        expected = np.ones(WIDTH)
    else:
        weight = model.final_norm.weight.numpy()
        assert np.ptp(weight) > 0.1
        expected = weight + 1.0 if architecture in ONE_MORE else weight
    found = final_norm_gain(model)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
