"""Encode a split once, score it in blocks, and measure the scores.

Padding and block size do not change a result, but for the last bit of a matrix product: codes are
padded with zeros that models mask. The block size is constant, so runs repeat exactly.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from itr_study.data.batches import EncodedSplit
from itr_study.evaluation.measures import (
    MEASURES,
    Heads,
    Scored,
    all_scores,
    costs,
    kept_of,
    measure,
    measure_columns,
)
from itr_study.evaluation.table import RETRIEVAL, retrieval_table
from itr_study.metrics import Ranks, ranks
from itr_study.metrics.scores import AnyScores
from itr_study.models.base import (
    Code,
    check_model,
    compares_pairs,
    device_of,
    encoded,
    has_heads,
    scored,
)
from itr_study.progress import counting_if_slow
from itr_study.rerank import Bank

BLOCK = 256  # items encoded, and images scored, at a time
TEXT_BLOCK = 2048  # texts scored at a time
HEAD_BLOCK = 32  # images whose heads are scored with all texts at a time

VERSION = 1  # raised when numbers of an evaluation change; part of every run id
Device = torch.device | str | None  # where to compute; None: the model's own


def columns(dataset: str, split: str, model: str = "",
            needs: Collection[str] = MEASURES) -> tuple[str, ...]:
    """Name the columns of an evaluation, in order; arguments as in `measure_columns`."""
    return RETRIEVAL + measure_columns(dataset, split, model, needs)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The numbers of a split."""

    table: dict[str, float]  # percent (R@K, RSUM, measures), MedR and MeanR as ranks
    ranks: Ranks  # of every query
    images: Code  # on the CPU, in the order of the split, as texts
    texts: Code
    costs: dict[str, float] = field(default_factory=dict)  # of the measures, in seconds
    kept: dict[str, np.ndarray] = field(default_factory=dict)  # see `kept_of`
    scores: dict[str, Tensor] = field(default_factory=dict)  # see `all_scores`


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Switch off dropout, batch statistics and gradients; restore the mode of every module."""
    before = [(module, module.training) for module in model.modules()]
    if any(training for _, training in before):  # setting it again costs more than a small model
        model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, training in before:  # each its own: some may be frozen
            if module.training != training:
                module.training = training


def encode(model: nn.Module, split: EncodedSplit, device: Device = None) -> tuple[Code, Code]:
    """Encode all images and all texts of a split, in its order, float32 on the CPU."""
    return encode_images(model, split, device), encode_texts(model, split, device)


def encode_images(model: nn.Module, split: EncodedSplit, device: Device = None) -> Code:
    """Encode all images of a split; see `encode`."""
    device = device or device_of(model)
    with evaluating(model):
        return join([encoded(model, model.encode_images, split.image_batch(block).to(device),
                             len(block)) for block in blocks(split.n_images, BLOCK)])


def encode_texts(model: nn.Module, split: EncodedSplit, device: Device = None) -> Code:
    """Encode all texts of a split; see `encode`."""
    device = device or device_of(model)
    lengths = np.zeros(split.n_texts) if split.tokens is None else list(map(len, split.tokens))
    order = np.argsort(lengths, kind="stable")  # similar lengths together: less padding
    texts = None
    with evaluating(model):
        for block in reversed(blocks(split.n_texts, BLOCK)):  # the longest first: room for all
            rows = order[block]
            code = encoded(model, model.encode_texts, split.text_batch(rows).to(device), len(rows))
            texts = placed(texts, code, torch.from_numpy(rows), split.n_texts)
    return texts


def as_vectors(model: nn.Module, images: Code, texts: Code | None) -> tuple[np.ndarray, np.ndarray]:
    """Return codes as vectors, images (I, D) and texts (T, D), if there is one for each."""
    if not all(isinstance(code, Tensor) and code.ndim == 2 for code in (images, texts)):
        raise ValueError(
            "there must be one vector for each image and each text, but "
            f"{type(model).__name__} gives several, or the split has no texts; take a model of one "
            "vector, such as two_branch, and a split with captions")
    return images.numpy(), texts.numpy()


def score(model: nn.Module, images: Code, texts: Code, device: Device = None) -> Tensor:
    """Score all pairs of two codes block by block: (I, T) float32 on the CPU."""
    device = device or device_of(model)
    n_images, n_texts = len(first(images)), len(first(texts))
    scores = torch.empty(n_images, n_texts)
    with evaluating(model), counting_if_slow("scoring", scores.numel(), "pairs") as show:
        for columns in blocks(n_texts, TEXT_BLOCK):
            some_texts = take(texts, torch.from_numpy(columns), device)
            for rows in blocks(n_images, BLOCK):
                some_images = take(images, torch.from_numpy(rows), device)
                part = scored(model, some_images, some_texts).scores
                scores[rows[0]:rows[-1] + 1, columns[0]:columns[-1] + 1] = part
                show(n_images * columns[0] + (rows[-1] + 1) * len(columns))
    return scores


def head_pieces(model: nn.Module, images: Code, texts: Code,
                device: Device = None) -> Iterator[tuple[int, Tensor]]:
    """Score every vector of an image with all texts; yield (first image, (i, K, T)) in order."""
    device = device or device_of(model)
    with evaluating(model):
        texts = take(texts, torch.arange(len(first(texts))), device)
        for rows in blocks(len(first(images)), HEAD_BLOCK):
            output = scored(model, take(images, torch.from_numpy(rows), device), texts)
            yield int(rows[0]), output.head_scores.transpose(0, 1)


def evaluate(model: nn.Module, split: EncodedSplit, device: Device = None,
             measures_of: str | None = None, bank: Evaluation | None = None) -> Evaluation:
    """Encode, score and measure one split with the model as it is.

    Args:
        model: as in `models.base`.
        split: encoded.
        device: where to compute; None: the model's own.
        measures_of: data set whose measures to take (see `measures`); None: retrieval only.
        bank: evaluation of the dev split, to measure the test split re-ranked (see `reranked`).
    Raises: ValueError: another kind of model or split, or a score that is not a number.
    """
    check_model(model)
    check_split(split)
    images, texts = encode(model, split, device)
    scores = score(model, images, texts, device)
    if measures_of is None:
        return Evaluation(*evaluate_scores(scores, split), images, texts)
    others = bank and Bank(
        images=lambda some: score(model, bank.images, take(texts, some), device),
        texts=lambda some: score(model, take(images, some), bank.texts, device))
    if others and compares_pairs(model):  # slow: `all_scores` takes them, too
        others = Bank(others.made("images"), others.made("texts"))
    heads = partial(head_pieces, model, images, texts, device) if has_heads(model) else None
    measured, best = evaluate_scores(scores, split, measures_of, others, heads)
    spent = {name: measured.pop(name) for name in costs() & set(measured)}
    return Evaluation(measured, best, images, texts, spent, kept_of(scores, split, measures_of),
                      all_scores(model, scores, split, others))


def evaluate_scores(scores: AnyScores, split: EncodedSplit, measures_of: str | None = None,
                    bank: Bank | None = None,
                    heads: Heads | None = None) -> tuple[dict[str, float], Ranks]:
    """Compute the table (with costs of measures) and the ranks of scores of a split.

    Takes scores (I, T), or `Scores` of each direction; the data set whose measures to take, None:
    retrieval only; for re-ranking the scores of the queries of another split; and what gives the
    scores of the vectors of images, for `head_entropy`.

    Raises: ValueError: a score that is not a number.
    """
    best = ranks(scores, split.image_of_text)
    table = retrieval_table(best)
    if measures_of:
        table |= measure(Scored(scores, split, bank, heads), measures_of)
    return table, best


def check_split(split: EncodedSplit) -> None:
    """Raise ValueError unless it is one encoded split."""
    if isinstance(split, EncodedSplit):
        return
    found = type(split).__name__
    if all_encoded(split):
        raise ValueError('evaluate takes one split, such as data.splits["test"], got all of them '
                         f"(a {found})")
    raise ValueError('split must be encoded: data = itr.encode_dataset(dataset), then '
                     f'data.splits["test"]; got a {found}')


def all_encoded(data: object) -> bool:
    """Whether it has splits, and all of them are arrays."""
    splits = getattr(data, "splits", None)
    return isinstance(splits, dict) and all(isinstance(s, EncodedSplit) for s in splits.values())


def blocks(count: int, size: int) -> list[np.ndarray]:
    """Cut 0 … count-1 into runs of `size`."""
    return [np.arange(start, min(start + size, count)) for start in range(0, count, size)]


def first(code: Code) -> Tensor:
    """Return the code itself, or the first tensor of a tuple."""
    return code if isinstance(code, Tensor) else code[0]


def take(code: Code, rows: Tensor | slice, device: torch.device | str = "cpu") -> Code:
    """Take the given rows of every tensor of a code, on a device."""
    if isinstance(code, Tensor):
        return code[rows if isinstance(rows, slice) else rows.to(code.device)].to(device)
    return tuple(take(part, rows, device) for part in code)


def placed(whole: Any, code: Code, rows: Tensor, count: int) -> Code:
    """Write a code to some rows of the whole, on the CPU; other axes grow with zeros."""
    if not isinstance(code, Tensor):
        return tuple(placed(whole and whole[k], part, rows, count) for k, part in enumerate(code))
    part = code.float().cpu() if code.is_floating_point() else code.cpu()
    whole = part.new_zeros(count, *part.shape[1:]) if whole is None else widened(
        whole, part.shape[1:])
    whole[(rows, *map(slice, part.shape[1:]))] = part
    return whole


def join(codes: list[Code]) -> Code:
    """Join blocks of a code on the CPU; axes that differ (words) are padded with zeros."""
    if not isinstance(codes[0], Tensor):
        return tuple(join(list(parts)) for parts in zip(*codes, strict=True))
    parts = [part.float().cpu() if part.is_floating_point() else part.cpu() for part in codes]
    sizes = [max(axis) for axis in zip(*(part.shape[1:] for part in parts), strict=True)]
    return torch.cat([widened(part, sizes) for part in parts])


def widened(code: Tensor, sizes: Sequence[int]) -> Tensor:
    """Pad the axes after the first with zeros, up to these sizes."""
    short = [max(0, want - have) for want, have in zip(sizes, code.shape[1:], strict=True)]
    return pad(code, [n for amount in reversed(short) for n in (0, amount)]) if any(short) else code
