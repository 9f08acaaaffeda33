"""Whether words look at what they name, on generated pictures, where every box is known.

    looks = Looker(searcher).maps("words")
    rows = scene_pointing(searcher.dataset, searcher.split, looks)      a row for each noun
"""

import functools
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from itr_study.data.base import RetrievalDataset, Split
from itr_study.data.box_table import Named
from itr_study.data.scenes.words import NOUNS, SHAPES, plural
from itr_study.data.vocabulary import tokenize
from itr_study.evaluation.looks import Look, word_maps
from itr_study.evaluation.pointing import Target, boxes_of, target_rows


@functools.cache
def shape_of_nouns() -> dict[str, int]:
    """The number of the shape that a noun names, singular or plural; vague nouns name none."""
    return {form: SHAPES.index(shape) for shape, nouns in NOUNS.items()
            for noun in nouns for form in (noun, plural(noun))}


def named_shapes(caption: str) -> list[Named]:
    """Which words of a caption name a shape, in their order.

    Example:
        >>> [(named.start, SHAPES[named.number]) for named in named_shapes("A red hoop on boxes")]
        [(2, 'ring'), (4, 'block')]
    """
    table = shape_of_nouns()
    return [Named(place, place + 1, table[word]) for place, word in enumerate(tokenize(caption))
            if word in table]


def scene_targets(dataset: RetrievalDataset, split: Split) -> Iterator[Target]:
    """Every noun that names a shape, where the text's own picture has it: with the boxes of all
    things of that shape, whatever else the text says of them.

    Raises:  ValueError for data without known boxes.
    """
    boxes = boxes_of(dataset, split.image_ids)
    for text, caption in enumerate(split.texts):
        image = int(split.image_of_text[text])
        for named in named_shapes(caption):
            found = [box[1:] for box in boxes[image]
                     if box[0].split()[-1] == SHAPES[named.number]]
            if found:
                yield Target(text, image, named, np.clip(np.array(found, float), 0, 1))


def scene_pointing(dataset: RetrievalDataset, split: Split, looks: Sequence[Look]) -> pd.DataFrame:
    """How much of what a model looks at falls in the boxes that each noun names.

    Args:    looks: one for each text, at its own image, as `Looker.maps` gives them. Where a look
             has no row for each word, the mean of its rows stands for every word.
    Returns: a row for each noun, with the measures and the maps that look nowhere of
             `word_pointing`: text, image, class (the shape), mass, … A region that lies nowhere
             (the detector invents some) is beside every box.
    Raises:  ValueError for another number of looks, data without known boxes, no noun that names a
             shape of its picture.
    """
    if len(looks) != len(split.texts):
        raise ValueError(f"looks must be one for each text of split {split.name}: "
                         f"{len(split.texts)}; got {len(looks)}")
    places = {int(image): look.boxes
              for image, look in zip(split.image_of_text, looks, strict=True)}
    return target_rows(scene_targets(dataset, split), SHAPES, word_maps(split, looks),
                       places.__getitem__,
                       f"no text of split {split.name} names a shape that its picture shows")
