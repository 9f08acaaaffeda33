"""New pictures for a trained model: the same networks, other images."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from itr_study.data.base import RetrievalDataset
from itr_study.data.batches import EncodedSplit
from itr_study.features.dataset import join_regions
from itr_study.features.images import dataset_features
from itr_study.features.texts import EncodedData
from itr_study.files.paths import home


def with_pictures(data: EncodedData, pictures: RetrievalDataset,
                  store: Path | None = None) -> EncodedData:
    """What a model was trained on, with the pictures of another data set in its splits' place.

    Vocabulary and sentence encoders stay, so that words are read as in training; the texts of
    `pictures` are not encoded. Features are kept: the same pictures are encoded once.

    Args:    store: folder of caches, None = `<home>/features`.
    Raises:  ValueError where features came with the data, for no network makes those.
    """
    if not data.image_encoders:
        raise ValueError(data.needs_network)
    folder = store or home() / "features"
    parts = [dataset_features(pictures, images, folder) for images in data.image_encoders]
    splits = {name: EncodedSplit(name, np.zeros(0, np.int64),
                                 join_regions([features[name] for features in parts]))
              for name in pictures.splits}
    return replace(data, splits=splits, dataset=pictures.name)
