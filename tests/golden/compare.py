"""Whether numbers are those agreed on, whatever the CPU, and what to say where they are not."""

import numpy as np

from itr_study.arithmetic import instruction_set
from tests.golden.cases import Part

# Relative tolerance of each kind, or of one part under its whole name, and the largest difference
# measured between SSE4.2, AVX2, AVX-512 and AMX, of Intel's libraries and with the paths they take
# on AMD.
TOLERANCES = {
    "loss": 1e-9,  # 1e-15, in float64; the file holds ten digits
    "labels": 1e-5,  # 6e-8
    "model": 5e-4,  # 3e-5
    "model:sgr": 2e-3,  # 6e-4, in one step of five, with MKL's own kernels on one CPU with AMX
    "loop": 1e-5,  # 1e-7
    "image": 1e-3,  # 3e-6
    "text": 1e-3,  # 4e-5
}
DEFAULT = 1e-6  # of tokens and evaluation: 0
# Kinds that are vectors: a component has the tolerance of an average one, however small it is,
# and all together are held by cosine and norm.
VECTORS = ("image", "text")
COSINE = 1e-8  # below 1; measured 1e-10
NORM = 1e-4  # relative; measured 1e-6
TWO_QUERIES = 4.0  # RSUM of the loop's 18 images and 54 texts; a near tie flips one under AVX2
# What is off by no more than so many tolerances looks like rounding. Of vectors fewer: cosine and
# norm have a hundred times what was measured, and float16 in float32's place must not pass.
ROUNDING, VECTOR_ROUNDING = 30, 3


def fault(name: str, part: Part, numbers: list[float], golden: dict) -> str:
    """What is wrong with a part's golden numbers, and the remedy; empty if nothing is."""
    again = "run: python -m tests.golden.make"
    if name not in golden:
        return f"{name} has no golden numbers; {again}"
    agreed = golden[name]
    if part.version != agreed["version"]:
        return f"{name} has version {part.version}, its golden numbers {agreed['version']}; {again}"
    if part.edition != agreed.get("edition", 1):
        return (f"{name}: the case has edition {part.edition}, its golden numbers "
                f"{agreed.get('edition', 1)}; {again}, in a commit that leaves the part alone")
    vector = name.partition(":")[0] in VECTORS
    off, cosine = excess(name, numbers, agreed["numbers"])
    if off <= 1:
        return ""
    told = (f"{name}, version {part.version}, is off by {off:.3g} times its tolerance "
            f"{f'(cosine {cosine:.7f}) ' if vector else ''}with the instructions "
            f"{instruction_set()}: {numbers}, agreed {agreed['numbers']}.")
    if off <= (VECTOR_ROUNDING if vector else ROUNDING):
        return (f"{told} So little looks like the rounding of another CPU. If the part is "
                "untouched, report this line and what `itr-study doctor` says; tolerances are in "
                "tests/golden/compare.py. If you changed the part, raise its `version` and "
                f"{again}")
    return (f"{told} These are other numbers under the same version: rows made with it would lie. "
            f"Undo the change, or raise the part's `version` and {again}")


def excess(name: str, numbers: list[float], agreed: list[float]) -> tuple[float, float]:
    """The largest difference in tolerances, infinite for other shapes or NaN; the cosine."""
    found, wanted = np.asarray(numbers), np.asarray(agreed)
    if found.shape != wanted.shape or not np.isfinite(found).all():
        return np.inf, 0.0
    kind, size, wholes = name.partition(":")[0], np.abs(wanted), []
    lengths = np.linalg.norm(found), np.linalg.norm(wanted)
    cosine = found @ wanted / np.prod(lengths)
    if kind in VECTORS:
        size = np.maximum(size, np.sqrt(np.mean(wanted**2)))
        wholes = [(1 - cosine) / COSINE, abs(lengths[0] / lengths[1] - 1) / NORM]
    allowed = TOLERANCES.get(name, TOLERANCES.get(kind, DEFAULT)) * size + 1e-10
    if kind == "loop":
        allowed[2::3] = TWO_QUERIES  # dev RSUM goes in steps
    return float(max([*np.abs(found - wanted) / allowed, *wholes])), float(cosine)
