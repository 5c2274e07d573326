"""The bigram model against counts in dictionaries, and as a distribution."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layergeom.models.bigram import DISCOUNTS, fit_bigram
from properties import deterministic
from reference import bigram as reference

VOCABULARY = 9


def chain(seed: int, length: int, sharpness: float = 1.0) -> np.ndarray:
    """Tokens of a random Markov chain; the last token of the vocabulary never comes up."""
    rng = np.random.default_rng(seed)
    logits = sharpness * rng.normal(size=(VOCABULARY - 1, VOCABULARY - 1))
    rows = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    stream = [0]
    for _ in range(length - 1):
        stream.append(int(rng.choice(VOCABULARY - 1, p=rows[stream[-1]])))
    return np.array(stream)


@deterministic
@given(length=st.integers(16, 120), seed=st.integers(0, 1000))
def test_equals_the_reference_with_the_discount_that_is_best_there(length: int, seed: int) -> None:
    stream, text = chain(seed, length), chain(seed + 1, 40)
    model = fit_bigram(stream, VOCABULARY)
    expected = reference.loss(list(stream), VOCABULARY, model.discount, list(text))
    assert model.loss(text[:-1], text[1:]) == pytest.approx(expected, rel=1e-9)

    cut = length - length // 8
    first, rest = list(stream[:cut]), list(stream[cut:])
    if len(rest) > 1:
        losses = [reference.loss(first, VOCABULARY, d, rest) for d in DISCOUNTS]
        assert model.discount == pytest.approx(DISCOUNTS[int(np.argmin(losses))])


def test_probabilities_of_what_follows_sum_to_one_even_after_an_unseen_token() -> None:
    model = fit_bigram(chain(0, 200), VOCABULARY)
    every = np.arange(VOCABULARY)
    for before in every:
        losses = [model.loss(np.array([before]), np.array([after])) for after in every]
        assert np.exp(-np.array(losses)).sum() == pytest.approx(1.0)


def test_a_sharp_chain_is_predicted_better_than_by_frequency_alone() -> None:
    stream, text = chain(0, 4000, sharpness=4.0), chain(0, 6000, sharpness=4.0)[4000:]
    model = fit_bigram(stream, VOCABULARY)
    by_frequency = float(-np.log(model.frequency[text[1:]]).mean())
    assert model.loss(text[:-1], text[1:]) < 0.7 * by_frequency


def test_shape_of_the_tokens_does_not_matter() -> None:
    model, text = fit_bigram(chain(0, 300), VOCABULARY), chain(1, 61)
    before, after = text[:-1], text[1:]
    folded = model.loss(before.reshape(6, 10), after.reshape(6, 10))
    assert folded == pytest.approx(model.loss(before, after))
