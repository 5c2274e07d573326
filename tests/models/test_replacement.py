"""KL(p || q) in nats, the right way round, against hand and plain float64."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from layergeom.models import language_model
from layergeom.models.capture import capture
from layergeom.models.language_model import LanguageModel
from layergeom.models.replacement import kl_divergence, perturbation
from reference.kl import divergence
from tiny_models import TOKENS, WIDTH


def logits(*shape: int, seed: int, scale: float = 3.0) -> Tensor:
    return scale * torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def reference(p: Tensor, q: Tensor) -> np.ndarray:
    return np.array([divergence(a, b) for a, b in zip(p.numpy(), q.numpy(), strict=True)])


def test_two_tokens_by_hand_and_in_the_right_direction() -> None:
    p = torch.tensor([[0.25, 0.75]]).log()
    q = torch.tensor([[0.5, 0.5]]).log()
    forward = 0.25 * np.log(0.25 / 0.5) + 0.75 * np.log(0.75 / 0.5)
    backward = 0.5 * np.log(0.5 / 0.25) + 0.5 * np.log(0.5 / 0.75)
    assert forward == pytest.approx(0.130812, abs=1e-6)
    assert backward == pytest.approx(0.143841, abs=1e-6)
    assert kl_divergence(p, q).item() == pytest.approx(forward, abs=1e-6)
    assert kl_divergence(q, p).item() == pytest.approx(backward, abs=1e-6)


@pytest.mark.parametrize(("tokens", "vocabulary"), [(1, 2), (16, 99), (37, 128), (5, 50_304)])
def test_equals_the_plain_divergence(tokens: int, vocabulary: int) -> None:
    p, q = logits(tokens, vocabulary, seed=0), logits(tokens, vocabulary, seed=1)
    np.testing.assert_allclose(kl_divergence(p, q).numpy(), reference(p, q), atol=1e-6, rtol=1e-6)


def test_of_close_distributions_equals_the_plain_divergence() -> None:
    p = logits(20, 5_000, seed=0)
    q = p + 1e-2 * logits(20, 5_000, seed=1)
    expected = reference(p, q)
    assert expected.max() < 1e-3
    np.testing.assert_allclose(kl_divergence(p, q).numpy(), expected, atol=1e-6)


def test_of_equal_distributions_is_zero_and_never_below() -> None:
    p = logits(40, 1_000, seed=0)
    assert kl_divergence(p, p).abs().max() < 1e-12
    # A logit more or less for every token is the same distribution.
    shifted = kl_divergence(p, p + 1.0)
    assert shifted.min() >= 0.0
    assert shifted.max() < 1e-6


def test_large_logits_do_not_overflow() -> None:
    p = torch.tensor([[1000.0, 0.0]])
    q = torch.tensor([[0.0, 0.0]])
    assert kl_divergence(p, q).item() == pytest.approx(np.log(2.0), abs=1e-6)
    assert kl_divergence(q, p).item() == pytest.approx(500.0 - np.log(2.0), abs=1e-3)


def test_leaves_its_arguments_as_they_were() -> None:
    p, q = logits(20, 9, seed=0), logits(20, 9, seed=1)
    kept = p.clone(), q.clone()
    kl_divergence(p, q)
    assert torch.equal(p, kept[0])
    assert torch.equal(q, kept[1])


def test_perturbation_in_chunks_equals_a_plain_run(
    tiny: Callable[[str], LanguageModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny("gemma2")
    monkeypatch.setattr(language_model, "LOGITS", 7 * len(model.unembedding.weight))
    ids = np.random.default_rng(0).integers(3, TOKENS, (3, 9))
    states = capture(model, ids)
    others = {
        str(seed): logits(3, 9, WIDTH, seed=seed, scale=1.0).numpy() + states.hidden[2]
        for seed in (1, 2)
    }
    found = perturbation(model, ids, 1, states.out, others)
    with torch.no_grad():
        own = model.network(torch.from_numpy(ids), use_cache=False).logits
        for name, other in others.items():
            handle = model.blocks[1].register_forward_hook(
                lambda _m, _a, _o, other=other: torch.from_numpy(other)
            )
            changed = model.network(torch.from_numpy(ids), use_cache=False).logits
            handle.remove()
            expected = reference(own.flatten(0, 1), changed.flatten(0, 1)).reshape(3, 9)
            np.testing.assert_allclose(found[name], expected, atol=1e-6, rtol=1e-5)
            assert expected.min() > 1e-4


def test_perturbation_of_later_positions_leaves_earlier_ones(
    tiny: Callable[[str], LanguageModel],
) -> None:
    model = tiny("llama")
    ids = np.random.default_rng(0).integers(3, TOKENS, (2, 8))
    states = capture(model, ids)
    replaced = states.hidden[1].copy()
    replaced[:, 5:] += 1.0
    kl = perturbation(model, ids, 0, states.out, {"late": replaced})["late"]
    assert kl[:, :5].max() < 1e-6
    assert kl[:, 5:].min() > 1e-4
