"""The golden numbers, and what else depends on the CPU, once more with fewer instructions.

    python -m tests.golden.simulate avx2        or avx512, which has no AMX, bfloat16 or float16

The libraries are told, before they are imported, to leave out instructions that this CPU has; a
test then asserts that each one did. Fewer can be simulated, more cannot: AMX is tested on CPUs
that have it only.
"""

import os
import subprocess
import sys

SETTINGS = {
    "avx2": {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2",
             "MKL_ENABLE_INSTRUCTIONS": "AVX2", "OPENBLAS_CORETYPE": "Haswell",
             "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR"},
    "avx512": {"ATEN_CPU_CAPABILITY": "avx512", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE",
               "MKL_ENABLE_INSTRUCTIONS": "AVX512", "OPENBLAS_CORETYPE": "SkylakeX",
               "NPY_DISABLE_CPU_FEATURES": "AVX512_ICL AVX512_SPR"},
}
TESTS = ("tests/test_golden.py", "tests/test_arithmetic.py", "tests/encoders/test_efficientnet.py")


def main(name: str) -> int:
    """Run the tests with the instructions of `name`; the exit status of pytest."""
    environment = os.environ | SETTINGS[name] | {"ITR_SIMULATED": name, "OMP_NUM_THREADS": "1"}
    print(f"Golden numbers with the instructions of {name}", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", *TESTS]
    return subprocess.run(command, env=environment).returncode


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in SETTINGS:
        sys.exit(f"expected one of {', '.join(SETTINGS)}, got {sys.argv[1:]}")
    sys.exit(main(sys.argv[1]))
