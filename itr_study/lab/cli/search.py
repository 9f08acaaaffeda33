"""What `itr-study search` looks at, and how it answers: lines of text, and a picture."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from itr_study.data import DATASETS
from itr_study.data.folder import PICTURES, load_pictures
from itr_study.data.picture_files import open_picture
from itr_study.digits import counted
from itr_study.evaluation.search import Searcher, hit_table
from itr_study.explorers.examples import image_queries, text_queries
from itr_study.features.dataset import with_pictures
from itr_study.files.atomic import write_atomic
from itr_study.files.paths import home
from itr_study.lab.batch.schedule import data_root
from itr_study.lab.cli.chosen import Chosen
from itr_study.lab.runs.config import RunConfig
from itr_study.lab.runs.data import encoded_data
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.run import searcher, weights
from itr_study.lab.runs.store import RunStore
from itr_study.plots.retrieval import Query, answer_grid
from itr_study.plots.style import png_bytes

SECONDS_TO_FAIL = 2.0  # a program that opens files says sooner that it knows no other to show them


class Shown(NamedTuple):
    """How many results, the .png file of their picture, and whether that is opened.

    Without a file, the one that is opened is in the home.
    """

    top: int = 10
    save: Path | None = None
    open: bool = False


def search(chosen: Chosen, data: Path | None, text: str | None, image: str | None, shown: Shown,
           split: str | None = None, pictures: Path | None = None) -> None:
    """Print what a finished run finds for a text or an image; without either, prompt for queries.

    Raises:  ValueError for a run that is not finished here.
    """
    config = RunConfig.model_validate(chosen.values)
    root = data_root(config.dataset, data)
    run_id = identify(config, root).id
    if RunStore().result(run_id) is None:
        raise ValueError(f"run {run_id} is not finished on this machine: its weights are missing; "
                         "train it first: the same command with `train`")
    searcher = searcher_of(config, root, split, pictures)
    if text is None and image is None:
        ask_again(searcher, shown)
    else:
        print(answer(searcher, text, image, shown))


def ask_again(searcher: Searcher, shown: Shown) -> None:
    """Answer the lines of stdin, each a text, an image's id or a picture file, until it ends."""
    watched = sys.stdin.isatty()
    if watched:
        print("A text, an id of an image, or a picture file; an empty line ends.")
    while line := _question(watched):
        is_image = line in searcher.split.image_ids or Path(line).is_file()
        try:
            print(answer(searcher, *((None, line) if is_image else (line, None)), shown),
                  flush=True)
        except (ValueError, OSError) as error:  # a bad question must not end the search
            print(f"error: {error}", file=sys.stderr)


def _question(watched: bool) -> str:
    if watched:
        print("search> ", end="", flush=True)
    return sys.stdin.readline().strip()


def searcher_of(config: RunConfig, root: str | None, split: str | None = None,
                pictures: Path | None = None) -> Searcher:
    """Make a finished run ready to search.

    Args:    split: of the run's data, "all" for all; None: what its record names; pictures: a
             folder of other pictures, without texts, instead of the data.
    Raises:  ValueError for new pictures where the model takes features that came with its data;
             DataError for a folder without pictures.
    """
    if pictures is None:
        return searcher(config, root, split or DATASETS[config.dataset].searched)
    data, others = encoded_data(config, root), load_pictures(pictures)
    for note in others.report.notes:
        print(f"note: {note.detail}", file=sys.stderr)
    return Searcher(weights(config, root), others, with_pictures(data, others), PICTURES)


def answer(searcher: Searcher, text: str | None, image: str | None, shown: Shown) -> str:
    """Find the best for a text or an image (an id, or a picture file), as lines of text.

    Raises:  ValueError for a query without words, or an unknown id.
    """
    picture = open_picture(Path(image)) if image is not None and Path(image).is_file() else image
    hits = (searcher.search_image(picture, shown.top) if text is None
            else searcher.search_text(text, shown.top))
    among = searched(searcher)
    doubts = searcher.doubts(text) if text else ""
    lines = [hit_table(hits), *[doubts] * bool(doubts), f"({among})"]
    if shown.save is not None or shown.open:
        target = shown.save or home() / "search.png"
        query = drawn(searcher, text, picture, shown.top)
        write_atomic(target, png_bytes(answer_grid(query, "What the model finds", among)))
        lines.append(f"picture: {target}")
        if shown.open and not opened(target):
            lines.append("no program to open it was found here; open that file yourself")
    return "\n".join(lines)


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
