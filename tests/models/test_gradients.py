"""Halves side by side give the gradients of the whole, the same at every run."""

import pytest
import torch
from torch import Tensor

from layergeom.models.gradients import set_gradients, side_by_side

WEIGHTS = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
IDS = torch.randint(5, (7, 3), generator=torch.Generator().manual_seed(1))


def gradients(ids: Tensor) -> list[Tensor]:
    parameters = [WEIGHTS.clone().requires_grad_(), torch.ones(4, requires_grad=True)]

    def loss(part: Tensor) -> Tensor:
        return (parameters[0][part] * parameters[1]).tanh().square().mean()

    whole = torch.autograd.grad(loss(ids), parameters)
    with side_by_side() as pool:
        set_gradients(pool, loss, parameters, ids)
    found = [parameter.grad for parameter in parameters]
    for gradient, expected in zip(found, whole, strict=True):
        assert gradient is not None
        torch.testing.assert_close(gradient, expected)
    return [gradient for gradient in found if gradient is not None]


@pytest.mark.parametrize("sequences", [1, 2, 3, 7])
def test_equal_those_of_the_whole_batch_even_where_the_halves_differ(sequences: int) -> None:
    once, again = gradients(IDS[:sequences]), gradients(IDS[:sequences])
    for gradient, same in zip(once, again, strict=True):
        assert torch.equal(gradient, same)


def test_one_thread_gives_the_same_bytes_as_two(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for threads in ("1", "2"):
        monkeypatch.setenv("LAYERGEOM_THREADS", threads)
        found.append(gradients(IDS))
    for one, two in zip(*found, strict=True):
        assert torch.equal(one, two)


def test_an_error_in_a_half_comes_through_and_threads_are_put_back() -> None:
    before = torch.get_num_threads()

    def broken(part: Tensor) -> Tensor:
        raise ValueError("no loss")

    def fail() -> None:
        with side_by_side() as pool:
            assert torch.get_num_threads() == 1
            set_gradients(pool, broken, [WEIGHTS], IDS)

    with pytest.raises(ValueError, match="no loss"):
        fail()
    assert torch.get_num_threads() == before
