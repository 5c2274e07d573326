"""The logit lens against the network's own norm and head, a token at a time."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from layergeom.models import language_model
from layergeom.models.capture import CapturedStates, capture
from layergeom.models.language_model import LanguageModel
from layergeom.models.lens import logit_lens
from reference.kl import divergence
from tiny_models import ARCHITECTURES, DEPTH, TOKENS

Make = Callable[[str], LanguageModel]


def captured(model: LanguageModel) -> CapturedStates:
    return capture(model, np.random.default_rng(0).integers(3, TOKENS, (3, 9)))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_last_layer_is_the_final_prediction_exactly(tiny: Make, architecture: str) -> None:
    states = captured(tiny(architecture))
    reading = logit_lens(tiny(architecture), states.hidden, states.out)
    assert reading.kl.shape == reading.agreement.shape == (DEPTH + 1, 3, 9)
    assert (reading.kl[DEPTH] == 0.0).all()
    assert reading.agreement[DEPTH].all()
    assert np.median(reading.kl[:DEPTH]) > 1e-3


def test_equals_the_networks_own_norm_and_head_on_each_token(
    tiny: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny("gpt_neox")
    monkeypatch.setattr(language_model, "LOGITS", 7 * len(model.unembedding.weight))
    states = captured(model)
    reading = logit_lens(model, states.hidden, states.out)
    norm, head = model.network.gpt_neox.final_layer_norm, model.network.get_output_embeddings()
    with torch.no_grad():
        final = head(torch.from_numpy(states.out)).numpy()
        for layer, hidden in enumerate(states.hidden):
            logits = head(norm(torch.from_numpy(hidden))).numpy()
            for place in np.ndindex(3, 9):
                expected = divergence(final[place], logits[place])
                assert reading.kl[layer][place] == pytest.approx(expected, abs=1e-6)
                same = final[place].argmax() == logits[place].argmax()
                assert reading.agreement[layer][place] == same


def test_soft_caps_are_the_models_own(tiny: Make) -> None:
    model = tiny("gemma2")
    states = captured(model)
    reading = logit_lens(model, states.hidden, states.out)
    cap = model.network.config.final_logit_softcapping
    with torch.no_grad():
        capped = [
            cap * torch.tanh(model.unembedding(normed) / cap)
            for normed in (
                torch.from_numpy(states.out),
                model.final_norm(torch.from_numpy(states.hidden[1])),
            )
        ]
    final, logits = (c.flatten(0, 1).numpy() for c in capped)
    expected = [divergence(p, q) for p, q in zip(final, logits, strict=True)]
    np.testing.assert_allclose(reading.kl[1].ravel(), expected, atol=1e-6)


def test_logits_are_never_held_for_more_than_a_chunk_and_the_final_ones_made_once(
    tiny: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny("llama")
    monkeypatch.setattr(language_model, "LOGITS", 11 * len(model.unembedding.weight) - 1)
    states = captured(model)
    own, seen = LanguageModel.logits, []

    def counted(self: LanguageModel, normed: Tensor) -> Tensor:
        seen.append(normed.shape[0] * normed.shape[1])
        return own(self, normed)

    monkeypatch.setattr(LanguageModel, "logits", counted)
    logit_lens(model, states.hidden, states.out)
    assert max(seen) == 10
    assert sum(seen) == 27 * (DEPTH + 1 + 1)
