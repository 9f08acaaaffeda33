"""Frozen encoders: pictures -> region features, texts -> sentence vectors."""

from itr_study.encoders.base import WeightsError
from itr_study.encoders.glove import word_vectors
from itr_study.encoders.registry import (
    IMAGE_ENCODERS,
    TEXT_ENCODERS,
    trainable_image_encoder,
    trainable_stages,
)
from itr_study.encoders.sentences import trainable_text_encoder

__all__ = ["IMAGE_ENCODERS", "TEXT_ENCODERS", "WeightsError", "trainable_image_encoder",
           "trainable_stages", "trainable_text_encoder", "word_vectors"]
