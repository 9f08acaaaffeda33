"""Which instructions are in effect is found out, and limiting them takes."""

import json
import os
import platform
import subprocess
import sys

import pytest
import torch

from itr_study import arithmetic
from itr_study.arithmetic import (
    LEVELS,
    instruction_set,
    instructions,
    is_fast,
    libraries,
    onednn_level,
)
from itr_study.encoders import base
from itr_study.encoders.base import working_dtype
from tests.golden.simulate import SETTINGS

needs_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="no x86-64 to leave out of")
TAKEN = {"avx2": {"torch": "AVX2", "oneDNN": "AVX2", "MKL at most": "AVX2", "numpy": "X86_V3",
                  "OpenBLAS": "Haswell"},
         "avx512": {"torch": "AVX512", "oneDNN": "AVX512", "MKL at most": "AVX512",
                    "numpy": "X86_V4", "OpenBLAS": "SkylakeX"}}
LOOK = """
import json, torch
from itr_study.arithmetic import instruction_set, is_fast, libraries
with torch.backends.mkl.verbose(torch.backends.mkl.VERBOSE_ON):
    torch.ones(64, 64) @ torch.ones(64, 64)
print(json.dumps([instruction_set(), libraries(), is_fast(torch.float16), is_fast(torch.bfloat16),
                  torch.ops.mkldnn._is_mkldnn_fp16_supported()]))
"""


def needed_level(name: str) -> None:
    """Skip where this CPU lacks what is to be limited to."""
    levels = list(LEVELS)
    if onednn_level() not in levels or levels.index(onednn_level()) < levels.index(name):
        pytest.skip(f"this CPU has no {name}")


@needs_x86
@pytest.mark.parametrize("name", SETTINGS)
def test_limits_set_before_import_are_in_effect(name):
    """Every library is asked: torch, oneDNN, MKL (by what it says of itself), numpy, OpenBLAS."""
    needed_level(name)
    done = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True,
                          timeout=120, env=os.environ | SETTINGS[name])
    assert done.returncode == 0, done.stderr
    *said, last = done.stdout.splitlines()
    level, each, float16, bfloat16, supported = json.loads(last)
    assert (level, each, float16, bfloat16, supported) == (name, TAKEN[name], False, False, False)
    mkl = {"avx2": "Advanced Vector Extensions 2 (Intel(R) AVX2) enabled",
           "avx512": "Advanced Vector Extensions 512 (Intel(R) AVX-512) enabled"}[name]
    assert mkl in said[0] or "GenuineIntel" not in open("/proc/cpuinfo").read()


@pytest.mark.skipif("ITR_SIMULATED" not in os.environ, reason="run by tests.golden.simulate")
def test_this_very_process_is_limited():
    assert instruction_set() == os.environ["ITR_SIMULATED"]
    assert libraries() == TAKEN[os.environ["ITR_SIMULATED"]]
    assert working_dtype("float16", "cpu") == working_dtype("bfloat16", "cpu") == torch.float32


ALL = {feature: True for features, _ in LEVELS.values() for feature in features}


@pytest.mark.parametrize("lacking, limit, expected", [
    ((), "", "amx"), (("amx_tile",), "", "avx512_fp16"), (("amx_bf16",), "ALL", "avx512_fp16"),
    (("avx512_bf16",), "", "avx512"), (("avx512_vl",), "", "avx2"), (("avx2",), "", "below avx2"),
    ((), "avx512_core_vnni", "avx512"), ((), "AVX512_CORE_BF16", "avx512_bf16"),
    (("avx512_f",), "AVX512_CORE", "avx2"), ((), "AVX", "below avx2"), ((), "nonsense", "amx")])
def test_the_level_is_what_the_cpu_has_and_the_limit_allows(monkeypatch, lacking, limit, expected):
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(torch.cpu, "get_capabilities",
                        lambda: ALL | dict.fromkeys(lacking, False))
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", limit)
    assert onednn_level() == expected


@pytest.mark.parametrize("torch_level, onednn, told", [
    ("AVX512", "amx", "amx"), ("AVX512", "avx512_bf16", "avx512_bf16"), ("AVX2", "avx2", "avx2"),
    ("AVX2", "amx", "torch avx2, oneDNN amx"), ("AVX512", "avx2", "torch avx512, oneDNN avx2"),
    ("SVE256", "", "sve256")])
def test_one_word_where_torch_and_onednn_agree(monkeypatch, torch_level, onednn, told):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: torch_level)
    monkeypatch.setattr(arithmetic, "onednn_level", lambda: onednn)
    assert instruction_set() == told


@pytest.mark.parametrize("cpuinfo, limits, told", [
    ("processor\t: 0\nvendor_id\t: AuthenticAMD\nflags\t: a\n", {}, "amx, AuthenticAMD"),
    ("vendor_id : GenuineIntel", {"MKL_ENABLE_INSTRUCTIONS": "avx2"},
     "amx, GenuineIntel, MKL AVX2"),
    ("vendor_id : GenuineIntel", {"MKL_CBWR": "AVX2,STRICT"},
     "amx, GenuineIntel, MKL AVX2,STRICT"),
    ("CPU implementer : 0x41", {"MKL_CBWR": ""}, "amx"), (None, {}, "amx")])
def test_rows_state_the_vendor_and_limits_of_mkl(monkeypatch, tmp_path, cpuinfo, limits, told):
    """They decide bits too, and torch and oneDNN do not know them."""
    path, vendor = tmp_path / "cpuinfo", arithmetic.vendor
    if cpuinfo is not None:
        path.write_text(cpuinfo)
    for name in arithmetic.MKL_LIMITS:
        monkeypatch.delenv(name, raising=False)
    for name, limit in limits.items():
        monkeypatch.setenv(name, limit)
    monkeypatch.setattr(arithmetic, "instruction_set", lambda: "amx")
    monkeypatch.setattr(arithmetic, "vendor", lambda: vendor(path))
    assert instructions() == told
    assert set(limits.values()) - {""} <= set(libraries().values())


def test_bfloat16_that_is_emulated_is_not_fast(monkeypatch):
    """oneDNN takes it from AVX-512 on, but only later processors compute in it."""
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: True)
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: True)
    for level, fast in (("avx512", False), ("avx512_bf16", True), ("amx", True)):
        monkeypatch.setattr(arithmetic, "onednn_level", lambda level=level: level)
        assert is_fast(torch.bfloat16) is fast
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    assert not is_fast(torch.bfloat16)


def test_encoders_take_float32_where_half_precision_is_not_fast(monkeypatch):
    monkeypatch.setattr(base, "is_fast", lambda dtype: False)
    assert working_dtype("float16", "cpu") == working_dtype("bfloat16", "cpu") == torch.float32
    assert working_dtype("float16", "cuda") == torch.float16
    monkeypatch.setattr(base, "is_fast", lambda dtype: True)
    assert working_dtype("bfloat16", "cpu") == torch.bfloat16
    assert working_dtype("float32", "cpu") == torch.float32
