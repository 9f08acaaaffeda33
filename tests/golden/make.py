"""Write the golden numbers of parts that are new, have a new version, or a new edition of a case.

    python -m tests.golden.make

Numbers that differ under the version they had are not written: raise `version` on the part first,
so that committed rows made with it become stale.
"""

import json
import sys
from pathlib import Path

from tests.golden.cases import parts
from tests.golden.compare import fault

FILE = Path(__file__).parent / "parts.json"


def main() -> int:
    """Write what may be written; 1 where a version must be raised first."""
    golden = json.loads(FILE.read_text()) if FILE.exists() else {}
    found, bad = {}, 0
    for name, part in sorted(parts().items()):
        numbers = [float(f"{value:.10g}") for value in part.compute()]
        about = {"version": part.version} | ({"edition": part.edition} if part.edition > 1 else {})
        kept = golden.get(name, {})
        if {k: v for k, v in kept.items() if k != "numbers"} == about:
            found[name] = kept
            if wrong := fault(name, part, numbers, golden):
                print(wrong, file=sys.stderr)
                bad += 1
        else:
            found[name] = about | {"numbers": numbers}
            print(f"{name}: written, version {part.version}, edition {part.edition}")
    lines = [f" {json.dumps(name)}: {json.dumps(value)}" for name, value in found.items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
