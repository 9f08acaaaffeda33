"""Frozen encoders: pictures -> region features, texts -> sentence vectors; cached on the disk."""

from itr_study.encoders.base import WeightsError
from itr_study.encoders.dataset import encode_dataset
from itr_study.encoders.encoded import EncodedData
from itr_study.encoders.glove import word_vectors
from itr_study.encoders.registry import IMAGE_ENCODERS, TEXT_ENCODERS
from itr_study.encoders.trainable import trainable_image_encoder
from itr_study.encoders.wordpiece import trainable_text_encoder

__all__ = ["IMAGE_ENCODERS", "TEXT_ENCODERS", "EncodedData", "WeightsError", "encode_dataset",
           "trainable_image_encoder", "trainable_text_encoder", "word_vectors"]
