"""A simulated accelerator, `sim`: the CPU's values, a GPU's manners.

Importing this file registers the device. A tensor on it is a wrapper around a CPU tensor, so that
values, gradients and random numbers are the CPU's. As on a GPU, an operation on tensors of two
devices is refused (0-dim CPU tensors are welcome), and so is numpy. What would stop a GPU until
all its work is done is counted:

    with syncs() as counted:
        ...
    counted.total, counted.names

The registration (a device written in Python) is an experimental interface of torch: for tests only,
and for processes that are not forked afterwards.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "sim"
# Reading a number, and results whose shape depends on values: the host has to wait for both.
STOPS = {"_local_scalar_dense", "nonzero", "masked_select", "equal", "bincount", "_unique",
         "_unique2", "unique_dim", "unique_consecutive", "unique_dim_consecutive",
         "repeat_interleave", "masked_scatter_backward"}
BETWEEN_DEVICES = {"_to_copy", "copy_"}  # these take tensors of two devices
FACTORIES = ("empty.memory_format", "empty_strided", "arange", "arange.start",
             "arange.start_step", "eye", "eye.m", "randperm")  # torch makes all others of these
CAST = ("linear", "matmul", "mm", "addmm", "bmm", "baddbmm")  # what autocast does in bfloat16


class Module:
    """`torch.sim`: what torch asks of a device's module."""

    @staticmethod
    def is_initialized() -> bool:
        return True

    @staticmethod
    def is_available() -> bool:
        return True

    @staticmethod
    def device_count() -> int:
        return 1

    @staticmethod
    def current_device() -> int:
        return 0

    @staticmethod
    def _is_in_bad_fork() -> bool:
        return False

    @staticmethod
    def manual_seed_all(seed: int) -> None:
        """Random numbers are the CPU's."""

    @staticmethod
    def get_amp_supported_dtype() -> list[torch.dtype]:
        return [torch.bfloat16]


@dataclass
class Counted:
    """The operations that stopped the device, in order."""

    names: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return len(self.names)


COUNTERS: list[Counted] = []


@contextmanager
def syncs() -> Iterator[Counted]:
    """Counts inside the block what stops the device."""
    COUNTERS.append(counted := Counted())
    try:
        yield counted
    finally:
        COUNTERS.remove(counted)


class Sim(Tensor):
    """A tensor on the simulated device; `on_host` holds its values."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, on_host: Tensor) -> "Sim":
        made = Tensor._make_wrapper_subclass(
            cls, on_host.size(), strides=on_host.stride(), dtype=on_host.dtype,
            storage_offset=on_host.storage_offset(), device=torch.device(NAME, 0))
        made.on_host = on_host
        return made

    def __repr__(self) -> str:
        return f"Sim({self.on_host})"

    def tolist(self) -> list:
        return self.cpu().tolist()

    @classmethod
    def __torch_dispatch__(cls, function: Callable, types: object, args: tuple = (),
                           kwargs: dict | None = None) -> object:
        return run(function, args, dict(kwargs or {}))


def run(function: Callable, args: tuple, kwargs: dict) -> object:
    """The operation on the host's values; its new tensors are on the device again, unless it was
    asked to move them off."""
    name = function._schema.name.removeprefix("aten::")
    given = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
    wanted = torch.device(kwargs["device"]).type if kwargs.get("device") is not None else NAME
    if name == "copy_" and not isinstance(args[0], Sim):
        wanted = "cpu"
    if name not in BETWEEN_DEVICES:
        refuse_mixed(name, given)
    if stops(name, args, wanted):
        for counted in COUNTERS:
            counted.names.append(name)
    if kwargs.get("device") is not None:
        kwargs["device"] = "cpu"
    wrapper = {id(x.on_host): x for x in given if isinstance(x, Sim)}
    host = tree_map(lambda x: x.on_host if isinstance(x, Sim) else x, (args, kwargs))
    found = KERNELS.get(name, function)(*host[0], **host[1])
    if wanted == "cpu":
        return found

    def on_device(x: object) -> object:  # what was changed in place is itself
        if not isinstance(x, Tensor):
            return x
        if id(x) not in wrapper:
            return Sim(x)
        if x.shape != wrapper[id(x)].shape:
            raise NotImplementedError(f"{name} changes a shape in place, which {NAME} cannot do")
        return wrapper[id(x)]

    return tree_map(on_device, found)


def refuse_mixed(name: str, given: list[Tensor]) -> None:
    """Raise RuntimeError as a GPU does, unless all tensors are on one device."""
    if any(x.dim() and not isinstance(x, Sim) for x in given):
        raise RuntimeError(f"{name}: expected all tensors to be on the same device, but found "
                           f"{NAME} and cpu: " + ", ".join(f"{x.device} {tuple(x.shape)}"
                                                           for x in given))


def stops(name: str, args: tuple, wanted: str) -> bool:
    """Whether a GPU would have to finish before the host can go on."""
    if name in BETWEEN_DEVICES:
        return wanted == "cpu" and any(isinstance(x, Sim) for x in args[:2])
    if name in ("index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"):
        return any(x is not None and x.dtype in (torch.bool, torch.uint8) for x in args[1])
    return name in STOPS


def gru_cell(inputs: Tensor, hidden: Tensor, state: Tensor, input_bias: Tensor | None = None,
             hidden_bias: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """A step of a GRU, which torch asks of every device but the CPU, and what backward needs."""
    inputs = inputs if input_bias is None else inputs + input_bias
    hidden = hidden if hidden_bias is None else hidden + hidden_bias
    (r, z, n), (hr, hz, hn) = inputs.chunk(3, 1), hidden.chunk(3, 1)
    r, z = (r + hr).sigmoid(), (z + hz).sigmoid()
    n = (n + r * hn).tanh()
    return n + z * (state - n), torch.cat((r, z, n, state, hn), dim=1)


def gru_cell_backward(grad: Tensor, kept: Tensor, has_bias: bool) -> tuple[Tensor | None, ...]:
    """Gradients of both gates, of the state, and of both biases."""
    r, z, n, state, hn = kept.chunk(5, 1)
    of_n = grad * (1 - z) * (1 - n * n)
    of_z = grad * (state - n) * z * (1 - z)
    of_r = of_n * hn * r * (1 - r)
    inputs = torch.cat((of_r, of_z, of_n), dim=1)
    hidden = torch.cat((of_r, of_z, of_n * r), dim=1)
    biases = (inputs.sum(0), hidden.sum(0)) if has_bias else (None, None)
    return inputs, hidden, grad * z, *biases


KERNELS = {"_thnn_fused_gru_cell": gru_cell, "_thnn_fused_gru_cell_backward": gru_cell_backward}


def factory(name: str) -> Callable:
    """New tensors on the device, by the same operation on the host."""
    packet, _, overload = name.partition(".")
    operation = getattr(getattr(torch.ops.aten, packet), overload or "default")

    def make(*args: object, dtype: torch.dtype | None = None, **_: object) -> Tensor:
        return Sim(operation(*args, dtype=dtype, device="cpu"))
    return make


def copy_from(source: Tensor, target: Tensor, non_blocking: bool = False) -> Tensor:
    """How `torch.tensor([1], device=...)` fills its memory."""
    target.on_host.copy_(source)
    return target


def gru(inputs: Tensor, state: Tensor, weights: list[Tensor], has_biases: bool, layers: int,
        dropout: float, train: bool, bidirectional: bool,
        batch_first: bool) -> tuple[Tensor, Tensor]:
    """torch's loop over `gru_cell`; it would turn the result round in place for batch_first."""
    inputs = inputs.transpose(0, 1) if batch_first else inputs
    output, last = torch.ops.aten.gru.input.decompose(
        inputs, state, weights, has_biases, layers, dropout, train, bidirectional, False)
    return output.transpose(0, 1) if batch_first else output, last


def autocast(name: str) -> Callable:
    """The operation in bfloat16 where autocast is on."""
    key = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastPrivateUse1)

    def cast(*args: object) -> Tensor:
        with torch._C._ExcludeDispatchKeyGuard(key):
            return getattr(torch.ops.aten, name)(*tree_map(
                lambda x: x.to(torch.bfloat16) if isinstance(x, Tensor) and x.dtype
                == torch.float32 else x, args))
    return cast


_setup_privateuseone_for_python_backend(NAME, backend_module=Module())
LIBRARY = torch.library.Library("aten", "IMPL")  # kept: its kernels go with it
for operation in FACTORIES:
    LIBRARY.impl(operation, factory(operation), "PrivateUse1")
LIBRARY.impl("_copy_from", copy_from, "PrivateUse1")
LIBRARY.impl("gru.input", gru, "AutogradPrivateUse1")
FALLBACK = torch.library.Library("_", "IMPL")
FALLBACK.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
for operation in CAST:
    LIBRARY.impl(operation, autocast(operation), "AutocastPrivateUse1")
