"""Read docstrings: what a page of the API shows, and which equation of a paper is which code."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

HEADINGS = ("Args", "Attributes", "Returns", "Raises", "Yields", "Use", "See", "Source", "Differs",
            "Shape", "Example")
LISTS = ("Args", "Attributes", "Raises")  # of names, each with what it is
HEADING = re.compile(rf"({'|'.join(HEADINGS)}):(?:\s+(.*))?")
ITEM = re.compile(r"([\w*]+(?:, [\w*]+)*): (.*)", re.DOTALL)
PAPERS = ("topk", "listwise", "bcls", "dvse")
PAPER = rf"\b(?:{'|'.join(PAPERS)})\b"


class Part(NamedTuple):
    """A part of a docstring: "text", "formula", or the name of a section; and its text."""

    kind: str
    text: str


def read_parts(doc: str) -> list[Part]:
    r"""Split a docstring into paragraphs, indented formulas and sections.

    Example:
        >>> [tuple(part) for part in read_parts("Add.\n\n    a + b\n\nArgs: a: one.")]
        [('text', 'Add.'), ('formula', 'a + b'), ('Args', 'a: one.')]
    """
    parts: list[tuple[str, list[str]]] = []
    for line in inspect.cleandoc(doc).splitlines():
        heading = HEADING.fullmatch(line)
        inside = parts and parts[-1][0] in HEADINGS
        if heading:
            parts.append((heading[1], [heading[2] or ""]))
        elif inside and (not line or line[0] == " "):
            parts[-1][1].append(line)
        else:
            kind = "formula" if line.startswith("  ") else "text"
            if not line or not parts or parts[-1][0] != kind:
                if line:
                    parts.append((kind, [line]))
                elif parts and parts[-1][0] == "formula":
                    parts[-1][1].append("")  # of several lines
                else:
                    parts.append(("text", []))
            else:
                parts[-1][1].append(line)
    return [Part(kind, joined(lines)) for kind, lines in parts if "".join(lines).strip()]


def joined(lines: list[str]) -> str:
    """Join the lines of a part; the first stands beside its heading."""
    first, *rest = lines
    below = dedent("\n".join(rest)) if not first.startswith(" ") else ""
    return f"{first}\n{below}".strip() if below or not rest else dedent("\n".join(lines)).strip()


def items_of(text: str) -> list[tuple[str, str]]:
    """List the names of a section and what each is."""
    whole: list[str] = []
    for line in text.splitlines():
        if line.startswith(" ") and whole:
            whole[-1] += f" {line.strip()}"
        else:
            whole += [line] if ITEM.match(line) or not whole else []
            if whole and whole[-1] != line:
                whole[-1] += f" {line}"
    return [(found[1], found[2]) if (found := ITEM.fullmatch(line)) else ("", line)
            for line in whole]


def escaped(text: str) -> str:
    """Write a text in reStructuredText as it is, but for code in backticks."""
    pieces = re.split(r"(`+[^`]+`+)", text)
    return "".join(f"``{piece.strip('`')}``" if place % 2 else re.sub(r"([\\*_|])", r"\\\1", piece)
                   for place, piece in enumerate(pieces))


def indented(text: str, by: int = 3) -> list[str]:
    """Indent lines."""
    return [" " * by + line if line else "" for line in text.splitlines()]


def as_rest(doc: str) -> list[str]:
    """Write a docstring as lines of reStructuredText."""
    lines: list[str] = []
    for kind, text in read_parts(doc):
        if kind == "text":
            lines += [escaped(line) for line in text.splitlines()]
        elif kind == "formula":
            lines += ["::", "", *indented(text)]
        elif kind == "Example":
            words, prompt, code = text.partition(">>>")
            lines += [f"**Example** {escaped(words.strip())}".rstrip(), ""]
            lines += ["", ".. code-block:: pycon", "", *indented(dedent(prompt + code))] if prompt \
                else []
        elif kind in LISTS:
            lines += [f"**{kind}**", ""]
            for name, what in items_of(text):
                lines += [f"* **{escaped(name)}**: {escaped(what)}" if name else
                          f"* {escaped(what)}"]
        else:
            lines += [f"**{kind}**: {escaped(' '.join(text.split()))}"]
        lines.append("")
    return lines


class Equation(NamedTuple):
    """A place of a paper, and the code that computes it."""

    paper: str
    place: str  # the equations, as the docstring says it
    module: str
    name: str
    formula: str
    symbols: list[tuple[str, str]]  # arguments, and what their docstring says
    differs: str

    @property
    def first(self) -> tuple[int, int]:
        """By which it is sorted: the paper, the first number."""
        return PAPERS.index(self.paper), int(re.findall(r"\d+", self.place)[0])


def read_equations(root: Path) -> list[Equation]:
    """List all equations that a docstring of the package names as its source, by paper."""
    found = [equation for path in sorted((root / "itr_study").rglob("*.py"))
             if "plots" not in path.parts and "lab" not in path.parts
             for equation in equations_in(path, root)]
    return sorted(found, key=lambda one: one.first)


def equations_in(path: Path, root: Path) -> Iterator[Equation]:
    """Yield the equations that the docstrings of a file name."""
    module = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ClassDef | ast.FunctionDef) or not ast.get_docstring(node):
            continue
        parts = read_parts(ast.get_docstring(node))
        told = {part.kind: part.text for part in reversed(parts)}
        source = " ".join(told.get("Source", "").split())
        symbols = items_of(told["Args"]) if "Args" in told else []
        formulas = "\n\n".join(part.text for part in parts if part.kind == "formula")
        for clause in re.findall(rf"{PAPER}(?:(?!{PAPER})[^;])*", source):
            paper = re.match(PAPER, clause)[0]
            place = clause.removeprefix(paper).strip(" ,.").removeprefix("paper").strip(" ,.")
            if not re.match(r"[^(]*Eqs?\. \d", place):
                continue
            yield Equation(paper, place, module, node.name, formulas, symbols,
                           " ".join(told.get("Differs", "").split()))
