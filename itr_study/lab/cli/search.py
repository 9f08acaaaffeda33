"""What `itr-study search` looks at, and how it answers: lines of text, and a picture."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from PIL import Image, UnidentifiedImageError

from itr_study.data import DATASETS
from itr_study.data.folder import PICTURES, load_pictures
from itr_study.data.picture_files import FORMATS, open_picture
from itr_study.digits import counted
from itr_study.evaluation.search import Searcher, hit_table
from itr_study.explorers.pictures import BROKEN
from itr_study.explorers.ranked import image_queries, text_queries
from itr_study.features.dataset import with_pictures
from itr_study.files.atomic import write_atomic
from itr_study.files.paths import home
from itr_study.lab.batch.schedule import data_root
from itr_study.lab.cli.chosen import Chosen
from itr_study.lab.cli.commands import config_of
from itr_study.lab.runs.config import RunConfig
from itr_study.lab.runs.data import encoded_data
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.run import changed, former, searcher, weights
from itr_study.lab.runs.store import RunResult, RunStore
from itr_study.plots.retrieval import Query, answer_grid
from itr_study.plots.style import png_bytes

SECONDS_TO_FAIL = 2.0  # a program that opens files says sooner that it knows no other to show them


class Shown(NamedTuple):
    """How many results, the .png file of their picture (else in the home), and whether it opens."""

    top: int = 10
    save: Path | None = None
    open: bool = False


def search(chosen: Chosen, data: Path | None, text: str | None, image: str | None, shown: Shown,
           split: str | None = None, pictures: Path | None = None) -> None:
    """Print what a finished run finds for a text or an image, or prompt for queries."""
    root = data_root(chosen.values["dataset"], data)
    config = config_of(chosen, root)
    run = identify(config, root)
    result = RunStore().result(chosen.run or run.id)
    if result is None:
        raise ValueError(not chosen.run and former(run, root) or chosen.untrained(
            chosen.run or run.id, root))
    if moved := changed(run, result, root):
        print(f"note: {moved}; it is searched as it is", file=sys.stderr)
    searcher = searcher_of(config, root, split, pictures, result if moved else None)
    if text is None and image is None:
        ask_again(searcher, shown)
    else:
        picture = None if image is None else picture_at(image) or image
        answer(searcher, text, picture, shown)


def ask_again(searcher: Searcher, shown: Shown) -> None:
    """Answer the lines of stdin, each a text, an image's id or a picture file, until it ends."""
    watched = sys.stdin.isatty()
    if watched:
        print("A text, an id of an image, or a picture file; an empty line ends.")
    while True:
        print("search> " * watched, end="", flush=True)
        if not (line := sys.stdin.readline().strip()):
            return
        try:
            picture = picture_at(line) or (line if line in searcher.split.image_ids else None)
            answer(searcher, line if picture is None else None, picture, shown)
        except (ValueError, OSError) as error:  # a bad question must not end the search
            print(f"error: {error}", file=sys.stderr)


def picture_at(path: str) -> Image.Image | None:
    """Read the picture file that a text names, if it does; ValueError for a broken one."""
    try:  # isfile answers, whatever the text is: longer than a name may be, or no Unicode
        if not os.path.isfile(path):  # what is dropped on a terminal has quotes or backslashes
            path = os.path.expanduser(path.strip("'\" ").replace("\\ ", " "))
        return open_picture(Path(path)) if os.path.isfile(path) else None
    except UnidentifiedImageError:
        print(f"note: the file {path} is no picture of a format that is read: {', '.join(FORMATS)}",
              file=sys.stderr)
        return None
    except BROKEN as error:
        reason = str(error).removeprefix(f"{path}: ")
        raise ValueError(f"the picture {path} cannot be read: {reason}") from error


def searcher_of(config: RunConfig, root: str | None, split: str | None = None,
                pictures: Path | None = None, result: RunResult | None = None) -> Searcher:
    """Make a finished run ready to search: a split of its data, or a folder of other pictures.

    Args:    split: None: what its data set's record names; result: as in `weights`.
    """
    if pictures is None:
        return searcher(config, root, split or DATASETS[config.dataset].searched, result=result)
    data, others = encoded_data(config, root), load_pictures(pictures)
    for note in others.report.notes:
        print(f"note: {note.detail}", file=sys.stderr)
    model = weights(config, root, result=result)
    return Searcher(model, others, with_pictures(data, others), PICTURES,
                    calibration=data.splits.get("dev"))


def answer(searcher: Searcher, text: str | None, picture: str | Image.Image | None,
           shown: Shown) -> None:
    """Print the best for a text or a picture (or its id); then draw them, if that is wanted."""
    hits = (searcher.search_image(picture, shown.top) if text is None
            else searcher.search_text(text, shown.top))
    among = searched(searcher)
    refused = "" if text is None else hits.refusal * all(hit.match is None for hit in hits)
    said = [refused, hit_table(hits), "" if text is None else searcher.doubts(text)]
    print(*filter(None, said), f"({among})", sep="\n", flush=True)
    if shown.save is not None or shown.open:
        target = shown.save or home() / "search.png"
        query = drawn(searcher, text, picture, shown.top)
        note = " · ".join(filter(None, [refused, among]))
        write_atomic(target, png_bytes(answer_grid(query, "What the model finds", note)))
        print(f"picture: {target}")
        if shown.open and not opened(target):
            print("no program to open it was found here; open that file yourself")


def searched(searcher: Searcher) -> str:
    """Among how many images the answer was looked for, and what could not be."""
    left_out = len(searcher.dataset.report.excluded)
    return f"{counted(len(searcher.split.image_ids), 'image')}, {searcher.split.name}" + (
        f"; {left_out} left out, which cannot be read" if left_out else "")


def drawn(searcher: Searcher, text: str | None, picture: str | Image.Image | None,
          top: int) -> Query:
    """The query and its results as pictures and texts to draw."""
    if text is not None:
        return text_queries(searcher, [text], top)[0]
    if isinstance(picture, str):
        picture = searcher.split.image_ids.index(picture)
    return image_queries(searcher, [picture], top)[0]


def opened(path: Path) -> bool:
    """Show a file in the program that the system has for it; whether there is one."""
    if os.name == "nt":
        os.startfile(path)
        return True
    program = "open" if sys.platform == "darwin" else "xdg-open"
    unheard = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    try:
        return subprocess.Popen([program, path], **unheard).wait(SECONDS_TO_FAIL) == 0
    except subprocess.TimeoutExpired:
        return True  # it is the viewer itself
    except OSError:
        return False
