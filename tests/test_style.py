"""Files one can read: sizes, no path of one machine, nothing large, nothing left for later."""

import ast
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted((ROOT / "itr_study").rglob("*.py"))
LONGEST_FILE, LONGEST_FUNCTION = 500, 60  # lines; docstrings of functions not counted
LARGEST, LARGEST_ROWS = 2_000_000, 8_000_000  # bytes; of all runs of a data set, one table
# A path that exists on one machine only: a home folder (tests speak of /home/me), a scratch folder.
OWN_PATH = re.compile(r"(^|[\s\"'(=:])/(work|farm|root|tmp/w|Users/\w+|home/(?!me/)\w+)/", re.M)
LATER = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b")


def tracked() -> list[Path]:
    """Files of the repository; without git, the sources."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    names = done.stdout.split("\0") if done.returncode == 0 else []
    found = [ROOT / name for name in names if name]
    return [p for p in found if p.is_file()] or SOURCES


def ids(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_no_file_and_no_function_is_too_long():
    long = []
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        if text.count("\n") > LONGEST_FILE:
            long.append(f"{ids(path)}: {text.count(chr(10))} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                begin = node.body[0].end_lineno if ast.get_docstring(node) else node.lineno
                if node.end_lineno - begin + 1 > LONGEST_FUNCTION:
                    long.append(f"{ids(path)}: {node.name}")
    assert not long


def test_no_path_of_one_machine_and_nothing_left_for_later():
    found = []
    for path in tracked():
        if path.suffix in (".png", ".npz", ".parquet", ".jpg", ".safetensors"):
            continue
        text = path.read_text(encoding="utf-8")
        found += [f"{ids(path)}: {m.group().strip()}" for m in OWN_PATH.finditer(text)]
        if path.suffix in (".py", ".ipynb"):
            found += [f"{ids(path)}: {m.group()}" for m in LATER.finditer(text)]
    assert not found


def test_the_patterns_find_what_they_look_for():
    assert OWN_PATH.search('data = "/ro' 'ot/x"') and OWN_PATH.search("see /wo" "rk/main")
    assert not OWN_PATH.search("https://example.org/work/x") and not OWN_PATH.search("a/root/b")
    assert LATER.search("# TO" "DO: this")


def test_nothing_large_is_tracked():
    assert not [f"{ids(p)}: {p.stat().st_size} bytes" for p in tracked()
                if p.stat().st_size > (LARGEST_ROWS if p.name == "runs.csv" else LARGEST)]


ONLY_POSIX = re.compile(r"os\.fork|signal\.SIG(KILL|TERM|XFSZ)|\bselect\.|[\"']sleep[\"']")


def test_tests_that_need_posix_are_skipped_elsewhere():
    """What Windows lacks stands in tests that are marked, and is not imported at the top."""
    wrong = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        found = path.name != "test_style.py" and ONLY_POSIX.search(text)
        if found and "posix_only" not in text:
            wrong.append(f"{ids(path)}: mark it, {found[0]} is not on Windows")
        if re.search(r"^(import|from) (resource|fcntl)\b", text, re.M):
            wrong.append(f"{ids(path)}: import it inside a test that is marked")
    assert not wrong


def test_no_photographs_are_tracked():
    """Pictures of data sets are not ours to give away."""
    assert not [ids(p) for p in tracked() if p.suffix.lower() in (".jpg", ".jpeg")]
