"""A tiny model, loss and data set of our own: what a user brings to `fit` unregistered."""

from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from itr_study.data.batches import Batch, EncodedSplit, InputSpec
from itr_study.models.base import ModelOutput

REGION_SIZE, WORDS, SIZE = 6, 20, 8


def split(name: str, images: int, seed: int, views: int = 2,
          texts_per_image: int = 3) -> EncodedSplit:
    """Pictures are noisy copies of a few topics; texts are the topic's word among others."""
    random = np.random.default_rng(seed)
    image_of_text = np.repeat(np.arange(images), texts_per_image)
    topics = np.random.default_rng(0).normal(size=(WORDS - 2, REGION_SIZE))
    topic = np.arange(images) % (WORDS - 2)
    regions = topics[topic][:, None, None, :] + 0.3 * random.normal(
        size=(images, views, 1, REGION_SIZE))
    tokens = [np.array([2 + topic[i], *random.integers(2, WORDS, random.integers(0, 5))], np.int64)
              for i in image_of_text]
    return EncodedSplit(name, image_of_text, regions.astype(np.float32), tokens=tokens)


def with_regions(one: EncodedSplit, regions: int = 5) -> EncodedSplit:
    """The split with so many regions a picture, noisy copies of its own; every third has one less.
    """
    noise = np.random.default_rng(7).normal(size=(*one.regions.shape[:2], regions, REGION_SIZE))
    mask = np.ones((one.n_images, regions), bool)
    mask[::3, 1] = False
    return replace(one, regions=(one.regions + noise).astype(np.float32), region_mask=mask)


@dataclass
class SmallData:
    """Stands in for EncodedData: splits, inputs, key."""

    splits: dict[str, EncodedSplit] = field(default_factory=lambda: {
        "train": split("train", 24, 1), "dev": split("dev", 18, 2), "test": split("test", 18, 3)})
    inputs: InputSpec = InputSpec(region_size=REGION_SIZE, vocabulary=WORDS)
    key: str = "0123456789abcdef"


class SmallModel(nn.Module):
    """A bag of words and a linear map, with dropout and batch norm: both have state to lose."""

    def __init__(self, dropout: float = 0.2):
        super().__init__()
        self.image = nn.Sequential(nn.Linear(REGION_SIZE, SIZE), nn.BatchNorm1d(SIZE),
                                   nn.Dropout(dropout), nn.Linear(SIZE, SIZE))
        self.words = nn.Embedding(WORDS, SIZE, padding_idx=0)

    def encode_images(self, batch: Batch) -> Tensor:
        return normalize(self.image(batch.regions.mean(dim=1)).float(), dim=1)

    def encode_texts(self, batch: Batch) -> Tensor:
        words = self.words(batch.tokens).sum(dim=1) / batch.lengths[:, None]
        return normalize(words.float(), dim=1)

    def score(self, images: Tensor, texts: Tensor) -> ModelOutput:
        return ModelOutput(scores=images @ texts.T)


class SmallLoss(nn.Module):
    """Hinge on the hardest text, for scores and binary relevance."""

    def forward(self, scores: Tensor, relevance: Tensor) -> Tensor:
        match = relevance >= 1
        hardest = scores.masked_fill(match, -torch.inf).amax(dim=1, keepdim=True).clamp(min=-2)
        return (0.2 + hardest - scores).clamp(min=0)[match].mean()


def small_model(seed: int = 0) -> SmallModel:
    torch.manual_seed(seed)
    return SmallModel()
