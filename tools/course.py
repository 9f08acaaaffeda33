"""Make what docs/course.md and the checks of exercises are made of.

python -m tools.course            prints the table of lessons of docs/course.md
python -m tools.course answers    executes the solutions as far as they give answers, a few minutes,
                                  and writes their digests to itr_study/lab/answers.json
"""

import json
import os
import re
import sys
import tempfile
from pathlib import Path
from unittest.mock import patch

import itr_study
from itr_study.files.atomic import read_json, write_json
from itr_study.lab.batch.declared import find_notebooks, read_notebook
from itr_study.lab.course import ANSWERS, CHECK, Exercise, exercises
from itr_study.lab.ledger.report import markdown_lines

RATE = 150  # words a minute
GIVES = "itr.check_answer("
LEFT_OUT = re.compile(r"```.*?```|\$\$.*?\$\$|^\|.*?$|^#+ ", re.S | re.M)  # not read as words


def sources(path: Path, kind: str) -> list[str]:
    """Read the texts of the cells of a notebook that are of one kind."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == kind]


def solutions() -> list[Path]:
    """List the solutions that give answers."""
    paths = [path.parent / "solutions" / path.name for path in find_notebooks()]
    return [path for path in paths if any(GIVES in source for source in sources(path, "code"))]


def solved(path: Path, figures: Path) -> dict[str, float | str]:
    """Execute a solution as far as its last answer, and return what it gives to check_answer.

    Args:
        path: of the notebook.
        figures: takes its figures.
    """
    code = sources(path, "code")
    last = max(place for place, source in enumerate(code) if GIVES in source)
    found: dict[str, float | str] = {}
    space = {"__name__": path.stem, "display": lambda *shown: None}
    with patch.object(itr_study, "check_answer", found.__setitem__):
        for source in code[:last + 1]:
            exec(compile(source, path.name, "exec"), space)
            if "profile: str" in source:  # the parameters
                space |= {"figures": str(figures), "workers": 1}
    return found


def write_answers() -> None:
    """Write the digests of all answers; print the answers, for the teacher."""
    os.environ.setdefault("MPLBACKEND", "agg")
    kept = read_json(ANSWERS)
    for path in solutions():
        with tempfile.TemporaryDirectory() as figures:
            for name, answer in solved(path, Path(figures)).items():
                exercise = Exercise(name, **kept[name] | {"digests": ()})
                kept[name]["digests"] = exercise.digests_of(answer)
                print(f"{name}: {answer} {exercise.unit}".rstrip(), flush=True)
    write_json(ANSWERS, kept)


def lesson_lines() -> list[str]:
    """Write the table of lessons."""
    rows = []
    for path in find_notebooks():
        text = LEFT_OUT.sub("", "\n".join(sources(path, "markdown")))
        asked = re.findall(r"^\*\*Exercise ([\d.]+)\.\*\*", text, re.M)
        checked = [name for source in sources(path, "code") for name, _ in CHECK.findall(source)]
        declared = read_notebook(path)
        rows.append({"lesson": f"[{path.stem}](../notebooks/{path.name})",
                     "words": f"{len(text.split()):,}",
                     "minutes to read": str(round(len(text.split()) / RATE)),
                     "minutes to run": f"{declared.minutes:.1f}",
                     "figures": str(len(declared.figures)),
                     "exercises": str(len(asked)), "checked": str(len(checked))})
        assert set(checked) <= set(asked) and set(checked) <= set(exercises()), path
    import pandas as pd

    return markdown_lines(pd.DataFrame(rows))


if __name__ == "__main__":
    if sys.argv[1:] == ["answers"]:
        write_answers()
    else:
        print("\n".join(lesson_lines()))
