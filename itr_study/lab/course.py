"""A course: guesses at exercises are checked; copies of the notebooks for a class, without answers.

answers.json holds no answer. A number falls into a bin of some width; the file has salted digests
of the bins that the right number touches, which `python -m tools.course answers` computes from the
solutions. So nobody meets an answer by reading or searching; who tries all numbers finds it.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from numbers import Rational, Real
from pathlib import Path
from typing import Any

from itr_study.checks import not_among
from itr_study.files.atomic import read_json, write_json
from itr_study.files.paths import check_writable
from itr_study.lab.batch.declared import find_notebooks

ANSWERS = files("itr_study.lab") / "answers.json"
ASIDE = 0.25  # of a bin: a guess that is no farther from the answer is right
LARGEST = 1e300  # a bin can be counted
# In a copy for a class: where solutions are, and links out of the folder of notebooks.
SOLUTIONS = re.compile(r"^Worked solutions are in .*\n+", re.M)
OUTSIDE = re.compile(r"\[([^\[\]]+)\]\(\.\./[^)]*\)")
CHECK = re.compile(r'^itr\.check_answer\("([\d.]+)", (guess_\d+)\)', re.M)
SENTENCES = {  # the page of a lesson says these, too
    "right": "{name}: right.", "wrong": "{name}: not yet. {hint}",
    "nearly": "{name}: nearly. You are close; compute it more exactly.",
    "absent": "{name}: write {wanted}", "other": "{name} takes {wanted}, got {got}"}


@dataclass(frozen=True)
class Reply:
    """What `check_answer` says: a sentence, and for graders whether the guess is right."""

    sentence: str
    right: bool = False

    def __repr__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class Exercise:
    """An exercise that can be checked.

    Args:
        name: its number, such as "03.1".
        hint: what to think of after a wrong guess.
        unit: of a number, in words.
        width: of the bins that numbers fall into.
        choices: the letters to choose from, if it asks for no number.
        digests: of what is right.
    """

    name: str
    hint: str
    unit: str = ""
    width: float = 1.0
    choices: str = ""
    digests: Sequence[str] = ()

    @property
    def wanted(self) -> str:
        """What to type, in words."""
        return f"one of {', '.join(map(repr, self.choices))}" if self.choices else (
            f"a number ({self.unit}), such as 1.5")

    def read(self, guess: object) -> str | int | None:
        """Read a guess as a letter or as the number of its bin; None if it is neither."""
        if self.choices:
            letter = guess.strip().lower() if isinstance(guess, str) else ""
            return letter if letter in tuple(self.choices) else None
        if isinstance(guess, bool) or not isinstance(guess, Real):
            return None
        number = guess if isinstance(guess, Rational) else float(guess)  # or it may be too large
        finite = -LARGEST < number < LARGEST  # NaN is within no bounds
        return math.floor(number / self.width + 0.5) if finite else None

    def judge(self, guess: object) -> str:
        """Return which of SENTENCES answers a guess."""
        if (place := self.read(guess)) is None:
            return "absent" if guess is None else "other"
        if self.digest(place) in self.digests:
            return "right"
        near = [place - 1, place + 1] if isinstance(place, int) else []
        return "nearly" if any(self.digest(one) in self.digests for one in near) else "wrong"

    def digest(self, place: str | int) -> str:
        """Hash a letter or a bin; the salt is the name, so equal answers look different."""
        return sha256(f"itr_study {self.name} {place}".encode()).hexdigest()[:16]

    def digests_of(self, answer: float | str) -> tuple[str, ...]:
        """Hash the letter, or the bins, of the right answer.

        Raises: ValueError: it is neither a letter to choose nor a finite number.
        """
        if self.read(answer) is None:
            raise ValueError(f"the answer of {self.name} must be {self.wanted}, got {answer!r}")
        places = {answer} if isinstance(answer, str) else {
            self.read(answer + side * self.width) for side in (-ASIDE, ASIDE)}
        return tuple(sorted(self.digest(place) for place in places if place is not None))


@cache
def exercises() -> dict[str, Exercise]:
    """Read the exercises that can be checked, by name."""
    return {name: Exercise(name, **fields) for name, fields in read_json(ANSWERS).items()}


def check_answer(exercise: str, guess: float | str | None) -> Reply:
    """Say whether a guess at an exercise of a notebook is right, without telling the answer.

    Args:
        exercise: its number, such as "03.1".
        guess: a number in the unit of the exercise, or the letter of a choice; None: no guess yet.

    Returns: right, nearly (a neighbouring bin), a hint, or what to type instead.

    Example:
        >>> check_answer("09.3", "d")
        09.3 takes one of 'a', 'b', 'c', got 'd'. Type, for example: itr.check_answer("09.3", "a")
    """
    known = exercises()
    if not isinstance(exercise, str) or exercise not in known:
        name = exercise if isinstance(exercise, str) else type(exercise).__name__
        near = [one for one in known if one[:2] == name[:2]] or list(known)  # of its notebook
        return Reply(f"{not_among('exercise', name, near)}\nType, for example: "
                     f'itr.check_answer("{near[0]}", guess_1)')
    asked = known[exercise]
    said = asked.judge(guess)
    got = repr(guess)[:40] if isinstance(guess, str | float) else (
        f"a value of type {type(guess).__name__}")
    shown = f'"{asked.choices[0]}"' if asked.choices else "1.5"
    then = {"absent": ", in the place of None, and run this again.",
            "other": f'. Type, for example: itr.check_answer("{exercise}", {shown})'}
    words = SENTENCES[said].format(name=exercise, wanted=asked.wanted, hint=asked.hint, got=got)
    return Reply(words + then.get(said, ""), right=said == "right")


def student_copies(folder: Path, install: str | None = None, otter: bool = False) -> str:
    """Write copies of the notebooks for a class: no solutions, no links to them.

    Args:
        folder: takes the copies; made if need be.
        install: a requirement that their first cell installs, such as on Colab.
        otter: also write tests for otter-grader, which then executes only cells with a guess.
    Returns: what was written, in words.
    Raises: ValueError: the folder holds such a file, or the requirement is no single line.
    """
    if install is not None and re.search(r'["\n]', install):
        raise ValueError(f"--install takes one requirement without quotes, got {install!r}")
    paths = find_notebooks()
    if held := [path.name for path in paths if (folder / path.name).exists()]:
        raise ValueError(f"{folder} holds {', '.join(held)}, perhaps with somebody's work: name "
                         "another folder, or move them away")
    check_writable(folder, "Name another folder: itr-study student FOLDER")
    told = [f"{len(paths)} notebooks without solutions in {folder}."]
    for path in paths:
        notebook = read_json(path)
        graded = list(for_class(notebook, install, otter))
        write_json(folder / path.name, notebook)
        if otter and graded:
            tests = folder / "tests" / path.stem
            tests.mkdir(parents=True, exist_ok=True)
            for exercise, name in graded:
                test = f"q{exercise.replace('.', '_')}"
                (tests / f"{test}.py").write_text(otter_test(test, exercise, name), "utf-8")
    if otter:
        told.append(f"Tests for otter-grader in {folder / 'tests'}, a folder for each notebook: "
                    f"otter generate -t {folder / 'tests' / '03_topk'}")
    return "\n".join(told)


def for_class(notebook: dict[str, Any], install: str | None, otter: bool
              ) -> Iterator[tuple[str, str]]:
    """Change a notebook for a class; yields its exercises with the name of the guess."""
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        found = CHECK.findall(text)
        yield from found
        if cell["cell_type"] == "markdown":
            text = OUTSIDE.sub(r"\1", SOLUTIONS.sub("", text))
        elif otter and not found:
            cell["metadata"]["tags"] = [*cell["metadata"].get("tags", ()), "otter_ignore"]
        cell["source"] = text.splitlines(keepends=True)
    first = [f'%pip install --quiet "{install}"'] if install else []
    if first or otter:  # a graded copy has no other import
        source = "\n".join([*first, "import itr_study as itr"]).splitlines(keepends=True)
        notebook["cells"].insert(1, {"cell_type": "code", "execution_count": None, "id": "install",
                                     "metadata": {}, "outputs": [], "source": source})


def otter_test(test: str, exercise: str, name: str) -> str:
    """Write a test of otter-grader: is the guess that a notebook gives this name right?"""
    code = f">>> import itr_study\n>>> itr_study.check_answer({exercise!r}, {name}).right\nTrue"
    suite = {"type": "doctest", "scored": True, "setup": "", "teardown": "",
             "cases": [{"code": code, "hidden": False, "locked": False}]}
    return f"OK_FORMAT = True\n\ntest = {dict(name=test, points=1, suites=[suite])!r}\n"
