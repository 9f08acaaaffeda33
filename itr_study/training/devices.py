"""Devices by name, one card a run, and how products are made there.

What a card does was tried with fakes of torch.cuda and a simulated device only (`tests`).
"""

import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from filelock import FileLock, Timeout
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from itr_study.checks import not_among
from itr_study.files.paths import home
from itr_study.training.settings import Matmul

NAMES = ("auto", "cpu", "cuda")  # in messages; others that torch knows may be asked for, too
# Wheels of the torch in requirements.lock: cu130 has kernels for compute capability 7.5 and up,
# cu126 for 5.0 to 9.0 (PyTorch's RELEASE.md).
CUDA_INDEX = "https://download.pytorch.org/whl/cu130"
OLD_CARDS_INDEX = "https://download.pytorch.org/whl/cu126"
# What a run may need of a card: the presets at their papers' sizes took up to 4 GB on a CPU
# (evidence/common/presets.csv), and a process on a card takes some for itself.
RUN_BYTES = 6 << 30
LOOK = 1.0  # seconds between looks for a card that is free
# What multiplies and adds up, forward and backward.
_aten = torch.ops.aten
PRODUCTS = {
    _aten.mm.default, _aten.addmm.default, _aten.bmm.default, _aten.baddbmm.default,
    _aten.addbmm.default, _aten.mv.default, _aten.addmv.default, _aten.dot.default,
    _aten.convolution.default, _aten.convolution_backward.default}


def choose_device(name: str = "auto") -> torch.device:
    """Return the device of that name; ValueError unless torch knows it, it is here and works.

    "auto" is the first CUDA card that this build of torch has kernels for, "cuda" too, and "auto"
    without one is the CPU, with a RuntimeWarning saying why if there is a card.
    """
    cards = cards_of(name)
    return torch.device("cuda", cards[0]) if cards else device_named(
        "cpu" if name == "auto" else name)


def device_named(name: str) -> torch.device:
    """Return the device as torch has it, which must be here; raise as `choose_device`."""
    try:
        device = torch.device(name if isinstance(name, str) else "")
        kind = torch.get_device_module(device)
    except RuntimeError as error:
        raise ValueError(not_among("device", name, NAMES)) from error
    count = kind.device_count() if kind.is_available() else 0
    if device.type == "cuda" and 0 < count <= (device.index or 0):
        there = ", ".join(f"cuda:{card}" for card in range(count))
        raise ValueError(f"device {name!r} is not here: there {'is' if count == 1 else 'are'} "
                         f"{there}; take one of them, auto or cpu")
    if not kind.is_available() or (device.index or 0) >= max(1, count):
        raise ValueError(f"device {name!r} is not here, or torch is not built for it; take auto "
                         "or cpu, and see why with: itr-study doctor")
    return device


def cards_of(name: str) -> list[int]:
    """Return numbers of the CUDA cards that a name leaves open; raise as `choose_device`.

    All that work of "auto" and "cuda", one of "cuda:1", none of another device.
    """
    asked = device_named(name) if name != "auto" else None
    if (asked and asked.type != "cuda") or not torch.cuda.is_available():
        return []
    given = asked.index if asked else None
    cards = list(range(torch.cuda.device_count())) if given is None else [given]
    faults = {card: missing_kernels(card) for card in cards}
    working = [card for card in cards if not faults[card]]
    if not working and asked:
        raise ValueError(f"device {name!r} cannot be used: {'; '.join(faults.values())}")
    if not working:
        warnings.warn(f"the CPU is taken: {'; '.join(faults.values())}", RuntimeWarning,
                      stacklevel=3)
    return working


def missing_kernels(card: int) -> str:
    """Return why this build of torch cannot compute on a card, with the remedy; "" if it can."""
    has, built = torch.cuda.get_device_capability(card), torch.cuda.get_arch_list()
    if not built or any(runs_on(arch, has) for arch in built):
        return ""
    index = OLD_CARDS_INDEX if has < (7, 5) else CUDA_INDEX
    return (f"torch {torch.__version__} has no kernels for cuda:{card} "
            f"({torch.cuda.get_device_name(card)}, compute capability {has[0]}.{has[1]}), only for "
            f"{', '.join(built)}; run: make clean-venv; make TORCH_INDEX={index} venv")


def runs_on(arch: str, capability: tuple[int, int]) -> bool:
    """Whether code built for an architecture of `torch.cuda.get_arch_list` runs on a card.

    "sm_86" on those of the same generation from 8.6 on, "sm_90a" on 9.0 alone, "compute_120" on all
    from 12.0 on. Names of AMD's are not compared.

    Source: CUDA C++ Programming Guide, binary and PTX compatibility.

    Example:
        >>> runs_on("sm_80", (8, 6)), runs_on("sm_80", (7, 5)), runs_on("compute_80", (9, 0))
        (True, False, True)
    """
    kind, _, number = arch.partition("_")
    if kind not in ("sm", "compute"):
        return True
    digits = number.rstrip("af")
    built = int(digits[:-1]), int(digits[-1])
    if number.endswith("a"):
        return built == capability
    return built <= capability and (kind == "compute" or built[0] == capability[0])


@contextmanager
def claimed(name: str = "auto") -> Iterator[torch.device]:
    """Yield the device of that name for one run, which holds its place there until the end.

    Of several cards "auto" and "cuda" take one that no run is on. A card has one place, and one
    more for each further RUN_BYTES of its memory, taken only while so much is free; without a free
    place this waits. A place is a locked file in the home, free again when its process ends,
    however that ends: all processes with the same home keep out of each other's way. Raises as
    `choose_device`.
    """
    cards = cards_of(name)
    if not cards:
        yield choose_device(name)
        return
    card, lock = _take_place(cards)
    try:
        yield torch.device("cuda", card)
    finally:
        lock.release()
        torch.cuda.empty_cache()  # others ask how much is free


def _take_place(cards: Sequence[int]) -> tuple[int, FileLock]:
    """A card and the lock of a place on it, acquired; waits for one, saying so once."""
    (home() / "locks").mkdir(parents=True, exist_ok=True)
    card_facts = {card: torch.cuda.get_device_properties(card) for card in cards}
    places = sorted((place, card) for card, facts in card_facts.items()
                    for place in range(max(1, facts.total_memory // RUN_BYTES)))
    waits = False
    while True:
        for place, card in places:
            lock = FileLock(home() / "locks" / f"card-{card_facts[card].uuid}-{place}.lock")
            try:
                lock.acquire(timeout=0)
            except Timeout:
                continue
            if place == 0 or torch.cuda.mem_get_info(card)[0] >= RUN_BYTES:
                return card, lock
            lock.release()
        if not waits:
            there = ", ".join(f"cuda:{card}" for card in cards)
            print(f"Other runs are on {there}; waiting for a place", file=sys.stderr, flush=True)
        waits = True
        time.sleep(LOOK)


def matmul_on(device: torch.device, matmul: Matmul = "auto") -> str:
    """Return how products of float32 are made there, as torch names it.

    "auto" is "high" on a CUDA card, which multiplies in TF32, and "highest" elsewhere.
    """
    if matmul != "auto":
        return matmul
    return "high" if device.type == "cuda" else "highest"


@contextmanager
def float32_products(device: torch.device, matmul: Matmul = "auto") -> Iterator[None]:
    """Make products of float32 as `matmul_on` names, by cuDNN too; reset torch's own after."""
    wanted, before = matmul_on(device, matmul), torch.get_float32_matmul_precision()
    cudnn = torch.backends.cudnn.allow_tf32
    try:
        if wanted != before:
            torch.set_float32_matmul_precision(wanted)
        if device.type == "cuda":
            torch.backends.cudnn.allow_tf32 = wanted != "highest"
        yield
    finally:
        if wanted != before:
            torch.set_float32_matmul_precision(before)
        torch.backends.cudnn.allow_tf32 = cudnn


class ProductsInFloat32(TorchDispatchMode):
    """bfloat16 on a CPU without instructions for it: PRODUCTS in float32, rounded at the end.

    torch falls back to plain loops there: on AVX2 a step of VSE∞ took 3.7 s in bfloat16 and 0.5 in
    float32. CPUs that have them do the same sum: inputs of 8 bits, added up in float32, rounded
    once. Left to torch: products of other tensors, attention in one kernel
    (scaled_dot_product_attention), and nn.LSTM, which oneDNN refuses in bfloat16 there.
    torch.compile leaves alone what runs within such a mode: a module that must be one graph
    (fullgraph=True) needs precision="float32" there.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        """Call the function, in float32 if it is a product of bfloat16 alone."""
        dtypes = {given.dtype for given in args if isinstance(given, torch.Tensor)}
        if func not in PRODUCTS or dtypes != {torch.bfloat16}:
            return func(*args, **(kwargs or {}))
        found = func(*tree_map_only(torch.Tensor, torch.Tensor.float, args), **(kwargs or {}))
        return tree_map_only(torch.Tensor, torch.Tensor.bfloat16, found)


def half_products(device: torch.device, precision: str) -> AbstractContextManager[object]:
    """Return `ProductsInFloat32` for bfloat16 on a CPU that cannot compute in it."""
    if precision != "bfloat16" or device.type != "cpu" or cpu_multiplies_half():
        return nullcontext()
    return ProductsInFloat32()


def cpu_multiplies_half() -> bool:
    """Whether oneDNN takes bfloat16 here; from AVX-512 on it does."""
    return torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()
