"""Where a data set lies: below a root that holds several, or the very path given."""

from pathlib import Path

from itr_study.data.base import DataError


def find_root(root: Path | str | None, name: str, *, also: tuple[str, ...] = (),
              marks: tuple[str, ...] = (), obtain: str = "") -> Path:
    """Folder of one data set, given the root of all of them or a path straight to it.

    Args:    root: what the user gave (`DATA`); name: folder looked for below it; also: other
             names of that folder; marks: patterns of files by which the folder itself is
             recognised; obtain: one sentence on where the data come from.
    Raises:  DataError naming what was looked for and how to obtain it.
    """
    wanted = (name, *also)
    if root is None:
        raise DataError(f"{name}: no folder was given; give root=... (DATA=... of a command) a "
                        f"folder that holds {name}/, or that folder itself. {obtain}".rstrip())
    root = Path(root).expanduser()
    if not root.is_dir():
        raise DataError(f"{name}: there is no folder {root}. {obtain}".rstrip())
    if any(any(root.glob(mark)) for mark in marks):
        return root
    for folder in wanted:
        if (root / folder).is_dir():
            return root / folder
    if root.resolve().name in wanted:
        return root
    looked = " or ".join(f"{folder}/" for folder in wanted)
    files = f", nor is it one (no {' or '.join(marks)})" if marks else ""
    raise DataError(f"{name}: {root} holds no {looked}{files}. {obtain}".rstrip())


def find_part(root: Path, names: tuple[str, ...], what: str) -> Path:
    """The first of the names that exists below root; DataError naming all of them."""
    for name in names:
        if (root / name).exists():
            return root / name
    raise DataError(f"{what} missing: looked for {', '.join(names)} in {root}")


def read_text(path: Path) -> str:
    """A UTF-8 text file, with or without byte order mark; DataError naming the bad byte."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text (byte {error.start}): save it as UTF-8, or "
                        "obtain it again") from error


def read_lines(path: Path) -> list[str]:
    """Lines of a text file without the newline that ends each; none for an empty file.

    Only newlines part lines: captions may hold other characters that Python would split at.
    """
    lines = read_text(path).replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines
