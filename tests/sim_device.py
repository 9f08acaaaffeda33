"""A simulated accelerator, `sim`, of two cards: the CPU's values, CUDA's manners.

Importing this file registers the device. A tensor on it is a wrapper around a CPU tensor, so that
values, gradients and random numbers are the CPU's; each card draws its own. What CUDA refuses is
refused, where the CPU's kernels would not: tensors of two devices in one operation, with CUDA's
exceptions; a generator or a random state of another device; the gradient of a recurrent net that
was not told to train; products of whole numbers; pinned memory of what is on a card; numpy.
Recurrent nets read in float16 where autocast is on, as by cuDNN. What would stop a GPU until all
its work is done is counted, and refused where that is more than `most` times:

    with syncs(most=1) as counted:
        ...
    counted.total, counted.names, counted.copied

The registration (a device written in Python) is an experimental interface of torch: for tests only,
and for processes that are not forked afterwards.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "sim"
CARDS = 2
# Reading a number, and results whose shape depends on values: the host has to wait for both.
STOPS = {"_local_scalar_dense", "nonzero", "masked_select", "equal", "bincount", "_unique",
         "_unique2", "unique_dim", "unique_consecutive", "unique_dim_consecutive",
         "repeat_interleave", "masked_scatter_backward"}
BETWEEN_DEVICES = {"_to_copy", "copy_"}  # these take tensors of two devices
INDEXING = {"index", "_unsafe_index", "index_put", "_index_put_impl"}  # with indices of the host
# These take a single number of the host, a 0-dim tensor; without the underscore of those in place.
WITH_NUMBERS = INDEXING | {
    "add", "sub", "rsub", "mul", "div", "floor_divide", "remainder", "fmod", "pow", "atan2",
    "maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or",
    "bitwise_and", "bitwise_or", "where", "masked_fill", "fill", "index_fill", "clamp", "clamp_min",
    "clamp_max", "xlogy"}
PRODUCTS = {"mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot"}  # of floating point, on CUDA
FACTORIES = ("empty.memory_format", "empty_strided", "arange", "arange.start",
             "arange.start_step", "eye", "eye.m", "randperm")  # torch makes all others of these
# What autocast does in bfloat16, and what in float32 (not all of CUDA's lists, but what is used).
CAST = ("linear", "matmul", "mm", "addmm", "bmm", "baddbmm")
IN_FULL = ("softmax.int", "log_softmax.int", "layer_norm", "logsumexp", "cumsum", "sum",
           "sum.dim_IntList", "norm.ScalarOpt_dim", "exp", "expm1", "log", "rsqrt", "reciprocal",
           "pow.Tensor_Scalar")


class Module:
    """`torch.sim`: what torch asks of a device's module."""

    def __init__(self) -> None:
        self.states = [torch.get_rng_state()] * CARDS  # of random numbers, as the CPU has them
        self.free = 1 << 30  # bytes

    def mem_get_info(self, device: torch.device | str = NAME) -> tuple[int, int]:
        return self.free, 1 << 30

    def is_initialized(self) -> bool:
        return True

    def is_available(self) -> bool:
        return True

    def device_count(self) -> int:
        return CARDS

    def current_device(self) -> int:
        return 0

    def _is_in_bad_fork(self) -> bool:
        return False

    def manual_seed_all(self, seed: int) -> None:
        self.states = [torch.Generator().manual_seed(seed).get_state()] * CARDS

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16]

    def get_rng_state(self, device: torch.device | str = NAME) -> Tensor:
        """Of one card; longer than the CPU's, so that one is never taken for the other."""
        return torch.cat((self.states[card_of(device)], torch.tensor([7], dtype=torch.uint8)))

    def set_rng_state(self, state: Tensor, device: torch.device | str = NAME) -> None:
        if state.device.type != "cpu" or state.dtype != torch.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if state.shape != self.get_rng_state().shape:
            raise RuntimeError("RNG state is wrong size")
        self.states[card_of(device)] = state[:-1].clone()

    @contextmanager
    def drawing(self, card: int) -> Iterator[None]:
        """Inside, the CPU draws the numbers of a card."""
        before = torch.get_rng_state()
        torch.set_rng_state(self.states[card])
        try:
            yield
        finally:
            self.states[card] = torch.get_rng_state()
            torch.set_rng_state(before)


def card_of(device: torch.device | str) -> int:
    """The number of a card; the first where none is said."""
    return torch.device(device).index or 0


@dataclass
class Counted:
    """The operations that stopped the device, in order, and how many may; and kind and shape of
    what was copied to it from the host."""

    most: float = math.inf
    names: list[str] = field(default_factory=list)
    copied: list[tuple[torch.dtype, torch.Size]] = field(default_factory=list)

    @property
    def total(self) -> int:
        return len(self.names)


COUNTERS: list[Counted] = []


@contextmanager
def syncs(most: float = math.inf) -> Iterator[Counted]:
    """Counts inside the block what stops the device; RuntimeError where that is once too often."""
    COUNTERS.append(counted := Counted(most))
    try:
        yield counted
    finally:
        COUNTERS.remove(counted)


class Sim(Tensor):
    """A tensor on the simulated device; `on_host` holds its values."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, on_host: Tensor, card: int) -> "Sim":
        made = Tensor._make_wrapper_subclass(
            cls, on_host.size(), strides=on_host.stride(), dtype=on_host.dtype,
            storage_offset=on_host.storage_offset(), device=torch.device(NAME, card))
        made.on_host = on_host
        return made

    def __repr__(self) -> str:
        return f"Sim({self.on_host}, card={self.device.index})"

    def pin_memory(self, device: object = None) -> Tensor:
        raise RuntimeError(f"cannot pin a tensor of {self.device}: only dense CPU tensors can be "
                           "pinned")

    def tolist(self) -> list:
        return self.cpu().tolist()

    @classmethod
    def __torch_dispatch__(cls, function: Callable, types: object, args: tuple = (),
                           kwargs: dict | None = None) -> object:
        return run(function, args, dict(kwargs or {}))


def run(function: Callable, args: tuple, kwargs: dict) -> object:
    """The operation on the host's values; its new tensors are on the card again, unless it was
    asked to move them off."""
    name = function._schema.name.removeprefix("aten::")
    leaves = tree_leaves((args, kwargs))
    given = [x for x in leaves if isinstance(x, Tensor)]
    wanted = where(name, args, kwargs, given)
    if name not in BETWEEN_DEVICES:
        refuse_mixed(name, given, args)
    refuse_generators(name, leaves)
    if name.rstrip("_") in PRODUCTS and not all(x.is_floating_point() for x in given):
        raise RuntimeError(f'"{name}_cuda" not implemented for {given[-1].dtype}')
    if stops(name, args, wanted.type):
        count(name)
    if name == "copy_" and isinstance(args[0], Sim) and not isinstance(args[1], Sim):
        for counted in COUNTERS:
            counted.copied.append((args[1].dtype, args[1].shape))
    if kwargs.get("device") is not None:
        kwargs["device"] = "cpu"
    wrapper = {id(x.on_host): x for x in given if isinstance(x, Sim)}
    host = tree_map(lambda x: x.on_host if isinstance(x, Sim) else x, (args, kwargs))
    draws = wanted.type == NAME and torch.Tag.nondeterministic_seeded in function.tags
    with MODULE.drawing(wanted.index) if draws else nullcontext():
        found = KERNELS.get(name, function)(*host[0], **host[1])
    if wanted.type == "cpu":
        return found

    def on_device(x: object) -> object:  # what was changed in place is itself
        if not isinstance(x, Tensor):
            return x
        if id(x) not in wrapper:
            return Sim(x, wanted.index)
        if x.shape != wrapper[id(x)].shape:
            raise NotImplementedError(f"{name} changes a shape in place, which {NAME} cannot do")
        return wrapper[id(x)]

    return tree_map(on_device, found)


def where(name: str, args: tuple, kwargs: dict, given: list[Tensor]) -> torch.device:
    """The device of what an operation makes: the one asked for, else that of what it is given."""
    if kwargs.get("device") is not None:
        asked = torch.device(kwargs["device"])
        return torch.device("cpu") if asked.type == "cpu" else torch.device(NAME, card_of(asked))
    if name == "copy_":
        return args[0].device
    return next(x.device for x in given if isinstance(x, Sim))


def count(name: str) -> None:
    """Count what stops the device; RuntimeError where it may not be stopped again."""
    for counted in COUNTERS:
        counted.names.append(name)
        if counted.total > counted.most:
            raise RuntimeError(f"called a synchronizing operation: {name}, after "
                               f"{counted.names[:-1] or 'none'}")


def refuse_mixed(name: str, given: list[Tensor], args: tuple) -> None:
    """Raise RuntimeError as CUDA does, unless all tensors are on one card, or are what its kernels
    take from the host."""
    base = name.rstrip("_")
    if base in INDEXING and isinstance(args[0], Sim):
        own = {id(x) for x in args[1] if x is not None and x.device.type == "cpu"}
        given = [x for x in given if id(x) not in own]
    if base in WITH_NUMBERS:
        given = [x for x in given if isinstance(x, Sim) or x.dim()]
    devices = {x.device for x in given}
    if len(devices) > 1:
        raise RuntimeError(f"{name}: expected all tensors to be on the same device, but found "
                           + " and ".join(sorted(map(str, devices))) + ": "
                           + ", ".join(f"{x.device} {tuple(x.shape)}" for x in given))


def refuse_generators(name: str, leaves: list) -> None:
    """Raise RuntimeError for a generator: all that there are belong to the CPU."""
    for given in leaves:
        if isinstance(given, torch.Generator):
            raise RuntimeError(f"{name}: expected a '{NAME}' device type for generator but found "
                               f"'{given.device}'")


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

    def make(*args: object, dtype: torch.dtype | None = None,
             device: torch.device | str = NAME, pin_memory: bool | None = None,
             **_: object) -> Tensor:
        if pin_memory:
            raise RuntimeError("Only dense CPU tensors can be pinned")
        with MODULE.drawing(card_of(device)) if packet == "randperm" else nullcontext():
            return Sim(operation(*args, dtype=dtype, device="cpu"), card_of(device))
    return make


def copy_from(source: Tensor, target: Tensor, non_blocking: bool = False) -> Tensor:
    """How `torch.tensor([1], device=...)` fills its memory."""
    target.on_host.copy_(source)
    return target


def gru(inputs: Tensor, state: Tensor, weights: list[Tensor], has_biases: bool, layers: int,
        dropout: float, train: bool, bidirectional: bool,
        batch_first: bool) -> tuple[Tensor, Tensor]:
    """torch's loop over `gru_cell`; it would turn the result round in place for batch_first. As of
    cuDNN, what backward needs is not kept of a call that does not train."""
    inputs = inputs.transpose(0, 1) if batch_first else inputs
    output, last = torch.ops.aten.gru.input.decompose(
        inputs, state, weights, has_biases, layers, dropout, train, bidirectional, False)
    if not train and output.requires_grad:
        output, last = NotKept.apply(output, last)
    return output.transpose(0, 1) if batch_first else output, last


class NotKept(torch.autograd.Function):
    """States as they are, without what their gradient needs."""

    @staticmethod
    def forward(ctx: object, *states: Tensor) -> tuple[Tensor, ...]:
        return tuple(one.clone() for one in states)

    @staticmethod
    def backward(ctx: object, *grads: Tensor) -> None:
        raise RuntimeError("cudnn RNN backward can only be called in training mode")


def autocast(name: str, to: torch.dtype) -> Callable:
    """The operation in another precision where autocast is on."""
    key = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastPrivateUse1)
    packet, _, overload = name.partition(".")
    operation = getattr(getattr(torch.ops.aten, packet), overload or "default")

    def cast(*args: object, **named: object) -> object:
        with torch._C._ExcludeDispatchKeyGuard(key):
            return operation(*tree_map(
                lambda x: x.to(to) if isinstance(x, Tensor) and x.is_floating_point()
                and x.dtype != torch.float64 else x, args), **named)
    return cast


MODULE = Module()
# Backward in the thread that asks for it: torch starts threads for one card of such a device only.
torch.autograd.set_multithreading_enabled(False)
_setup_privateuseone_for_python_backend(NAME, backend_module=MODULE)
LIBRARY = torch.library.Library("aten", "IMPL")  # kept: its kernels go with it
for operation in FACTORIES:
    LIBRARY.impl(operation, factory(operation), "PrivateUse1")
LIBRARY.impl("_copy_from", copy_from, "PrivateUse1")
LIBRARY.impl("gru.input", gru, "AutogradPrivateUse1")
FALLBACK = torch.library.Library("_", "IMPL")
FALLBACK.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
for operations, precision in ((CAST, torch.bfloat16), (IN_FULL, torch.float32),
                              (("gru.input",), torch.float16)):
    for operation in operations:
        LIBRARY.impl(operation, autocast(operation, precision), "AutocastPrivateUse1")
