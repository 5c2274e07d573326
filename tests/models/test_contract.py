"""A model whose parts are not where its adapter says is refused, never measured."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutput

from fake_network import FakeBody, FakeNetwork
from layergeom.errors import LayergeomError, UsageError
from layergeom.models.adapters import ADAPTERS, Adapter
from layergeom.models.capture import capture
from layergeom.models.language_model import LanguageModel, wrap
from tiny_models import ROWS, TOKENS, tiny_network, tiny_tokenizer

IDS = np.random.default_rng(0).integers(3, TOKENS, (2, 9))


def wrap_tiny(network: Any) -> LanguageModel:
    return wrap("mine", network, tiny_tokenizer(), "no")


@pytest.mark.parametrize(
    ("architecture", "adapter"),
    [
        ("llama", Adapter("model.layers", "model.layers.2.post_attention_layernorm")),
        ("gpt_neox", Adapter("gpt_neox.layers", "gpt_neox.layers.0.input_layernorm")),
        ("gpt2", Adapter("transformer.h", "transformer.h.2.ln_2")),
        ("gemma2", Adapter("model.layers", "model.layers.0.post_feedforward_layernorm")),
        ("mamba", Adapter("backbone.layers", "backbone.layers.1.norm")),
    ],
)
def test_another_norm_is_refused_with_the_architectures_name(
    monkeypatch: pytest.MonkeyPatch, architecture: str, adapter: Adapter
) -> None:
    monkeypatch.setitem(ADAPTERS, architecture, adapter)
    with pytest.raises(UsageError, match=rf"\({architecture}\) fails the logits contract"):
        wrap_tiny(tiny_network(architecture))


def test_a_part_that_is_not_there_is_refused_with_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(ADAPTERS, "llama", Adapter("model.layers", "model.last_norm"))
    with pytest.raises(UsageError, match=r"LlamaForCausalLM has no part 'model\.last_norm'"):
        wrap_tiny(tiny_network("llama"))


class _NormInLastBlock(FakeBody):
    """A body whose last block already applies the final norm: its hook is on the wrong side."""

    def __init__(self) -> None:
        super().__init__("tensor", 2)
        last, norm = self.layers[1], self.norm
        inner = last.forward
        last.forward = lambda hidden_states, mask: norm(inner(hidden_states, mask))

    def forward(self, input_ids: Tensor, use_cache: bool = False) -> BaseModelOutput:
        states = self.embed(input_ids)
        for block in self.layers:
            states = block(hidden_states=states, mask=torch.ones(()))
        return BaseModelOutput(last_hidden_state=states)


def _hooked_on_the_wrong_side(random_gain: bool) -> FakeNetwork:
    network = FakeNetwork()
    norm = network.model.norm
    network.model = _NormInLastBlock()
    if random_gain:
        network.model.norm.load_state_dict(norm.state_dict())
    return network


def test_states_after_the_norm_are_refused() -> None:
    with pytest.raises(UsageError, match="fails the logits contract"):
        wrap("fake", _hooked_on_the_wrong_side(random_gain=True), None, "no")


def test_only_random_gains_show_states_after_the_norm() -> None:
    # Why every test model has them: with a gain of 1 the same mistake passes.
    wrap("fake", _hooked_on_the_wrong_side(random_gain=False), None, "no")


def test_unknown_architecture_is_refused_with_those_known() -> None:
    network = FakeNetwork()
    network.config.model_type = "opt"
    with pytest.raises(UsageError, match=r"'opt'.*llama.*gpt_neox") as caught:
        wrap("fake", network, None, "no")
    assert caught.value.exit_status == 2


def test_encoder_decoder_is_refused_with_the_reason() -> None:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=ROWS, d_model=32, d_kv=8, d_ff=32, num_layers=2, num_heads=4, pad_token_id=0
    )
    with pytest.raises(UsageError, match=r"encoder-decoder model \(t5\)"):
        wrap_tiny(T5ForConditionalGeneration(config))


def test_soft_capped_logits_go_through_the_models_own_head(
    tiny: Callable[[str], LanguageModel],
) -> None:
    model = tiny("gemma2")
    cap = model.network.config.final_logit_softcapping
    out = torch.from_numpy(capture(model, IDS).out)
    with torch.no_grad():
        own = model.network(torch.from_numpy(IDS), use_cache=False).logits
    linear = out @ model.unembedding.weight.T
    torch.testing.assert_close(model.logits(out), own)
    torch.testing.assert_close(own, cap * torch.tanh(linear / cap))
    assert (own - linear).abs().max() > 0.1


def test_half_precision_forward_gives_float32_states() -> None:
    model = wrap_tiny(tiny_network("gpt_neox").to(torch.bfloat16))
    exact = capture(wrap_tiny(tiny_network("gpt_neox")), IDS)
    states = capture(model, IDS)
    for rough, fine in zip([*states.hidden, states.out], [*exact.hidden, exact.out], strict=True):
        assert rough.dtype == np.float32
        assert 0 < np.linalg.norm(rough - fine) / np.linalg.norm(fine) < 0.05


def _poison(module: nn.Module, value: float) -> None:
    def spoil(_module: nn.Module, _arguments: Any, output: Tensor) -> Tensor:
        output[0, -1, 0] = value
        return output

    module.register_forward_hook(spoil)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize(
    ("dtype", "name"), [(torch.float32, "float32"), (torch.float16, "float16")]
)
def test_values_that_are_not_finite_are_an_error_naming_layer_and_dtype(
    value: float, dtype: torch.dtype, name: str
) -> None:
    model = wrap_tiny(tiny_network("gpt_neox").to(dtype))
    _poison(model.blocks[1], value)
    with pytest.raises(LayergeomError, match=rf"mine: .*not finite at H_2 in {name}"):
        capture(model, IDS)


def test_values_that_are_not_finite_in_a_later_sequence_are_an_error_too() -> None:
    model = wrap_tiny(tiny_network("gpt_neox"))
    with torch.no_grad():
        model.network.gpt_neox.embed_in.weight[50] = float("inf")
    ids = np.where(IDS == 50, 51, IDS)
    capture(model, ids)
    ids[1, 3] = 50
    with pytest.raises(LayergeomError, match=r"32 values are not finite at H_0 in float32"):
        capture(model, ids)
