"""Batches that the tests of losses share."""

import torch
from torch.nn.functional import normalize

from itr_study.models.base import ModelOutput


def random_batch(seed):
    """float64 scores in [-1, 1] and 0/1 relevance of 7 to 10 images.

    Even seeds: every image with 1 to 3 texts in random order, rectangular. Odd seeds: a training
    batch, square, where an image may have been drawn more than once.
    """
    g = torch.Generator().manual_seed(seed)
    n = int(torch.randint(7, 11, (1,), generator=g))
    if seed % 2:
        images = torch.cat((torch.arange(n), torch.randint(0, n, (2,), generator=g)))
        texts = images
    else:
        images = torch.arange(n)
        texts = images.repeat_interleave(torch.randint(1, 4, (n,), generator=g))
        texts = texts[torch.randperm(len(texts), generator=g)]
    relevance = (images[:, None] == texts[None, :]).double()
    return 2 * torch.rand(relevance.shape, generator=g, dtype=torch.float64) - 1, relevance


def graded_batch(seed):
    """As random_batch, with relevance in [-1, 1 - 1e-4] where there is no match."""
    scores, relevance = random_batch(seed)
    g = torch.Generator().manual_seed(1000 + seed)
    between = 2 * torch.rand(relevance.shape, generator=g, dtype=torch.float64) - 1
    return scores, relevance.where(relevance == 1, between.clamp(max=1 - 1e-4))


def random_output(seed, images=5, texts=7, heads=3, size=4):
    """An output of I images and T texts in float64, and relevance with some images twice."""
    random = torch.Generator().manual_seed(seed)
    vectors = torch.randn(images, heads, size, generator=random, dtype=torch.float64)
    words = torch.randn(texts, 2, size, generator=random, dtype=torch.float64)
    unit, text_unit = normalize(vectors, dim=2), normalize(words, dim=2)
    scores = torch.einsum("ikd,td->kit", unit, text_unit[:, 0])
    owner = torch.randint(images, (texts,), generator=random)
    relevance = (owner == torch.arange(images)[:, None]).double()
    mask = torch.randint(2, (images, heads), generator=random).double()
    return ModelOutput(scores.amax(dim=0), head_scores=scores, subembeddings=unit,
                       residuals=vectors, mask=mask, text_subembeddings=text_unit,
                       text_residuals=words), relevance
