"""Reading, rebuilding and replacing what a block passes on, whatever its type.

A block returns a tensor in one architecture and a tuple in another; unpacking blindly would
split the batch axis of a tensor. These helpers are the only place that knows.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from layergeom.errors import LayergeomError


def read_states(output: Any) -> Tensor:
    """The hidden states in a block's output.

    Raises:
        LayergeomError: neither a tensor nor a tuple or list that starts with one.
    """
    states = output[0] if isinstance(output, tuple | list) else output
    if not isinstance(states, Tensor):
        raise LayergeomError(
            f"a block returned {type(output).__name__}, which holds no hidden states."
        )
    return states


def like_output(template: Any, states: Tensor) -> Any:
    """An output of the template's type that holds other hidden states.

    What else a tuple held (attention weights, caches) belongs to other states: None.
    """
    if isinstance(template, tuple | list):
        return type(template)([states, *(None for _ in template[1:])])
    return states


def read_input(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Tensor:
    """The hidden states that a block was called with."""
    states = arguments[0] if arguments else keywords.get("hidden_states")
    if not isinstance(states, Tensor):
        raise LayergeomError("a block was called without hidden states.")
    return states


def check_finite(states: Tensor, where: str, model: str) -> None:
    """Refuse hidden states that are not finite.

    Raises:
        LayergeomError: how many values, at which capture point and in which dtype.
    """
    bad = int((~torch.isfinite(states)).sum())
    if bad:
        dtype = str(states.dtype).removeprefix("torch.")
        raise LayergeomError(
            f"{model}: {bad} values are not finite at {where} in {dtype}. Half precision often "
            "overflows in late layers: take the dtype float32."
        )


@contextmanager
def hooked(blocks: Sequence[nn.Module], record: Callable[[int, Tensor], None]) -> Iterator[None]:
    """Call ``record(l, H_l)`` for l = 0 (input of block 0) to L while the block is active."""

    def entry(_: nn.Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        record(0, read_input(arguments, keywords))

    def output_hook(layer: int) -> Callable[..., None]:
        return lambda _module, _arguments, output: record(layer, read_states(output))

    handles = [blocks[0].register_forward_pre_hook(entry, with_kwargs=True)]
    handles += [block.register_forward_hook(output_hook(i + 1)) for i, block in enumerate(blocks)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def replaced_forward(module: nn.Module, forward: Callable[..., Any]) -> Iterator[None]:
    """Let a module run another function in place of its own forward."""
    own = module.__dict__.get("forward")
    module.forward = forward  # type: ignore[method-assign]
    try:
        yield
    finally:
        if own is None:
            del module.forward
        else:
            module.forward = own  # type: ignore[method-assign]


@contextmanager
def replaced_output(
    blocks: Sequence[nn.Module], templates: Sequence[Any], block: int, states: Tensor
) -> Iterator[None]:
    """Let ``block`` put out other states, and the blocks below it pass their input on.

    Args:
        blocks: all blocks, in order.
        templates: what each block returns, from ``output_templates``.
        block: index of the block whose output is replaced.
        states: the hidden states in its place.
    """

    def passes_on(template: Any) -> Callable[..., Any]:
        return lambda *arguments, **keywords: like_output(template, read_input(arguments, keywords))

    output = like_output(templates[block], states)
    with ExitStack() as stack:
        for lower, template in zip(blocks[:block], templates, strict=False):
            stack.enter_context(replaced_forward(lower, passes_on(template)))
        stack.enter_context(replaced_forward(blocks[block], lambda *_, **__: output))
        yield


@contextmanager
def last_output_replaced(block: nn.Module, states: Tensor) -> Iterator[None]:
    """Let a block put out other states at the last position, its own at all others.

    Args:
        block: the block.
        states: hidden states of each sequence's last position, as (sequences, width).
    """

    def replace(_module: nn.Module, _arguments: Any, output: Any) -> Any:
        changed = read_states(output).clone()
        changed[:, -1] = states
        return like_output(output, changed)

    handle = block.register_forward_hook(replace)
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def outputs_of(modules: Sequence[nn.Module]) -> Iterator[list[Tensor]]:
    """Collect what modules put out, in their order, in each run while the block is active."""
    found: list[Tensor] = [torch.empty(0)] * len(modules)

    def keep(index: int) -> Callable[..., None]:
        def hook(_module: nn.Module, _arguments: Any, output: Any) -> None:
            found[index] = read_states(output)

        return hook

    handles = [module.register_forward_hook(keep(i)) for i, module in enumerate(modules)]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


@torch.no_grad()
def output_templates(
    blocks: Sequence[nn.Module], body: nn.Module, run: Callable[[], Any]
) -> tuple[list[Any], type]:
    """What each block and the body return, seen once on a small input."""
    outputs: list[Any] = []
    bodies: list[type] = []

    def keep(_module: nn.Module, _arguments: Any, output: Any) -> None:
        outputs.append(like_output(output, torch.empty(0)))

    handles = [block.register_forward_hook(keep) for block in blocks]
    handles.append(body.register_forward_hook(lambda _m, _a, output: bodies.append(type(output))))
    try:
        run()
    finally:
        for handle in handles:
            handle.remove()
    if len(outputs) != len(blocks) or len(bodies) != 1:
        raise LayergeomError(
            f"{len(outputs)} block outputs for {len(blocks)} blocks: a block is called more or "
            "less than once, which this tool does not support."
        )
    return outputs, bodies[0]
