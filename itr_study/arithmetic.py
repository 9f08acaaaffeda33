"""Which instructions and which arithmetic numbers come from: what decides their last bits.

Two machines repeat a run to the last bit only where both agree, so every row states both.
"""

import os
import platform
from functools import cache
from pathlib import Path

import numpy as np
import torch

# How training computes: the kernel of the optimiser ("for-loop" or "fused"), and sequences
# ("packed" or "padded"). Others round otherwise and mean the same: rows state them, ids do not.
OPTIMIZER, SEQUENCES = "fused", "padded"

# Each level needs the features of the ones before it; the last are oneDNN's names of the level.
LEVELS = {
    "avx2": (("avx2",), ("AVX2", "AVX2_VNNI", "AVX2_VNNI_2")),
    "avx512": (("avx512_f", "avx512_bw", "avx512_vl", "avx512_dq"),
               ("AVX512_CORE", "AVX512_CORE_VNNI")),
    "avx512_bf16": (("avx512_bf16",), ("AVX512_CORE_BF16",)),
    "avx512_fp16": (("avx512_fp16",), ("AVX512_CORE_FP16", "AVX10_1_512")),
    "amx": (("amx_tile", "amx_bf16"), ()),  # what limits it to less is named above
}
# Of MKL: the most that it may use, and reproducible sums, which name instructions too.
MKL_LIMITS = ("MKL_ENABLE_INSTRUCTIONS", "MKL_CBWR")
EMULATED = ("avx512",)  # oneDNN takes bfloat16 there, but computes it in float32


def instruction_set() -> str:
    """The instructions in effect for torch and oneDNN, both where limits set by hand part them.

    "amx", "avx512_fp16", "avx512_bf16", "avx512" or "avx2".
    """
    torch_level, onednn = torch.backends.cpu.get_cpu_capability().lower(), onednn_level()
    if not onednn:
        return torch_level
    agree = onednn.startswith(torch_level) or (onednn, torch_level) == ("amx", "avx512")
    return onednn if agree else f"torch {torch_level}, oneDNN {onednn}"


def instructions() -> str:
    """State the instruction set, the processor's vendor and limits of MKL for a row.

    MKL takes other paths on other vendors. Such as "amx, GenuineIntel, MKL AVX2".
    """
    limits = [f"MKL {os.environ[name].upper()}" for name in MKL_LIMITS if os.environ.get(name)]
    return ", ".join([instruction_set(), *filter(None, [vendor()]), *limits])


@cache
def vendor(path: Path = Path("/proc/cpuinfo")) -> str:
    """Of the processor, "GenuineIntel" or "AuthenticAMD"; "" where the system does not say."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    told = (line.partition(":") for line in lines)
    return next((value.strip() for name, _, value in told if name.strip() == "vendor_id"), "")


def onednn_level() -> str:
    """The highest of LEVELS that the processor has and ONEDNN_MAX_CPU_ISA allows.

    oneDNN reads that variable once, when first used. "" on another architecture than x86-64.
    """
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return ""
    has = torch.cpu.get_capabilities()
    limit = os.environ.get("ONEDNN_MAX_CPU_ISA") or os.environ.get("DNNL_MAX_CPU_ISA") or "ALL"
    level = "below avx2"
    if limit.upper() in ("SSE41", "AVX"):
        return level
    for name, (features, limits) in LEVELS.items():
        if not all(has.get(feature) for feature in features):
            break
        level = name
        if limit.upper() in limits:
            break
    return level


def is_fast(dtype: torch.dtype) -> bool:
    """Whether the CPU itself computes in a half precision, rather than in float32 around it."""
    if not torch.backends.mkldnn.is_available():
        return False
    supported = {torch.float16: torch.ops.mkldnn._is_mkldnn_fp16_supported,
                 torch.bfloat16: torch.ops.mkldnn._is_mkldnn_bf16_supported}
    emulated = dtype == torch.bfloat16 and onednn_level() in EMULATED
    return supported[dtype]() and not emulated


def arithmetic(features: str, precision: str, matmul: str = "highest") -> dict[str, str]:
    """What a run was computed in, for its row.

    Args:    features: dtype in which frozen image networks computed, "" where there are none;
             precision: of the encoders in training; matmul: how products of float32 were made, left
             out where it is "highest", as in every row that does not say.
    """
    rounded = {} if matmul == "highest" else {"matmul": matmul}
    return {"features": features, "optimizer": OPTIMIZER, "precision": precision,
            "sequences": SEQUENCES} | rounded


def libraries() -> dict[str, str]:
    """The instructions in effect, library by library; MKL tells no more than its limit."""
    from threadpoolctl import threadpool_info

    simd = np.show_config(mode="dicts")["SIMD Extensions"]
    found = {"torch": torch.backends.cpu.get_cpu_capability(), "oneDNN": onednn_level().upper(),
             "MKL at most": os.environ.get("MKL_ENABLE_INSTRUCTIONS", ""),
             "MKL reproducing": os.environ.get("MKL_CBWR", ""),
             "numpy": (simd.get("found") or simd["baseline"])[-1]}
    blas = [info for info in threadpool_info() if info["internal_api"] == "openblas"]
    found["OpenBLAS"] = blas[0]["architecture"] if blas else ""
    return {name: told for name, told in found.items() if told}
