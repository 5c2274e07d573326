"""Where a model runs, and in which arithmetic."""

from typing import TYPE_CHECKING, Any, Literal, get_args

from layergeom.errors import UsageError, unknown

if TYPE_CHECKING:  # the names are known without it, and it takes seconds to import
    import torch

#: ``auto``: the GPU where there is one; ``split``: layers shared out among the devices.
Device = Literal["auto", "cpu", "cuda", "mps", "split"]
#: Arithmetic of the forward pass; the geometry runs in float32 and float64 whatever it is.
Dtype = Literal["float32", "bfloat16", "float16"]


def torch_dtype(name: str) -> "torch.dtype":
    """The type of a name.

    Raises:
        UsageError: no such type.
    """
    import torch

    if name not in get_args(Dtype):
        raise unknown("dtype", name, list(get_args(Dtype)))
    return getattr(torch, name)  # type: ignore[no-any-return]


def check_device(device: str) -> None:
    """Refuse a device that this machine has not, before anything is loaded or computed.

    Raises:
        UsageError: no such device, or not on this machine.
    """
    if device not in ("auto", "cpu"):  # these are everywhere, and looking takes seconds
        placement(device)


def placement(device: str) -> dict[str, Any]:
    """Options of ``from_pretrained`` that put a model on a device.

    Args:
        device: one of ``Device``.

    Raises:
        UsageError: no such device, or not on this machine, with those that are.
    """
    import torch

    if device not in get_args(Device):
        raise unknown("device", device, list(get_args(Device)))
    if device == "split":
        return {"device_map": "auto"}
    here = _here()
    chosen = here[0] if device == "auto" else device
    if chosen not in here:
        raise UsageError(
            f"there is no {chosen} device here, only: {', '.join(here)}. The device 'auto' is the "
            "fastest of them."
        )
    if chosen == "cuda":
        # TF32 keeps ten bits of a float32's mantissa: states would differ in the third digit.
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
    return {"device_map": {"": chosen}} if chosen != "cpu" else {}


def _here() -> list[str]:
    """Devices of this machine, the fastest first."""
    import torch

    found = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    return [*(name for name, there in found.items() if there), "cpu"]
