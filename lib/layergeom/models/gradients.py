"""Gradients of a batch, halves of it side by side where there are threads for both.

The networks trained here are so small that threads inside one product wait for each other more
than they work. Two threads that each take half of the sequences do not wait until the end.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager

import torch
from jaxtyping import Float, Int
from torch import Tensor

from layergeom.geometry.threads import thread_count

#: Halves, whatever the number of cores: a sum in another order has other last digits.
_PARTS = 2


@contextmanager
def side_by_side() -> Iterator[Executor]:
    """Threads for the halves, one where no more may be used, and one inside each product."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(min(_PARTS, thread_count())) as pool:
            yield pool
    finally:
        torch.set_num_threads(threads)


def set_gradients(
    pool: Executor,
    loss: Callable[[Int[Tensor, "some length"]], Float[Tensor, ""]],
    parameters: Sequence[Tensor],
    ids: Int[Tensor, "sequences length"],
) -> None:
    """Set the parameters' gradients to that of the mean loss over the sequences.

    Args:
        pool: threads, from ``side_by_side``.
        loss: mean loss over some of the sequences.
        parameters: what the loss depends on.
        ids: the sequences.
    """

    def share(part: Int[Tensor, "some length"]) -> tuple[Tensor, ...]:
        return torch.autograd.grad(loss(part) * (len(part) / len(ids)), parameters)

    first, *others = pool.map(share, ids.chunk(_PARTS))
    for parameter, gradient, *more in zip(parameters, first, *others, strict=True):
        parameter.grad = sum(more, gradient)
