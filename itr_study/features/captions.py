"""Sentence vectors of captions that belong to no data set of ours, through the cache."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from itr_study.encoders.base import TextEncoder
from itr_study.features.cache import CacheKey, cached
from itr_study.features.texts import BLOCK, fit_once, workers_of
from itr_study.files.atomic import canonical_json
from itr_study.files.paths import home


def caption_vectors(texts: Sequence[str], encoder: TextEncoder, name: str,
                    train: Sequence[str] = (), folder: Path | None = None) -> np.ndarray:
    """Vectors (T, D) float32 of texts, computed once for these texts and this encoder.

    Args:    texts: in any number, such as the 25,000 captions of COCO's test set; name: of the
             texts, for people; train: what the encoder is fitted on, () where it learns nothing;
             folder: of caches, None = `<home>/features`.
    Raises:  ValueError without texts; WeightsError for weights that cannot be found.
    """
    folder = home() / "features" if folder is None else folder
    key = caption_key(texts, encoder, name, train)
    fit_once(key, encoder, list(train), folder)
    return cached(key, len(texts), lambda start, stop: encoder.encode(list(texts[start:stop])),
                  folder, dtype="float32", block=BLOCK, workers=workers_of(encoder))


def caption_key(texts: Sequence[str], encoder: TextEncoder, name: str,
                train: Sequence[str] = ()) -> CacheKey:
    """What the vectors depend on: the texts themselves, the encoder, and what it was fitted on."""
    content = canonical_json([list(texts), list(train)])
    return CacheKey(name, hashlib.sha256(content.encode()).hexdigest(), encoder.name,
                    encoder.version, encoder.settings)
