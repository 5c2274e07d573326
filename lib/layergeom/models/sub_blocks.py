"""What the mixer and the MLP of each block add to the residual stream."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from layergeom.errors import NotMeasurableError
from layergeom.models.adapters import adapter_for, part
from layergeom.models.blocks import hooked, outputs_of
from layergeom.models.language_model import LanguageModel

#: Sequences a forward pass.
BATCH = 4

#: Largest length of ``h' - h - (mixer + mlp)`` as a share of that of ``h'``: rounding only.
_ADD_UP = 1e-4


def part_names(model: LanguageModel) -> tuple[str, ...]:
    """The parts that a block of the model has: ``mixer`` and, where there is one, ``mlp``."""
    adapter = adapter_for(model.network.config.model_type)
    return ("mixer",) if adapter.mlp is None else ("mixer", "mlp")


def _modules(model: LanguageModel) -> list[nn.Module]:
    """Each block's mixer and MLP, block after block."""
    adapter = adapter_for(model.network.config.model_type)
    names = [adapter.mixer] if adapter.mlp is None else [adapter.mixer, adapter.mlp]
    return [part(block, name) for block in model.blocks for name in names]


@dataclass(frozen=True)
class SubBlockBatch:
    """A few sequences' states and what the parts of each block add to them.

    Attributes:
        rows: which sequences.
        hidden: ``H_0 ... H_L``.
        added: for each block, the outputs of its parts by name.
    """

    rows: slice
    hidden: list[Float[Tensor, "batch length width"]]
    added: list[dict[str, Float[Tensor, "batch length width"]]]


@torch.no_grad()
def sub_block_outputs(
    model: LanguageModel, ids: Int[Tensor, "sequences length"]
) -> Iterator[SubBlockBatch]:
    """What each block's parts add to the residual stream, a few sequences at a time.

    Raises:
        NotMeasurableError: they do not add up to the block's update, as where a block scales
            what it adds.
    """
    names = part_names(model)
    hidden: list[Tensor] = [torch.empty(0)] * (model.depth + 1)
    with outputs_of(_modules(model)) as outputs, hooked(model.blocks, hidden.__setitem__):
        for start in range(0, len(ids), BATCH):
            rows = slice(start, start + BATCH)
            model.body(ids[rows], use_cache=False)
            added = [
                dict(zip(names, outputs[at : at + len(names)], strict=True))
                for at in range(0, len(outputs), len(names))
            ]
            for block, parts in enumerate(added):
                _check_sum(model.name, block, hidden[block], hidden[block + 1], parts)
            yield SubBlockBatch(rows, list(hidden), added)


def _check_sum(
    name: str, block: int, below: Tensor, above: Tensor, parts: dict[str, Tensor]
) -> None:
    # On the host: not every device has float64.
    above = above.cpu().double()
    rest = above - below.cpu().double() - sum(p.cpu().double() for p in parts.values())
    error = float(rest.norm() / above.norm())
    if not error < _ADD_UP:
        raise NotMeasurableError(
            f"the {' and '.join(parts)} outputs of block {block} of {name} miss its update by "
            f"{error:.1e} of its output's length (limit {_ADD_UP:.0e}): they are not what is "
            "added to the residual stream, so no share along them is shown."
        )
