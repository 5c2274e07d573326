"""KL of replaced block outputs: ours and a whole forward pass for every block and class."""

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.timing import Row, median_seconds, once
from layergeom.geometry.threads import thread_count

if TYPE_CHECKING:
    import torch

    from layergeom.models.language_model import LanguageModel

_CLASSES = 5


def replacement(model: str = "smollm2-135m", sequences: int = 2, blocks: int = 5) -> Row:
    """Some blocks from the first to the last, and as many replacements as there are classes."""
    from layergeom.models.capture import capture
    from layergeom.models.language_model import load
    from layergeom.models.replacement import perturbation

    loaded = load(model)
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, loaded.unembedding.weight.shape[0], (sequences, 128))
    states = capture(loaded, tokens)
    chosen = np.unique(np.linspace(0, loaded.depth - 1, blocks).round().astype(int))
    replaced = {}
    for block in map(int, chosen):
        above = states.hidden[block + 1]
        unit = np.float32(0.02 * np.abs(above).mean())
        replaced[block] = {
            str(i): above + i * unit * rng.standard_normal(above.shape, dtype=np.float32)
            for i in range(1, _CLASSES + 1)
        }
    found, expected = {}, {}

    def ours() -> None:
        for block, outputs in replaced.items():
            found[block] = perturbation(loaded, tokens, block, states.out, outputs)

    def plain() -> None:
        own = _log_probabilities(loaded, tokens)
        for block, outputs in replaced.items():
            expected[block] = _plain(loaded, tokens, block, outputs, own)

    seconds, plain_seconds = median_seconds(ours, runs=3), once(plain)
    difference = max(
        float(np.abs(found[block][name] - expected[block][name]).max())
        for block, outputs in replaced.items()
        for name in outputs
    )
    return Row(
        f"Replacement, {loaded.name}, {sequences * 128} tokens, {len(replaced)} blocks, "
        f"{_CLASSES} classes",
        thread_count(),
        seconds,
        plain_seconds,
        "1.7 x, KL to 1e-5",
        difference,
        "the plain way takes its softmax in float64, as the reference does",
    )


def _log_probabilities(model: "LanguageModel", tokens: np.ndarray) -> "torch.Tensor":
    """A whole forward pass, every logit held."""
    import torch

    with torch.no_grad():
        logits = model.network(torch.from_numpy(tokens), use_cache=False).logits
        return torch.log_softmax(logits.double(), dim=-1)


def _plain(
    model: "LanguageModel",
    tokens: np.ndarray,
    block: int,
    outputs: dict[str, np.ndarray],
    own: "torch.Tensor",
) -> dict[str, np.ndarray]:
    """A forward pass for each replacement, with a hook on the block."""
    import torch

    from layergeom.models.blocks import like_output

    kl = {}
    for name, states in outputs.items():
        handle = model.blocks[block].register_forward_hook(
            lambda _m, _a, output, states=states: like_output(output, torch.from_numpy(states))
        )
        other = _log_probabilities(model, tokens)
        handle.remove()
        kl[name] = (own.exp() * (own - other)).sum(dim=-1).numpy()
    return kl
