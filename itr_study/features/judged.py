"""Human judgements of a data set, by the rows of a split."""

import numpy as np

from itr_study.data.base import RetrievalDataset, Split
from itr_study.data.batches import JudgedPairs


def judged_pairs(dataset: RetrievalDataset, split: Split) -> dict[str, JudgedPairs]:
    """The judgements of a data set whose image and text both lie in a split, by collection."""
    image_rows = {image: row for row, image in enumerate(split.image_ids)}
    text_rows = {text: row for row, text in enumerate(split.text_ids)}
    pairs = {}
    for name, judgements in dataset.judgements.items():
        in_split = [image in image_rows and text in text_rows for image, text in
                    zip(judgements.image_ids, judgements.text_ids, strict=True)]
        if any(in_split):
            chosen = judgements.take(np.flatnonzero(in_split))
            pairs[name] = JudgedPairs(np.array([image_rows[i] for i in chosen.image_ids]),
                                      np.array([text_rows[t] for t in chosen.text_ids]), chosen)
    return pairs
