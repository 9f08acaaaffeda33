"""Batches that the tests of losses share."""

import torch

from itr_study.losses.check import example_batch as random_batch
from itr_study.losses.check import example_output
from itr_study.models.base import ModelOutput


def graded_batch(seed):
    """As random_batch, with relevance in [-1, 1 - 1e-4] where there is no match."""
    scores, relevance = random_batch(seed)
    g = torch.Generator().manual_seed(1000 + seed)
    between = 2 * torch.rand(relevance.shape, generator=g, dtype=torch.float64) - 1
    return scores, relevance.where(relevance == 1, between.clamp(max=1 - 1e-4))


def random_output(seed, **sizes):
    """An output of I images and T texts in float64, and relevance with some images twice."""
    fields, relevance = example_output(seed, **sizes)
    return ModelOutput(**fields), relevance
