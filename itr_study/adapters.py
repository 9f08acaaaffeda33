"""The losses and metrics of this package in the training of others; see docs/fine-tuning.md."""

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, pad

from itr_study.checks import (
    MATCH,
    check_choice,
    check_count,
    check_number,
    check_scores,
    check_values,
    gathered,
)
from itr_study.data.batches import Batch, EncodedSplit
from itr_study.evaluation.protocol import owners, score
from itr_study.evaluation.table import retrieval_table
from itr_study.losses._batch import read_relevance
from itr_study.metrics import ranks_from_embeddings
from itr_study.metrics.truth import check_image_of_text, whole_numbers
from itr_study.models.base import ModelOutput, described
from itr_study.relevance import RELEVANCE
from itr_study.training.loop import Given
from itr_study.training.objective import Objective, Term, read_terms

# What the column "label" of a batch holds, and the scale of the relevance that it gives.
SCALES = {"ids": "binary", "pairs": "binary", "column": "unit"}
LARGEST_SCALE = 100.0  # of cosines, as in CLIP
NO_FILE = "sentence-transformers takes a string that names no picture file for a text"
GRADED = ("give labels=captions(image_of_text, ...), with numbers of texts in the column "
          '"label", or a function that gives relevance')
# Changes of a model's weights up to its last batch, as tensors count them.
STEPS: WeakKeyDictionary[nn.Module, int] = WeakKeyDictionary()
ACCUMULATED = (
    "gradients of an earlier batch are there, which is right if a fused optimizer made its step. "
    "Else they accumulate, which adds no negatives, and texts of one image in two batches are no "
    "matches of each other: take gradient_accumulation_steps=1, a larger "
    "per_device_train_batch_size, and RankingLoss(..., mini_batch_size=32) for memory")


@cache
def joined(own: type, module: str, name: str) -> type:
    """Make the subclass of a class here and one of sentence-transformers, imported now."""
    try:
        other = vars(import_module(f"sentence_transformers.{module}"))[name]
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{own.__name__} needs sentence-transformers: pip install "
                                  "'itr-study[adapters]'", name=error.name) from error
    return own if issubclass(own, other) else type(own.__name__, (own, other), {})


def compare(images: Tensor, texts: Tensor, scale: Any = 1.0) -> ModelOutput:
    """Scale the cosines (I, T) of embeddings (I, D) and (T, D), in float32 at least.

    Raises: ValueError: other shapes; a scale that is no number; embeddings that are not finite.
    """
    for name, vectors in (("images", images), ("texts", texts)):
        if not isinstance(vectors, Tensor) or vectors.ndim != 2 or not vectors.is_floating_point():
            raise ValueError(f"{name} must be embeddings (n, D), got {described(vectors)}; give a "
                             "CLIPModel's image_embeds and text_embeds, open_clip's image_features "
                             "and text_features, or get_image_features(...).pooler_output")
    if images.shape[1] != texts.shape[1]:
        raise ValueError(f"the towers disagree: images have {images.shape[1]} numbers, texts "
                         f"{texts.shape[1]}; end one of them in a linear layer of the other's size")
    if not isinstance(scale, Tensor) or scale.numel() != 1:
        check_number("scale", scale.item() if isinstance(scale, np.generic) else scale, above=0)
    kind = torch.promote_types(torch.promote_types(images.dtype, texts.dtype), torch.float32)
    with torch.autocast(images.device.type, enabled=False):
        first, second = (normalize(one.to(kind), dim=1) for one in (images, texts))
        scores = scale * (first @ second.T)
        asked = [part.detach().reshape(()).to(scores.device) > 0 for part in [scale]
                 if isinstance(part, Tensor)]
        check_values(torch.stack([scores.detach().isfinite().all(), *asked]), lambda found: (
            "embeddings or scale are not finite: training has diverged, or inputs hold NaN; take a "
            "smaller learning rate, a warm-up, or bf16 in place of fp16" if not found[0] else
            None if found[-1] else "scale must be > 0, such as CLIP's logit_scale.exp()"))
        return ModelOutput(scores, subembeddings=first[:, None], text_subembeddings=second[:, None])


def reading(objective: Given, scale: str, remedy: str) -> Objective:
    """Make an objective that is given relevance (I, T) on this scale in place of a batch.

    Raises: ValueError: matches alone ("binary") for a loss that compares graded labels; `remedy`.
    """
    given: Any = lambda relevance, split: relevance  # noqa: E731
    given.scale = "unit" if scale == "binary" else scale
    terms = named(objective)
    made = Objective([replace(term, labels=given, label_arguments={}) for term in terms])
    for name, term, loss in zip(made.names, terms, made.ranking_losses, strict=True):
        if scale == "binary" and (term.labels != "binary" or loss.relevance_scale == "cosine"):
            raise ValueError(f"{name} needs graded labels, and these are matches alone: {remedy}")
    return made


def named(objective: Given) -> tuple[Term, ...]:
    """Return the terms of an objective, those of a name, or the one of a loss."""
    if isinstance(objective, Objective):  # with its losses, which may learn
        return tuple(replace(term, loss=loss, arguments={})
                     for term, loss in zip(objective.terms, objective.losses, strict=True))
    return read_terms([Term(objective)] if callable(objective) else objective)


def contrastive(images: Tensor, texts: Tensor, objective: Any = "info_nce", relevance: Any = None,
                scale: float | Tensor = 1.0) -> Tensor:
    """Compute a loss () of embeddings (I, D) and (T, D), of any length.

    Args:
        images: of a batch.
        texts: of it.
        objective: as of RankingLoss; `relevance` replaces its label sources.
        relevance: (I, T) in [0, 1], 1 for a match; or ids, equal for a match, (N,) of N pairs or
            (image_ids, text_ids); None: image i belongs to text i alone.
        scale: of the cosines, such as CLIP's `logit_scale.exp()`, for a loss with temperature=1.
    Raises: ValueError: as the losses; towers that differ in size; no match; one pair alone; ids for
        a loss of graded labels; embeddings that are not finite.

    Example: the second text is nearer to the first image than to its own
        >>> from itr_study.losses import LOSSES
        >>> images, texts = torch.eye(2), torch.tensor([[1.0, 0.0], [1.0, 0.0]])
        >>> contrastive(images, texts, LOSSES["triplet_hardest"](margin=0.5)).item()
        1.25
    """
    with gathered() as checks:
        output = compare(images, texts, scale)
        made: Any = read_relevance(output.scores, relevance, None)
        loss = reading(objective, "binary" if made is not relevance else "unit",
                       "give relevance (n_images, n_texts), 1 for a match and less for the others")
        check_scores(output.scores, made)
        made = made.float() if made.dtype == torch.bool else made
        check_values(torch.stack(made.detach().aminmax()), lambda found: (
            "this batch has no negatives, so nothing is learnt: give larger batches, shuffle, and "
            "set drop_last=True in the DataLoader" if found[0] >= MATCH else
            f"relevance must be in [0, 1], 1 for a match, found {found[0]:g} to {found[1]:g}; of "
            "cosines c give (1 + c) / 2" if not 0 <= found[0] <= found[1] <= 1 else
            "image_ids and text_ids share no number, so this batch has no match: texts of an image "
            "have its number" if made is not relevance and found[1] < MATCH else None))
        value, _ = loss(output, made, None)
        checks.read()
    return attached(value, output.scores)


def attached(value: Tensor, scores: Tensor) -> Tensor:
    """Give a loss of 0 that no score moves, as of a batch without pairs, a gradient of 0."""
    idle = scores.requires_grad and not value.requires_grad and value == 0
    return value + 0 * scores.sum() if idle else value


class RankingLoss(nn.Module):
    """A loss of this package for SentenceTransformerTrainer, on the cosines of a batch.

    A row has a picture, then its text; texts of further columns are hard negatives.

    Args:
        objective: what `fit` takes: a name, a loss, a list of Term, an Objective.
        labels: what the column "label" holds. "ids": a whole number, equal for texts of one image.
            "pairs": there is no such column. "column": relevance in [0, 1] of the row's texts to
            its image, a number or a list; of all other pairs, even of a second row with that image,
            it is 0. An EncodedSplit (`captions`): the number of the text, for label sources. A
            function: anything; it makes relevance (I, T), on the scale of its attribute `scale`.
        scale: > 0, of the cosines, for losses with a temperature of 1.
        learn_scale: whether the trainer learns it too, up to 100.
        forgive: leave out likely false negatives: no matches, but at least so relevant by the
            objective's graded labels, or those of sentences. Their scores count as the least in
            losses of matches alone (relevance_scale "binary"); others read their labels.
        mini_batch_size: rows embedded at a time: GradCache, which embeds all twice.
    Raises: ValueError: a batch without pictures, labels or negatives; labels of another kind;
        embeddings that are not finite.
    Warns: UserWarning: if gradients are accumulated; if a number of a text is twice in a batch.
    """

    def __new__(cls, *_: Any, **__: Any) -> "RankingLoss":
        """Make an instance with the GradCache of sentence-transformers."""
        return super().__new__(joined(cls, "base.losses.gradcache", "CachedLossMixin"))

    def __init__(self, model: nn.Module, objective: Given = "info_nce",
                 labels: str | EncodedSplit | Callable[[Tensor], Tensor] = "ids", *,
                 scale: float = 1.0, learn_scale: bool = False, forgive: float | None = None,
                 mini_batch_size: int | None = None) -> None:
        super().__init__()
        check_number("scale", scale, above=0, most=LARGEST_SCALE)
        check_number("forgive", 1 if forgive is None else forgive, above=0, most=1)
        check_count("mini_batch_size", 1 if mini_batch_size is None else mini_batch_size)
        check_choice("learn_scale", learn_scale, [True, False])
        self.model, self.labels, self.forgive = model, labels, forgive
        self.mini_batch_size, self.uses_gradient_cache = mini_batch_size, bool(mini_batch_size)
        self.split = labels if isinstance(labels, EncodedSplit) else None
        if self.split is not None:
            self.register_buffer("owners", torch.from_numpy(self.split.image_of_text), False)
            self.objective = Objective(named(objective))
        else:
            check_choice("labels (or captions(...), a function)", labels,
                         [*SCALES, *[labels] * callable(labels)])
            scale_of = getattr(labels, "scale", "unit") if callable(labels) else SCALES[labels]
            self.objective = reading(objective, scale_of, GRADED)
            if forgive is not None and scale_of == "binary":
                raise ValueError(f"forgive={forgive} needs graded labels, and {labels!r} are "
                                 f"matches alone: {GRADED}")
        self.grader = next((one for one in self.objective.sources.values() if self.split is None
                            or one.scale != "binary"), RELEVANCE["sentence"]())
        self.log_scale = nn.Parameter(torch.tensor(math.log(scale)), requires_grad=learn_scale)
        self.own = [weight for weight in (*self.objective.parameters(), self.log_scale)
                    if weight.requires_grad]
        self.own_gradients: list[Tensor] = []

    def forward(self, sentence_features: Iterable[dict[str, Any]],
                labels: Tensor | None = None) -> Tensor:
        """Return the loss () of a batch as the trainer collates it."""
        features = list(sentence_features)
        pictures = ["pixel_values" in column for column in features]
        if len(pictures) < 2 or pictures != [True] + [False] * (len(pictures) - 1):
            raise ValueError("a batch needs a column of pictures, then one of texts, and has "
                             f"{len(features)}, with pictures in {sum(pictures)}: add it, then "
                             'dataset.select_columns(["image", "text", "label"]); ' + NO_FILE)
        if not self.mini_batch_size:
            embed = import_module("sentence_transformers.base.losses.merged_forward").embed_columns
            images, *texts = embed(self.model, features)
            return self.of_embeddings(images, torch.cat(texts), labels)
        loss = self.forward_cached(features, labels)
        return loss + sum((gradient * (weight - weight.detach())).sum() for weight, gradient in zip(
            self.own, self.own_gradients, strict=False))  # adds 0, for the gradient

    def calculate_loss(self, reps: list[list[Tensor]], labels: Tensor | None = None, *,
                       with_backward: bool = False) -> Tensor:
        """Return the loss () of columns embedded in parts; GradCache asks for their gradients."""
        images, *texts = (torch.cat(column) for column in reps)
        value = self.of_embeddings(images, torch.cat(texts), labels)
        self.own_gradients = []
        if not with_backward:
            return value
        parts = [part for column in reps for part in column]
        gradients = torch.autograd.grad(value, [*parts, *self.own], allow_unused=True,
                                        materialize_grads=True)
        for part, gradient in zip(parts, gradients, strict=False):
            part.grad = gradient
        self.own_gradients = list(gradients[len(parts):])
        return value.detach()

    def of_embeddings(self, images: Tensor, texts: Tensor, labels: Tensor | None) -> Tensor:
        """Return the loss () of images (N, D) and texts (T, D), T a multiple of N: columns."""
        if not len(images) or len(texts) % len(images):
            raise ValueError(f"{len(texts)} texts are no whole number of columns of {len(images)} "
                             "rows: give each row a picture, and a text in each further column")
        with gathered() as checks:
            output = compare(images, texts)
            batch, match = self.read_labels(labels, output.scores)
            if torch.is_grad_enabled():
                check_values(match.all(), lambda all_match: f"this batch of {len(images)} has no "
                             "negative: raise per_device_train_batch_size, shuffle, and set "
                             "dataloader_drop_last=True" if all_match[0] else None)
                learnt = [one for one in self.model.parameters() if one.requires_grad]
                before, STEPS[self.model] = STEPS.get(self.model), sum(
                    one._version for one in learnt)
                if STEPS[self.model] == before and any(one.grad is not None for one in learnt):
                    warnings.warn(ACCUMULATED, stacklevel=2)
            with torch.no_grad():  # the weight itself: a clamp of its exponential has no gradient
                self.log_scale.clamp_(max=math.log(LARGEST_SCALE))
            scale = self.log_scale.exp()
            scaled, lenient = replace(output, scores=output.scores * scale), None
            if self.forgive is not None:
                likely = (self.grader(batch, self.split) >= self.forgive) & ~match
                least = output.scores.detach().amin() - 1
                lenient = replace(output, scores=output.scores.masked_fill(likely, least) * scale)
            value, _ = self.objective(scaled, batch, self.split, lenient)
            checks.read()
        return attached(value, scaled.scores)

    def read_labels(self, labels: Any, scores: Tensor) -> tuple[Any, Tensor]:
        """Return what label sources get, a Batch or relevance (I, T), and which pairs match.

        Raises: ValueError: as the class.
        """
        (rows, texts), split = scores.shape, self.split is not None
        if (labels is None) != (self.labels == "pairs"):
            raise ValueError(f'the batch has {"no" if labels is None else "a"} column "label". If '
                             'texts share images, dataset.add_column("label", image_ids), and take '
                             'labels="ids"; if not, remove_columns("label"), and labels="pairs"')
        if (split or self.labels == "ids") and (
                not isinstance(labels, Tensor) or labels.shape != (rows,) or labels.dtype ==
                torch.bool or labels.is_floating_point() or labels.is_complex()):
            raise ValueError(f'the column "label" must hold {rows} whole numbers, and has '
                             f'{described(labels)}; relevance is for labels="column"')
        if split and texts > rows:
            raise ValueError("with captions(...) there must be one column of texts, not "
                             f"{texts // rows}")
        if split:
            most = len(self.owners) - 1
            def complaint(found: list[float]) -> str | None:
                if found[2]:
                    warnings.warn('"label" has a number twice in a batch: right for a text drawn '
                                  "twice, but it must number texts, not images", stacklevel=2)
                return None if 0 <= found[0] and found[1] <= most else 'the column "label" must ' \
                    f"hold numbers of texts, 0 to {most}; has {found[0]:.0f} to {found[1]:.0f}"
            labels = labels.long()
            twice = (labels.sort().values.diff() == 0).sum()
            check_values(torch.stack([*labels.aminmax(), twice]), complaint)
            ids = self.owners[labels.clamp(0, most)]
            return (batch := Batch(ids, labels, ids)), batch.match
        if self.labels == "column" and isinstance(labels, Tensor) and labels.ndim \
                and len(labels) == rows and labels.numel() == texts:
            columns = labels.reshape(rows, -1).T + 0.0
            relevance = torch.cat([torch.diag(column) for column in columns], 1)
        elif self.labels in ("ids", "pairs"):
            same = torch.arange(rows, device=scores.device) if labels is None else labels
            relevance = pad((same[:, None] == same).float(), (0, texts - rows))
        else:
            relevance = self.labels(labels) if callable(self.labels) else labels
        if not isinstance(relevance, Tensor) or relevance.shape != scores.shape:
            raise ValueError(f'of the column "label", {described(labels)}, must come relevance '
                             f"{tuple(scores.shape)}, and comes {described(relevance)}; for "
                             'labels="column" give each row a number for each of its texts')
        if callable(self.labels) or self.labels == "column":
            least = -1 if getattr(self.labels, "scale", "unit") == "cosine" else 0
            ends = torch.stack(relevance.detach().float().aminmax())
            check_values(ends, lambda found: None if least <= found[0] and found[1] <= 1 else (
                f'the column "label" must give relevance in [{least}, 1], has {found[0]:g} to '
                f'{found[1]:g}; numbers of images are for labels="ids"'))
        return relevance, relevance >= MATCH


def captions(image_of_text: Sequence[int] | np.ndarray, **label_vectors: Any) -> EncodedSplit:
    """Describe T texts to label sources, for `RankingLoss(labels=...)`.

    Args:
        image_of_text: (T,) the image of each, 0 to I - 1; ValueError if an image has no text.
        label_vectors: what sources read, by name: minilm=, (T, 384) sentence vectors, for
            "sentence"; cider=Ngrams().fit(texts, image_of_text).encode(texts) for "cider".
    """
    owner = whole_numbers(image_of_text)
    images = int(owner.max()) + 1
    return EncodedSplit("train", check_image_of_text(owner, images, len(owner)),
                        np.zeros((images, 1, 1, 0), np.float32), label_vectors=label_vectors)


class ImageTextEvaluator:
    """R@K in percent, ranks and RSUM of both directions, without all scores in memory.

    Args:
        images: pictures or their paths.
        texts: captions.
        image_of_text: (T,) the place of each text's image; None: equally many texts an image.
        relevance: (I, T) in [0, 1], for all measures of `itr.score`, which keeps all scores.
        name: before the name of each number, and in that of the CSV file.
        primary: the number that chooses the best checkpoint.
        write_csv: whether to add a line to image_text_evaluation_<name>_results.csv, with
            relevance _<name>_graded_results.csv.
    Raises: ValueError: images and texts that do not fit; another `primary` than there are.
    """

    def __new__(cls, *_: Any, **__: Any) -> "ImageTextEvaluator":
        """Make an instance that the trainer knows as an evaluator."""
        return super().__new__(joined(cls, "base.evaluation", "BaseEvaluator"))

    def __init__(self, images: Sequence[Any], texts: Sequence[str],
                 image_of_text: Sequence[int] | np.ndarray | None = None, *,
                 relevance: Any = None, name: str = "", batch_size: int = 32,
                 primary: str = "rsum", write_csv: bool = True) -> None:
        super().__init__()
        self.images = [str(one) if isinstance(one, Path) else one for one in images]
        self.texts = list(texts)
        if isinstance(texts, str) or not all(isinstance(one, str) for one in self.texts):
            raise ValueError("texts must be a list of strings, one for each caption")
        check_count("batch_size", batch_size)
        is_picture = import_module("sentence_transformers.base.modality").is_image_url_or_path
        for one in (one for one in self.images if one is None or isinstance(one, str)
                    and not is_picture(one)):
            raise ValueError(f"{one!r} is no file here that ends as pictures do, such as .jpg: "
                             f"open it with PIL, or mend the path; {NO_FILE}")
        sizes = len(self.images), len(self.texts)
        self.owners = owners(sizes, None) if image_of_text is None else check_image_of_text(
            image_of_text, *sizes)
        self.relevance = None if relevance is None else relevance.detach().cpu().numpy() \
            if isinstance(relevance, Tensor) else np.asarray(relevance)
        if self.relevance is not None and not (
                self.relevance.shape == sizes and self.relevance.dtype.kind in "fiub"
                and ((self.relevance >= 0) & (self.relevance <= 1)).all()
                and (self.relevance[self.owners, np.arange(sizes[1])] >= MATCH).all()):
            raise ValueError(f"relevance must be {sizes}, numbers in [0, 1], 1 for texts of the "
                             f"image, got {self.relevance.shape} of {self.relevance.dtype}")
        self.name, self.batch_size, self.write_csv = name, batch_size, write_csv
        self.csv_file = "_".join(filter(None, (
            "image_text_evaluation", name, "graded" * (relevance is not None), "results.csv")))
        two = torch.eye(2)
        known = measured(two, two, np.arange(2), None if relevance is None else np.eye(2))
        if primary not in self.prefix_name_to_metrics(known, name):
            check_choice("primary", primary, known)
            primary = f"{name}_{primary}"
        self.primary_metric = primary
        self.greater_is_better = not primary.endswith(("medr", "meanr"))

    def __call__(self, model: Any, output_path: str | None = None, epoch: float = -1,
                 steps: int = -1) -> dict[str, float]:
        """Measure a model: the numbers by name."""
        images, texts = (encode(items, batch_size=self.batch_size, convert_to_tensor=True,
                                normalize_embeddings=True)
                         for encode, items in ((model.encode_query, self.images),
                                               (model.encode_document, self.texts)))
        table = measured(images, texts, self.owners, self.relevance)
        if output_path is not None and self.write_csv:
            path = Path(output_path, self.csv_file)
            path.parent.mkdir(parents=True, exist_ok=True)
            pd.DataFrame([{"epoch": epoch, "steps": steps} | table]).to_csv(
                path, mode="a", header=not path.exists(), index=False)
        numbers = self.prefix_name_to_metrics(table, self.name)
        self.store_metrics_in_model_card_data(model, numbers, epoch, steps)
        return numbers


def measured(images: Tensor, texts: Tensor, image_of_text: np.ndarray,
             relevance: np.ndarray | None) -> dict[str, float]:
    """Measure unit vectors (I, D) and (T, D): ranks in blocks; all measures with relevance."""
    if relevance is None:
        return retrieval_table(ranks_from_embeddings(images, texts, image_of_text))
    return score(None, image_of_text, relevance, images=images, texts=texts,
                 similarity="cosine").table
