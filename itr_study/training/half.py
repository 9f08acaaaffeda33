"""bfloat16 on a CPU that has no instructions for it: products in float32, rounded.

torch falls back to plain loops there: on AVX2 a step of VSE∞ took 3.7 s in bfloat16 and 0.5 in
float32. CPUs that have them do the same sum: inputs of 8 bits, added up in float32, rounded once.
Left to torch: attention in one kernel (scaled_dot_product_attention) and nn.LSTM, which oneDNN
refuses in bfloat16 there. torch.compile leaves alone what runs within such a mode: a module that
must be one graph (fullgraph=True) needs precision="float32" there.
"""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

# What multiplies and adds up, forward and backward.
_aten = torch.ops.aten
PRODUCTS = {
    _aten.mm.default, _aten.addmm.default, _aten.bmm.default, _aten.baddbmm.default,
    _aten.addbmm.default, _aten.mv.default, _aten.addmv.default, _aten.dot.default,
    _aten.convolution.default, _aten.convolution_backward.default}


HALF = {torch.bfloat16}


class ProductsInFloat32(TorchDispatchMode):
    """Within it PRODUCTS of bfloat16 tensors are made in float32 and rounded at their end; of other
    tensors, and of some of each, they are torch's."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func not in PRODUCTS or {
                given.dtype for given in args if isinstance(given, torch.Tensor)} != HALF:
            return func(*args, **(kwargs or {}))
        found = func(*tree_map_only(torch.Tensor, torch.Tensor.float, args), **(kwargs or {}))
        return tree_map_only(torch.Tensor, torch.Tensor.bfloat16, found)


def half_products(device: torch.device, precision: str) -> AbstractContextManager[object]:
    """Around encoders, forward and back: `ProductsInFloat32` for bfloat16 on a CPU that cannot
    compute in it."""
    if precision != "bfloat16" or device.type != "cpu" or cpu_multiplies_half():
        return nullcontext()
    return ProductsInFloat32()


def cpu_multiplies_half() -> bool:
    """Whether oneDNN takes bfloat16 here; from AVX-512 on it does."""
    return torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()
