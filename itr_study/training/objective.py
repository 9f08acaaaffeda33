"""What is minimised: a weighted sum of losses, each fed by a label source."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from itr_study.checks import GAP, MATCH, check_called, check_choice, check_number, check_values
from itr_study.data.batches import Batch, EncodedSplit
from itr_study.losses import LOSSES, OUTPUT_LOSSES
from itr_study.losses.base import OwnLoss, RankingLoss, ranking_loss
from itr_study.models.base import ModelOutput, described
from itr_study.relevance import RELEVANCE

Loss = nn.Module | Callable[[Tensor, Tensor], Tensor]  # of scores and relevance, both (I, T)
# Columns of a history that are no loss's; those that begin with "dev_" are none, too.
LOGGED = ("epoch", "loss", "score_std", "first_score_std", "learning_rate", "seconds")
# How labels of a source (inner key) come to the scale of a loss (outer key), None: as they are. A
# match stays 1, the others keep their order and the gap to 1. Binary labels have no differences
# that a loss of cosines could compare.
MAPS: dict[str, dict[str, Callable[[Tensor], Tensor] | None]] = {
    "binary": {"binary": None, "unit": None, "cosine": None},
    "unit": {"binary": None, "unit": None, "cosine": lambda cosine: (
        ((1 + cosine) / 2).clamp(max=MATCH - GAP).where(cosine < MATCH, cosine))},
    "cosine": {"unit": lambda share: 2 * share - 1, "cosine": None}}


@runtime_checkable
class LabelSource(Protocol):
    """How relevant text j is to image i; see itr_study.relevance."""

    scale: str

    def __call__(self, batch: Batch, split: EncodedSplit) -> Tensor:
        """Return relevance (I, T)."""


@dataclass(frozen=True)
class Term:
    """One loss, its weight, and the labels it is fed.

    Attributes:
        loss: a name of LOSSES or OUTPUT_LOSSES, or a module or a function called as loss(scores,
            relevance), both (I, T), which gives a 0-dim tensor; with `takes = "output"` it is
            called as loss(output, relevance).
        weight: of the loss, >= 0.
        labels: a name of RELEVANCE or a LabelSource.
        arguments: of a loss that is given by name.
        label_arguments: of labels that are given by name.
    """

    loss: str | Loss
    weight: float = 1.0
    labels: str | LabelSource = "binary"
    arguments: Mapping[str, object] = field(default_factory=dict)
    label_arguments: Mapping[str, object] = field(default_factory=dict)


SENTENCE_COSINES: dict[str, Any] = {"labels": "sentence", "label_arguments": {"scale": "cosine"}}
BALANCE = 0.6  # eta of dvse Eq. 12: of the ranking loss; the rest is the orthogonality's
# Objectives whose name is not that of a loss; every loss is an objective by its own name.
OBJECTIVES: dict[str, tuple[Term, ...]] = {
    "triplet": (Term("triplet_hardest"),),
    "listwise": (Term("triplet_hardest"), Term("smooth_ndcg", labels="sentence")),
    "bcls": (Term("triplet_soft"),
             Term("kendall_window", arguments={"hard": True}, **SENTENCE_COSINES)),
    "dvse": (Term("variance_weighted", BALANCE), Term("orthogonality", 1 - BALANCE)),
}


class Objective(nn.Module):
    """The weighted sum of its terms, each distinct label source computed once a batch.

    Called with (ModelOutput, Batch, EncodedSplit) it returns a 0-dim tensor and diagnostics, a dict
    of detached 0-dim tensors: the unweighted value of each term under its name (a name that comes
    again gets #2, #3), and `name.key` for what the loss reports itself.

    Args: terms: a list of Term, or the name of an objective or of a loss.
    Differs: labels in [0, 1] come to a loss of cosines as 2 r - 1, cosines to a loss of [0, 1] as
        (1 + r) / 2: the papers have one source each, on the scale of its loss.
    Raises: ValueError: for an unknown name or argument, a weight that is negative or not finite, no
        terms, binary labels for a loss that compares graded ones, or a batch without a match.

    Example:
        >>> objective = Objective([Term("triplet_sum"), Term("topk", 0.5, arguments={"k": 1})])
        >>> ids = torch.arange(2)
        >>> batch = Batch(image_ids=ids, text_ids=ids, text_images=ids)
        >>> value, parts = objective(ModelOutput(torch.zeros(2, 2)), batch, None)
        >>> {name: round(part.item(), 4) for name, part in parts.items()}
        {'triplet_sum': 0.4, 'topk': 0.4}
        >>> round(value.item(), 4)  # 0.4 + 0.5 x 0.4
        0.6
    """

    def __init__(self, terms: str | Iterable[Term]) -> None:
        super().__init__()
        self.terms = read_terms(terms)
        for term in self.terms:
            check_number("weight", term.weight, least=0)
        self.losses = nn.ModuleList(build_loss(term) for term in self.terms)
        self.ranking_losses = [ranking_loss(loss) for loss in self.losses]
        self.joins = any(loss.joins for loss in self.ranking_losses)  # `forward` joins texts
        self.names = unique_names(self.ranking_losses)
        self.source_keys = [  # equal for terms that share one label source
            f"{term.labels} {sorted(term.label_arguments.items())!r}"
            if isinstance(term.labels, str) else f"object {id(term.labels)}" for term in self.terms]
        self.sources = {key: build_source(term)
                        for key, term in zip(self.source_keys, self.terms, strict=True)}
        maps = (map_between(self.sources[key], name, loss) for name, loss, key in zip(
            self.names, self.ranking_losses, self.source_keys, strict=True))
        self.label_keys = list(zip(self.source_keys, maps, strict=True))
        self.checked = False  # what the losses return and change, at the first call

    def forward(self, output: ModelOutput, batch: Batch, split: EncodedSplit,
                of_matches: ModelOutput | None = None) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the weighted sum and the diagnostics; of_matches: for losses of matches alone."""
        with torch.autocast(output.scores.device.type, enabled=False):
            relevance = {key: source(batch, split) for key, source in self.sources.items()}
            for labels in relevance.values():
                if not self.checked:
                    check_labels(labels, output.scores)
                check_matches(labels)
            scaled = {(key, to_scale): to_scale(relevance[key]) if to_scale else relevance[key]
                      for key, to_scale in set(self.label_keys)}
            given = [] if self.checked else [
                part for part in (*vars(output).values(), *scaled.values())
                if isinstance(part, Tensor) and not part.is_inference()]
            versions = [part._version for part in given]
            total, report = output.scores.new_zeros(()), {}
            for name, loss, term, key in zip(self.names, self.ranking_losses, self.terms,
                                             self.label_keys, strict=True):
                graded = "binary" not in (loss.relevance_scale, self.sources[key[0]].scale)
                seen = output if graded else of_matches or output
                found = loss.diagnose(seen if loss.takes == "output" else seen.scores, scaled[key])
                if not self.checked or not isinstance(found[0], Tensor) or found[0].ndim:
                    check_found(name, found, output.scores.requires_grad and term.weight > 0)
                if versions != [part._version for part in given]:
                    raise ValueError(f"{name} changes scores or relevance in place, which others "
                                     "read, too: change a copy, scores.clone()")
                value, numbers = found
                total = total + term.weight * value
                report[name] = value.detach()
                report |= {f"{name}.{part}": number.detach() for part, number in numbers.items()}
        self.checked = True
        return total, report


def check_labels(labels: Tensor, scores: Tensor) -> None:
    """Raise ValueError unless a label source gave a tensor (I, T) of real numbers."""
    if not isinstance(labels, Tensor) or labels.shape != scores.shape or labels.is_complex():
        raise ValueError(f"a label source must return a tensor {tuple(scores.shape)} of real "
                         f"numbers, one for each pair of the batch; got {described(labels)}")


def check_found(name: str, found: Any, learns: bool) -> None:
    """Raise ValueError unless a loss gave a number, with a gradient if it learns, and a report."""
    value, numbers = found if isinstance(found, tuple) and len(found) == 2 else (found, None)
    if not isinstance(value, Tensor) or value.ndim or not value.is_floating_point():
        raise ValueError(f"{name} must return one number, a floating-point tensor of shape (), "
                         "computed of scores by torch; got "
                         f"{described(value)}; end with .mean() or .sum()")
    if learns and not value.requires_grad and value != 0:  # of a batch without pairs 0 is right
        raise ValueError(f"{name} has no gradient: compute it of scores by torch alone, without "
                         "detach(), item(), numpy or comparisons alone")
    if not isinstance(numbers, dict) or not all(
            isinstance(key, str) and isinstance(number, Tensor) and number.ndim == 0
            and not number.is_complex() for key, number in numbers.items()):
        raise ValueError(f"diagnose of {name} must return (loss, numbers), numbers a dict of "
                         f"tensors of shape () by name; got {numbers!r}")


def check_matches(relevance: Tensor) -> None:
    """Raise ValueError unless a pair of the batch is a match: without, most losses are 0."""
    check_values(relevance.detach().amax().reshape(1), lambda values: (
        f"relevance must be exactly {MATCH:g} for a match, and this batch has none: the largest of "
        f"its {relevance.numel()} values is {values[0]:g}; give 1 to each text of the image itself "
        "(batch.match)" if values[0] < MATCH else None))  # NaN is the losses' to refuse


def read_terms(terms: object) -> tuple[Term, ...]:
    """Return terms as a tuple; ValueError unless there are some, and all are of class Term."""
    if isinstance(terms, str):
        return named_objective(terms)
    found = tuple(terms) if isinstance(terms, Iterable) and not isinstance(terms, Tensor) else ()
    if not found or not all(isinstance(term, Term) for term in found):
        raise ValueError('an objective takes the name of one, such as "triplet", or a list of '
                         f'Term, such as [Term("triplet_sum"), Term("topk", 0.5)]; got {terms!r}')
    return found


def named_objective(name: str) -> tuple[Term, ...]:
    """Return the terms of an objective, or the one term of a loss, by name.

    A loss by name is fed binary labels, or if it takes none (Kendall), sentence cosines.
    """
    losses = LOSSES | OUTPUT_LOSSES
    check_choice("objective", name, [*OBJECTIVES, *losses])
    if name in OBJECTIVES:
        return OBJECTIVES[name]
    return (Term(name, **SENTENCE_COSINES if losses[name].relevance_scale == "cosine" else {}),)


def build_loss(term: Term) -> Any:
    """Return the term's module, built from its name and arguments unless it is one already."""
    if isinstance(term.loss, str):
        return (LOSSES | OUTPUT_LOSSES).create(term.loss, term.arguments)
    if not callable(term.loss) or isinstance(term.loss, type) or term.arguments:
        raise ValueError("loss must be a name with arguments, or an nn.Module or a function without"
                         f' (LOSSES["topk"](), no class); got {term.loss!r} {term.arguments}')
    takes = "output" if getattr(term.loss, "takes", "") == "output" else "scores"
    check_called("loss", term.loss, takes, "relevance")
    return term.loss if isinstance(term.loss, nn.Module) else OwnLoss(term.loss)


def build_source(term: Term) -> Any:
    """Return the term's LabelSource, built from its name unless it is one already."""
    if isinstance(term.labels, str):
        return RELEVANCE.create(term.labels, term.label_arguments)
    if not isinstance(term.labels, LabelSource) or term.label_arguments:
        raise ValueError("labels must be a name with label_arguments, or a callable with a scale "
                         f"and without; got {term.labels!r} with {dict(term.label_arguments)}")
    return term.labels


def unique_names(losses: Iterable[RankingLoss]) -> list[str]:
    """Return each loss's name, or its class if it has none; repeats get #2, #3."""
    names: list[str] = []
    for loss in losses:
        name = loss.name or type(loss).__name__
        if not isinstance(name, str) or "." in name or name in LOGGED or name.startswith("dev_"):
            raise ValueError(f"a loss cannot be called {name!r}: its value has a column of its "
                             "name in the history, where that is taken, and its own numbers one of "
                             "name.number; give it another name")
        earlier = sum(other.split("#")[0] == name for other in names)
        names.append(f"{name}#{earlier + 1}" if earlier else name)
    return names


def map_between(source: LabelSource, name: str,
                loss: RankingLoss) -> Callable[[Tensor], Tensor] | None:
    """Return how labels of a source come to the loss's scale; ValueError if they cannot."""
    check_choice("scale of a label source", source.scale, MAPS)
    if loss.relevance_scale is None:  # a user's own loss may leave it open
        return None
    check_choice(f"relevance_scale of {name}", loss.relevance_scale, MAPS)
    if source.scale not in MAPS[loss.relevance_scale]:
        graded = ", ".join(known for known in RELEVANCE if known != "binary")
        raise ValueError(f"{name} compares graded labels, and this source gives {source.scale} "
                         f"ones; choose one of {graded}, such as labels=\"sentence\"")
    return MAPS[loss.relevance_scale][source.scale]
