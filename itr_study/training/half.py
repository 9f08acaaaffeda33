"""bfloat16 on a CPU that has no instructions for it: products in float32, rounded.

torch falls back to plain loops there: on AVX2 a step of VSE∞ took 3.7 s in bfloat16 and 0.5 in
float32. CPUs that have them do the same sum: inputs of 8 bits, added up in float32, rounded once.
"""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

# What multiplies and adds up, forward and backward.
_aten = torch.ops.aten
PRODUCTS = {_aten.mm.default, _aten.addmm.default, _aten.bmm.default, _aten.baddbmm.default,
            _aten.convolution.default, _aten.convolution_backward.default}


class ProductsInFloat32(TorchDispatchMode):
    """Within it every product of bfloat16 tensors is made in float32 and rounded at its end."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        half = func in PRODUCTS and any(_is_half(given) for given in args)
        if not half:
            return func(*args, **(kwargs or {}))
        found = func(*(given.float() if _is_half(given) else given for given in args),
                     **(kwargs or {}))
        return tree_map_only(torch.Tensor, torch.Tensor.bfloat16, found)


def _is_half(given: object) -> bool:
    return isinstance(given, torch.Tensor) and given.dtype == torch.bfloat16


def half_products(device: torch.device, precision: str) -> AbstractContextManager[object]:
    """Around a step: `ProductsInFloat32` for bfloat16 on a CPU that cannot compute in it."""
    if precision != "bfloat16" or device.type != "cpu" or cpu_multiplies_half():
        return nullcontext()
    return ProductsInFloat32()


def cpu_multiplies_half() -> bool:
    """Whether oneDNN takes bfloat16 here; from AVX-512 on it does."""
    return torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()
