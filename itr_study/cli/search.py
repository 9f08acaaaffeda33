"""What `itr-study search` looks at, and how it answers: lines of text, and a picture."""

from pathlib import Path

import typer
from PIL import Image

from itr_study.data import DATASETS
from itr_study.data.picture_checks import open_picture
from itr_study.data.pictures import PICTURES, load_pictures
from itr_study.data.vocabulary import tokenize
from itr_study.evaluation.search import Searcher, hit_table
from itr_study.explorers.queries import image_queries, text_queries
from itr_study.features.pictures import with_pictures
from itr_study.files.atomic import write_atomic
from itr_study.files.paths import home
from itr_study.plots.retrieval import Query, answer_grid
from itr_study.plots.style import png_bytes
from itr_study.runs.config import RunConfig
from itr_study.runs.data import dataset_of, encoded_data
from itr_study.runs.run import weights


def searcher_of(config: RunConfig, root: str | None, split: str | None = None,
                pictures: Path | None = None) -> Searcher:
    """A finished run, ready to search.

    Args:    split: of the run's data, "all" for all; None: what its record names; pictures: a
             folder of other pictures, without texts, in the data's place.
    Raises:  ValueError for a split there is not, or for new pictures where the model takes features
             that came with its data; DataError for a folder without pictures.
    """
    data = encoded_data(config, root)
    if pictures is None:
        split = split or DATASETS[config.dataset].searched
        return Searcher(weights(config, root), dataset_of(config, root), data, split)
    if split is not None:
        raise ValueError("--pictures has no splits; leave --split out")
    others = load_pictures(pictures)
    return Searcher(weights(config, root), others, with_pictures(data, others), PICTURES)


def answer(searcher: Searcher, text: str | None, image: str | None, top: int,
           save: Path | None = None, show: bool = False) -> str:
    """The best `top` for a text or an image (an id, or a picture file), as lines of text.

    Args:    save: a .png file for them as a picture; show: open that picture; without a file it
             lies in the home.
    Raises:  ValueError for a query without words, an unknown id, or a file name without .png.
    """
    picture = open_picture(Path(image)) if image is not None and Path(image).is_file() else image
    hits = (searcher.search_image(picture, top) if text is None
            else searcher.search_text(text, top))
    among = searched(searcher)
    lines = [hit_table(hits), *doubts(searcher, text), f"({among})"]
    if save is not None or show:
        target = save or home() / "search.png"
        save_answer(drawn(searcher, text, picture, top), target, among)
        lines.append(f"picture: {target}")
        if show and typer.launch(str(target)) != 0:
            lines.append("no program to open it was found here; open that file yourself")
    return "\n".join(lines)


def searched(searcher: Searcher) -> str:
    """Among how many images the answer was looked for, and what could not be."""
    left_out = len(searcher.dataset.report.excluded)
    return f"{len(searcher.split.image_ids):,} images, {searcher.split.name}" + (
        f"; {left_out} left out, which cannot be read" if left_out else "")


def doubts(searcher: Searcher, text: str | None) -> list[str]:
    """A line on the words of a query that the model cannot read, if there are any."""
    unknown = searcher.unknown_words(text) if text else []
    if not unknown:
        return []
    if set(unknown) == set(tokenize(text)):
        return [f"the model knows no word of it ({', '.join(unknown)}): this order means nothing"]
    return [f"not known to the model, which cannot read it: {', '.join(unknown)}"]


def drawn(searcher: Searcher, text: str | None, picture: str | Image.Image | None,
          top: int) -> Query:
    """The query and its results as pictures and texts to draw."""
    if text is not None:
        return text_queries(searcher, [text], top)[0]
    if isinstance(picture, str):
        picture = searcher.split.image_ids.index(picture)
    return image_queries(searcher, [picture], top)[0]


def save_answer(query: Query, target: Path, note: str) -> None:
    """Write the picture of an answer. Raises: ValueError where the file is no .png."""
    if target.suffix.lower() != ".png":
        raise ValueError(f"--save takes a .png file, got {target}")
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(target, png_bytes(answer_grid(query, "What the model finds", note)))
