"""Check a loss by the rules that every loss of this package keeps."""

import doctest
import inspect
import io
import re
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from itr_study.checks import gathered
from itr_study.losses.base import RankingLoss, ranking_loss

Fields = dict[str, Tensor]  # of an output, by name; a loss on scores reads "scores" alone
SCALES = ("binary", "unit", "cosine")
# Which axes of a field are images and texts.
AXES = {"scores": "it", "head_scores": "kit", "subembeddings": "ikd", "residuals": "ikd",
        "mask": "ik", "text_subembeddings": "tkd", "text_residuals": "tkd",
        "text_vectors": "td", "joined_vectors": "td"}
HEADINGS = ("Use", "See", "Source", "Differs", "Example")
# How torch refuses to read a tensor without values.
READS = re.compile(r"item\(\)|nonzero|copy out of meta|convert meta")
EDGES = {  # scores, relevance
    "one pair": ([[0.3]], [[1]]),
    "no negative": ([[0.4, 0.41]], [[1, 1]]),
    "all tied": ([[0.5] * 7] * 7, torch.eye(7).tolist()),
    "all relevant": ([[0.1, 0.2], [0.3, 0.4]], [[1, 1], [1, 1]]),
    "no match": ([[0.1, 0.2], [0.3, 0.4]], [[0, 0], [0, 0]]),
    "scores of 1e4": ([[1e4 * (-1) ** (i + t + 1) for t in range(7)] for i in range(7)],
                      torch.eye(7).tolist()),
}


class Findings(NamedTuple):
    """Faults of a loss, and gaps in its documentation."""

    wrong: list[str]
    undocumented: list[str]

    def __repr__(self) -> str:
        """Show the findings by group."""
        return "\n".join("\n  ".join((f"{group}:", *(found or ["nothing"])))
                         for group, found in self._asdict().items())


def check_loss(loss: type[nn.Module] | nn.Module | Callable) -> Findings:
    """Check a loss on small batches: shape, gradient, edge cases, order, scale and docstring.

    Args:
        loss: a class that can be built without arguments, a module or a function; called as
            loss(scores, relevance), or as loss(output, relevance) if its `takes` is "output". One
            that declares no scale of relevance may take any, and half precision as it is.

    Example:
        >>> def mean_square(scores, relevance):
        ...     return (scores - relevance).square().mean(dim=1)
        >>> check_loss(mean_square).wrong
        ['gives (7,) for scores (7, 12), not a 0-dim tensor: compute it by torch, end with .mean()']
    """
    if not callable(loss):
        raise ValueError(f"check_loss takes a class, a module or a function; got {loss!r}")
    read = ranking_loss(loss() if isinstance(loss, type) else loss)
    part = type(loss) if isinstance(loss, nn.Module) else loss
    wrong = findings(check_value, read)
    if not wrong:  # the other rules compare values
        rules = [check_gradient, check_edges, check_nan, check_order, check_diagnose, check_reads]
        rules += [check_directions] * (read.symmetric and read.takes == "scores")
        rules += [check_declared] * (read.relevance_scale is not None)
        wrong = [found for rule in rules for found in findings(rule, read)]
    return Findings(wrong + findings(check_example, part), list(undocumented(part, read)))


def findings(rule: Callable[..., Iterator[str]], loss: object) -> list[str]:
    """List what a rule finds; an exception of the loss is a finding too."""
    found: list[str] = []
    try:
        found += rule(loss)
    except Exception as error:
        found.append(f"{rule.__name__}: {type(error).__name__}: {error}")
    return found


def example_batch(seed: int) -> tuple[Tensor, Tensor]:
    """Draw scores in [-1, 1] and 0/1 relevance of 7 to 10 images, (I, T) float64 each.

    Even seeds: 1 to 3 texts an image, in random order. Odd seeds: a square training batch, in which
    an image may have been drawn more than once.
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


def example_output(seed: int, images: int = 5, texts: int = 7, heads: int = 3,
                   size: int = 4) -> tuple[Fields, Tensor]:
    """Draw the fields of an output in float64, and relevance (I, T), some images twice."""
    random = torch.Generator().manual_seed(seed)
    vectors = torch.randn(images, heads, size, generator=random, dtype=torch.float64)
    words = torch.randn(texts, 2, size, generator=random, dtype=torch.float64)
    unit, text_unit = normalize(vectors, dim=2), normalize(words, dim=2)
    scores = torch.einsum("ikd,td->kit", unit, text_unit[:, 0])
    owner = torch.randint(images, (texts,), generator=random)
    relevance = (owner == torch.arange(images)[:, None]).double()
    mask = torch.randint(2, (images, heads), generator=random).double()
    return {"scores": scores.amax(dim=0), "head_scores": scores, "subembeddings": unit,
            "residuals": vectors, "mask": mask, "text_subembeddings": text_unit,
            "text_residuals": words, "text_vectors": text_unit[:, 0],
            "joined_vectors": text_unit[:, 1],
            "joined_scores": unit[:, 0] @ text_unit[:, 1].T}, relevance


def examples(loss: RankingLoss) -> Iterator[tuple[Fields, Tensor]]:
    """Yield the batches on which a loss is checked."""
    for seed in range(4):
        if loss.takes == "output":
            yield example_output(seed)
        else:
            scores, relevance = example_batch(seed)
            yield {"scores": scores}, relevance


def value_of(loss: RankingLoss, fields: Fields, relevance: Tensor) -> Tensor:
    """Return the loss of what it takes of the fields."""
    return loss(SimpleNamespace(**fields) if loss.takes == "output" else fields["scores"],
                relevance)


def gradients(loss: RankingLoss, fields: Fields, relevance: Tensor) -> tuple[Tensor, Fields]:
    """Return the value, and its gradient by field, if it has one."""
    leaves = {name: field.clone().requires_grad_() for name, field in fields.items()}
    value = value_of(loss, leaves, relevance)
    if value.requires_grad:
        value.backward()
    return value.detach(), {name: leaf.grad for name, leaf in leaves.items()
                            if leaf.grad is not None}


def same(one: Tensor, other: Tensor) -> bool:
    """Whether two values are the same but for rounding to float32."""
    return torch.allclose(one.double(), other.double(), rtol=1e-5, atol=1e-5)


def check_value(loss: RankingLoss) -> Iterator[str]:
    """Yield unless the value is a finite 0-dim tensor of the dtype of the scores."""
    fields, relevance = next(examples(loss))
    for dtype in (torch.float64, torch.float32):
        typed = {name: field.to(dtype) for name, field in fields.items()}
        value = value_of(loss, typed, relevance.to(dtype))
        if not isinstance(value, Tensor) or value.shape != ():
            shape = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            yield (f"gives {shape} for scores {tuple(fields['scores'].shape)}, not a 0-dim tensor: "
                   "compute it by torch, end with .mean()")
            return
        if value.dtype != dtype or not value.isfinite():
            yield (f"gives {value.item()} in {value.dtype} for scores in {dtype}: keep that, and "
                   "look for a division by 0, a log or a root of 0")


def check_gradient(loss: RankingLoss) -> Iterator[str]:
    """Yield unless the gradient is the slope of the value and raises matches."""
    found = [gradients(loss, *example)[1] for example in examples(loss)]
    if not any(gradient.any() for of_one in found for gradient in of_one.values()):
        yield ("passes no gradient to what it is given: compute it of these tensors, without "
               "detach, item or comparisons alone")
    elif loss.takes == "scores":
        fields, relevance = next(examples(loss))
        scores, match = fields["scores"].requires_grad_(), relevance == 1
        if not torch.autograd.gradcheck(loss, (scores, relevance), raise_exception=False):
            yield "has a gradient that is not the slope of its value (torch.autograd.gradcheck)"
        if not found[0]["scores"][match].sum() < 0 < found[0]["scores"][~match].sum():
            yield "does not fall when scores of matches rise and those of the others fall"


def check_edges(loss: RankingLoss) -> Iterator[str]:
    """Yield if value or gradient are not finite at an edge."""
    edges = {edge: ({"scores": torch.tensor(scores)}, torch.tensor(relevance))
             for edge, (scores, relevance) in EDGES.items()}
    if loss.takes == "output":
        fields, relevance = example_output(0)
        edges = {edge: (fields, torch.full_like(relevance, fill))
                 for edge, fill in (("all relevant", 1.0), ("no match", 0.0))}
    for edge, (fields, relevance) in edges.items():
        for dtype in (torch.float32, torch.float64):
            typed = {name: field.to(dtype) for name, field in fields.items()}
            value, found = gradients(loss, typed, relevance.to(dtype))
            if not all(tensor.isfinite().all() for tensor in (value, *found.values())):
                yield f"is not finite, or its gradient is not, in a batch of the kind: {edge}"
                break


def check_nan(loss: RankingLoss) -> Iterator[str]:
    """Yield if a NaN of the input is hidden."""
    fields, relevance = next(examples(loss))
    if loss.takes == "output":
        fields["mask"] = torch.ones_like(fields["mask"])
    _, found = gradients(loss, fields, relevance)
    for name in (name for name, gradient in found.items() if gradient.any()):
        for place in (0, -1, len(fields[name]) // 2):
            broken = fields[name].clone()
            broken[place].view(-1)[place] = torch.nan
            if not value_of(loss, fields | {name: broken}, relevance).isnan():
                yield f"hides a NaN of {name}, so that a training that has failed would go on"
                return


def check_order(loss: RankingLoss) -> Iterator[str]:
    """Yield if the order of images or texts in the batch matters."""
    g = torch.Generator().manual_seed(0)
    for fields, relevance in examples(loss):
        orders = {axis: torch.randperm(n, generator=g)
                  for axis, n in zip("it", relevance.shape, strict=True)}
        turned = {"relevance": relevance, **fields}
        for name, field in turned.items():
            for axis, kind in enumerate(AXES.get(name, "it")):
                field = field.index_select(axis, orders[kind]) if kind in orders else field
            turned[name] = field
        value = value_of(loss, fields, relevance)
        if not same(value_of(loss, turned, turned.pop("relevance")), value):
            yield "depends on the order of images or texts in the batch"
            return


def check_directions(loss: RankingLoss) -> Iterator[str]:
    """Yield unless the transposes have the same value."""
    if not all(same(loss(fields["scores"].T, relevance.T), loss(fields["scores"], relevance))
               for fields, relevance in examples(loss)):
        yield ("gives another value for scores.T and relevance.T: add the other direction, or say "
               "symmetric = False")


def check_diagnose(loss: RankingLoss) -> Iterator[str]:
    """Yield unless `diagnose` gives the value of the loss and 0-dim tensors."""
    fields, relevance = next(examples(loss))
    value, numbers = loss.diagnose(
        SimpleNamespace(**fields) if loss.takes == "output" else fields["scores"], relevance)
    if not same(value, value_of(loss, fields, relevance)):
        yield "has a diagnose that gives another value than the loss"
    yield from (f"has a diagnose whose {name} is no 0-dim tensor"
                for name, number in numbers.items() if number.shape != ())


def check_reads(loss: RankingLoss) -> Iterator[str]:
    """Yield if a number is read of tensors without values; other failures there do not count."""
    fields, relevance = next(examples(loss))
    with gathered() as checks:
        try:
            gradients(loss, {name: field.to("meta") for name, field in fields.items()},
                      relevance.to("meta"))
        except (RuntimeError, TypeError) as error:
            if READS.search(str(error)):
                yield ("reads a number of its tensors, for which a GPU stops until all its work is "
                       f"done (item, if, a boolean mask as index): {str(error)[:60]}")
        checks.waiting.clear()  # there are no numbers to check


def check_declared(loss: RankingLoss) -> Iterator[str]:
    """Yield unless the loss refuses, widens and reads relevance as `read_batch` does."""
    fields, relevance = next(examples(loss))
    if loss.relevance_scale not in SCALES:
        yield f"has relevance_scale = {loss.relevance_scale!r}, not one of {', '.join(SCALES)}"
    low = -0.5 if loss.relevance_scale == "unit" else -1.5
    for what, bad in (("of another shape", relevance[:, :-1]), ("of 2", 2 * relevance),
                      (f"of {low}", relevance.where(relevance == 1, low))):
        try:
            value_of(loss, fields, bad)
            error = None
        except Exception as raised:
            error = raised
        if not isinstance(error, ValueError):
            yield f"does not refuse relevance {what} by a ValueError: call read_batch first"
    half = {name: field.bfloat16() for name, field in fields.items()}
    with torch.autocast("cpu", torch.bfloat16, enabled=loss.takes == "scores"):
        value = value_of(loss, half, relevance.float())
    wide = value_of(loss, {name: field.double() for name, field in half.items()}, relevance)
    if value.dtype != torch.float32 or not same(value, wide):
        yield "does not widen half precision to float32: call read_batch first"
    if loss.relevance_scale == "binary" and not same(
            value_of(loss, fields, relevance == 1), value_of(loss, fields, relevance)):
        yield "gives another value for a bool mask than for 0/1 relevance"


def check_example(part: Any) -> Iterator[str]:
    """Yield if the docstring's example prints something else."""
    printed, runner = io.StringIO(), doctest.DocTestRunner()
    space = dict(vars(sys.modules[part.__module__]))
    for test in doctest.DocTestFinder(recurse=False).find(part, part.__name__, globs=space):
        runner.run(test, out=printed.write)
    if runner.failures:
        yield f"has an example in its docstring that prints something else:\n{printed.getvalue()}"


def undocumented(part: object, read: RankingLoss) -> Iterator[str]:
    """Yield what a reader, a plot or a run's id would miss of a class or a function."""
    if getattr(part, "name", None) is None:
        yield "no name, by which it could be registered and configured"
    if not 3 <= len(getattr(part, "display_name", None) or "") <= 20:
        yield "no display_name of 3 to 20 letters, for the legend of a plot"
    if not (type(read.version) is int and read.version >= 1):
        yield "no version, 1 or more, for the id of a run"
    if read.relevance_scale is None:
        yield f"no relevance_scale, one of {', '.join(SCALES)}"
    text = inspect.getdoc(part) or ""
    headings = HEADINGS + ("Shape",) * (read.takes == "output")
    if missing := [name for name in headings if not re.search(rf"^{name}:", text, re.M)]:
        yield f"nothing in its docstring under {', '.join(f'{name}:' for name in missing)}"
    if not re.search(r"^    L = ", text, re.M):
        yield "no formula in its docstring: an indented line, L = ..."
    arguments = inspect.signature(part).parameters.values() if isinstance(part, type) else ()
    if missing := [one.name for one in arguments if one.kind is one.POSITIONAL_OR_KEYWORD
                   and not re.search(rf"^Args:.*^    [\w, ]*\b{one.name}\b[\w, ]*:", text,
                                     re.M | re.S)]:
        yield f"nothing in its docstring under Args: about {', '.join(missing)}"
