"""Whether words look at what they name, on generated pictures, where every box is known."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from itr_study.data.base import RetrievalDataset, Split
from itr_study.data.box_table import Named
from itr_study.data.scenes.words import NOUNS, SHAPES, plural
from itr_study.data.vocabulary import tokenize
from itr_study.evaluation.looks import Look, word_maps
from itr_study.evaluation.pointing import Target, boxes_of, check_each_text, target_rows

# Nouns, singular and plural, to the number of the shape they name; vague ones are out.
SHAPE_OF = {form: SHAPES.index(shape) for shape, nouns in NOUNS.items()
            for noun in nouns for form in (noun, plural(noun))}


def named_shapes(caption: str) -> list[Named]:
    """Find the words of a caption that name a shape, in their order.

    Example:
        >>> [(named.start, SHAPES[named.number]) for named in named_shapes("A red hoop on boxes")]
        [(2, 'ring'), (4, 'block')]
    """
    return [Named(place, place + 1, SHAPE_OF[word]) for place, word in enumerate(tokenize(caption))
            if word in SHAPE_OF]


def scene_targets(dataset: RetrievalDataset, split: Split) -> Iterator[Target]:
    """Yield every noun for a shape of the text's own picture, with all boxes of that shape."""
    boxes = boxes_of(dataset, split.image_ids)
    for text, caption in enumerate(split.texts):
        image = int(split.image_of_text[text])
        for named in named_shapes(caption):
            found = [box[1:] for box in boxes[image] if box[0].split()[-1] == SHAPES[named.number]]
            if found:
                yield Target(text, image, named, np.clip(np.array(found, float), 0, 1))


def scene_pointing(dataset: RetrievalDataset, split: Split, looks: Sequence[Look]) -> pd.DataFrame:
    """Compute how much of what a model looks at falls in the boxes that each noun names.

    Takes a look for each text, at its own image, as `Looker.maps` gives them; without a row for
    each word their mean counts for every word. Returns a row for each noun, with the columns of
    `word_pointing`; class is the shape.

    Raises: ValueError: another number of looks, data without known boxes, no noun for a shape of
        its picture.
    """
    check_each_text("looks", looks, split)
    places = {int(image): look.boxes
              for image, look in zip(split.image_of_text, looks, strict=True)}
    return target_rows(scene_targets(dataset, split), SHAPES, word_maps(split, looks),
                       places.__getitem__,
                       f"no text of split {split.name} names a shape that its picture shows")
