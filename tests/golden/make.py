"""Write the golden numbers of parts that are new or have a new version.

    python -m tests.golden.make

Numbers that differ under the version they had are not written: raise `version` on the part first,
so that committed rows made with it become stale.
"""

import json
import sys
from pathlib import Path

import pytest

from tests.golden.cases import parts, tolerance

FILE = Path(__file__).parent / "parts.json"


def fault(name: str, version: int, numbers: list[float], golden: dict) -> str:
    """What is wrong with a part's golden numbers, and the remedy; empty if nothing is."""
    again = "run: python -m tests.golden.make"
    if name not in golden:
        return f"{name} has no golden numbers; {again}"
    agreed = golden[name]
    same = (len(agreed["numbers"]) == len(numbers) and
            numbers == pytest.approx(agreed["numbers"], rel=tolerance(name), abs=1e-7))
    if version == agreed["version"] and not same:
        return (f"{name} gives other numbers under the same version {version}: {numbers}, agreed "
                f"{agreed['numbers']}. Rows made with it would lie. Undo the change, or raise its "
                f"`version` and {again}")
    if version != agreed["version"]:
        return f"{name} has version {version}, its golden numbers {agreed['version']}; {again}"
    return ""


def main() -> int:
    """Write what may be written; 1 where a version must be raised first."""
    golden = json.loads(FILE.read_text()) if FILE.exists() else {}
    found, bad = {}, 0
    for name, (version, compute) in sorted(parts().items()):
        numbers = [float(f"{value:.10g}") for value in compute()]
        wrong = fault(name, version, numbers, golden)
        if name in golden and golden[name]["version"] == version:
            found[name] = golden[name]
            if wrong:
                print(wrong, file=sys.stderr)
                bad += 1
        else:
            found[name] = {"version": version, "numbers": numbers}
            print(f"{name}: written, version {version}")
    lines = [f" {json.dumps(name)}: {json.dumps(value)}" for name, value in found.items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
