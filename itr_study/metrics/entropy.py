"""Embedding entropy: does an image's vector fit one of its texts, all of them, or none?

The probability of a text is the softmax of its cosine over all texts of the split; all texts that
do not match are one more outcome, the noise. Reported are the entropy of these m + 1 outcomes, and
the share of the noise, without which it cannot be read.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from scipy.special import logsumexp
from torch import Tensor

from itr_study.checks import check_count, check_number
from itr_study.metrics.ranks import as_tensor, check_matrix, vectors_of
from itr_study.metrics.scores import Matrix
from itr_study.metrics.truth import check_image_of_text

TEMPERATURE = 0.07  # sigma^2, as InfoNCE has it here: Eq. 1 is its softmax
UNIT = 1e-3  # by how much a length may differ from 1: float32 codes are nearer
LOWEST = -1e4  # instead of log 0, which times 0 is not a number; e^-10,000 is 0


class Entropy(NamedTuple):
    """`nats`, the entropy H(v), and `noise`, the probability of all texts that do not match.

    float64, one of each for every vector: (I,), or (I, K) for heads.
    """

    nats: np.ndarray
    noise: np.ndarray


def embedding_entropy(images: Matrix, texts: Matrix, image_of_text: np.ndarray,
                      temperature: float = TEMPERATURE, block: int = 32) -> Entropy:
    """Entropy in nats of image vectors against all texts, of one vector an image or of each head.

    From 0, where one outcome has all probability (one text, as a head is meant to do, or the noise,
    where the vector finds nothing), to log(m + 1) for m texts, where all are equal. Low entropy is
    therefore good only where `noise` is small, too. Compare models on one split at one temperature;
    at equal ranks a model whose cosines lie closer together has more noise.

    Args:
        images: (I, D) or (I, K, D), of length 1.
        texts: (T, D) on the same device, of length 1.
        image_of_text: (T,) int, the image that each text describes.
        temperature: > 0; sigma^2 of the paper, which prints no value. (1, about what its Eq. 8
            gives in training, leaves almost all to the noise: of n texts none has over e^2 / n.)
        block: images at a time (memory: about 4 x block x K x T float64); a result may differ in
            the last bit of a product between block sizes.
    Raises: ValueError for NaN, vectors of another length than 1, sizes that differ, an image
        without a text, temperature <= 0.
    Source: dvse, Eqs. 1 and 2; of a head Eq. 5 with one temperature for all heads.
    Differs: the noise is the sum over all texts that do not match, so that probabilities add up
        to 1, which the paper leaves open.
    Example: two texts match and one does not; all are equally near, so each has a third: log 3
        >>> texts = np.array([[0.6, 0.8], [0.6, -0.8], [0.6, 0.8]])
        >>> found = embedding_entropy(np.array([[1.0, 0.0]]), texts[:2], np.array([0, 0]))
        >>> found.nats.round(4), found.noise  # without a text that does not match: log 2
        (array([0.6931]), array([0.]))
        >>> both = np.array([[1.0, 0.0], [1.0, 0.0]])
        >>> found = embedding_entropy(both, texts, np.array([0, 0, 1]))
        >>> found.nats.round(4), found.noise.round(4)  # of image 1 the noise has two thirds
        (array([1.0986, 0.6365]), array([0.3333, 0.6667]))
    """
    vectors, words = vectors_of(images, texts)
    if vectors.ndim not in (2, 3) or words.ndim != 2 or vectors.shape[-1] != words.shape[1] \
            or 0 in vectors.shape:
        raise ValueError("images must be (n_images, D) or (n_images, K, D), texts (n_texts, D); "
                         f"got {tuple(vectors.shape)} and {tuple(words.shape)}")
    check_unit("image", vectors)
    check_unit("text", words)
    owner = check_image_of_text(image_of_text, len(vectors), len(words))
    check_count("block", block)
    pieces = ((start, vectors[start:start + block] @ words.T)
              for start in range(0, len(vectors), block))
    return entropies(pieces, owner, temperature)


def score_entropy(scores: Matrix, image_of_text: np.ndarray,
                  temperature: float = TEMPERATURE, block: int = 32) -> Entropy:
    """Compute `embedding_entropy` of a matrix of scores instead of cosines: (I,) of each row.

    For models that score a pair by more than one vector of the text, such as PVSE's K x K.

    Takes scores (I, T), higher = more alike; the rest as `embedding_entropy`.

    Raises: ValueError for NaN and infinite scores, shapes that differ, an image without a text,
        temperature <= 0.
    Example: the match is three times as likely as the only other text
        >>> found = score_entropy(np.log([[3.0, 1.0], [1.0, 3.0]]), np.array([0, 1]), 1.0)
        >>> found.nats.round(4), found.noise
        (array([0.5623, 0.5623]), array([0.25, 0.25]))
    """
    check_matrix(scores)
    owner = check_image_of_text(image_of_text, *scores.shape)
    check_count("block", block)
    pieces = ((start, as_tensor(scores[start:start + block], "scores"))
              for start in range(0, len(scores), block))
    return entropies(pieces, owner, temperature)


def check_unit(what: str, vectors: Tensor) -> None:
    """Raise ValueError unless all vectors (..., D) have length 1, naming the first that has not."""
    lengths = vectors.norm(dim=-1).cpu()
    off = ~((lengths - 1).abs() <= UNIT)  # so that NaN is off, too
    if off.any():
        place = tuple(int(axis[0]) for axis in torch.nonzero(off, as_tuple=True))
        raise ValueError(f"vectors must be of length 1, NaN is an error; that of {what} {place[0]} "
                         f"has length {float(lengths[place]):.4g}. Normalise them (a zero vector "
                         "has no direction)")


def entropies(pieces: Iterable[tuple[int, Tensor]], owner: np.ndarray,
              temperature: float) -> Entropy:
    """Compute `Entropy` of (first image, scores (i, T) or (i, K, T)) pieces in order."""
    check_number("temperature", temperature, above=0)
    parts = []
    for start, piece in pieces:
        scores = piece.cpu().double().numpy()
        if not np.isfinite(scores).all():
            image, *_, text = place = tuple(np.argwhere(~np.isfinite(scores))[0])
            raise ValueError(f"scores must be finite numbers; found {scores[place]} at image "
                             f"{start + image}, text {text}")
        heads = scores.shape[1] if scores.ndim == 3 else 1
        image = np.repeat(np.arange(start, start + len(scores)), heads)
        rows = scores.reshape(len(image), -1)
        found = rows_entropy(rows / temperature, image[:, None] == owner)
        parts.append([values.reshape(scores.shape[:-1]) for values in found])
    return Entropy(*(np.concatenate(values) for values in zip(*parts, strict=True)))


def rows_entropy(logits: np.ndarray, match: np.ndarray) -> Entropy:
    """Compute `Entropy` of rows of logits (n, T), which are overwritten; match (n, T): their own.

    In log space, so that nothing overflows and small probabilities stay exact.
    """
    row, column = np.nonzero(match)  # row by row; each has a match
    first = np.flatnonzero(np.diff(row, prepend=-1))
    own = logits[row, column]
    logits[row, column] = -np.inf
    others, matched = logsumexp(logits, axis=1), np.logaddexp.reduceat(own, first)
    noise = -np.logaddexp(0, matched - others)  # log P of all that do not match
    share = -np.logaddexp(0, others - matched)  # log P of all that do
    nats = np.add.reduceat(surprise(own + (share - matched)[row]), first) + surprise(noise)
    return Entropy(nats, np.exp(noise))


def surprise(log_p: np.ndarray) -> np.ndarray:
    """Compute -P log P of log P; 0 for P = 0."""
    return -np.exp(log_p) * np.maximum(log_p, LOWEST)
