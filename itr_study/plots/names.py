"""One name for every loss, setting and arm, wherever it is shown: pictures, tables, titles.

An arm of the ledger says what was run ("two_branch+fisher/hardest+listwise"); a reader sees
"Two-branch, Fisher: hardest + Smooth-NDCG".
"""

import re
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from itr_study.losses import LOSSES, OUTPUT_LOSSES
from itr_study.models import MODELS

# Short names of losses in the labels of arms.
SHORT = {"sum": "triplet_sum", "hardest": "triplet_hardest", "soft": "triplet_soft",
         "listwise": "smooth_ndcg", "windows": "kendall_window", "sam": "semantic_margin"}
INPUTS = {"fisher": "Fisher", "sentence": "MiniLM", "gru": "GRU", "bigru-glove": "BiGRU, GloVe"}
# Base configs that are shown under a name of their own; SGRAF is SAF and SGR together.
JUDGES = {"clean_gru": "Clean GRU", "dspe": "DSPE", "sgraf": "SGRAF"}
TWO = "*"  # behind an arm: the mean of the scores of two of its runs
MARK = " †"  # behind what has seen captions of the data before
EDGE, FALLEN = " §", " ¶"  # behind arms at the edge of the rates tried; with collapsed scores
MARKS = {MARK: "the text encoder or the maker of the labels has seen captions",
         EDGE: "learning rate at the edge of those tried", FALLEN: "scores have collapsed"}
GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "tau": "τ", "bound": "bound β",
         "balance": "balance η"}
RERANKED = {"fast": "FR", "fast_bank": "FR with a bank", "reciprocal": "RR", "multi": "MR"}
OTHER = {"bcls": "soft + windows", "top5": "top-5", "k=1": "hardest (k = 1)",
         "sw": "windows, all pairs",
         # parts of DVSE; K counts heads
         "mask": "mask", "var": "weights", "ort": "orthogonality", "heads": "heads alone",
         "single": "single embedding", "K=none": "K = none",
         # what the dvse paper leaves open, chosen otherwise
         "s=sigmoid": "sigmoid for tanh", "s=identity": "no tanh", "mask=loss": "mask in the loss",
         "score=mean": "mean over heads", "text=last": "texts by their last state",
         "sigma=gradient": "σ with a gradient", "sigma=softmax": "σ of the softmax",
         "ort=mean": "β off the mean", "ort=pair": "β off each pair"}
# One arm under two names: ApproxNDCG is Smooth-NDCG at this temperature, but for a constant.
TWICE = "τ = 0.1 (= ApproxNDCG)"
SAME = {"tau=0.1": TWICE, "hardest+approx_ndcg": TWICE}


def name_of(arm: str) -> str:
    """What a loss, a setting or an arm is called; a name that is none of them stays as it is.

    Example:
        >>> name_of("topk"), name_of("hardest+listwise"), name_of("bcls"), name_of("tau=0.01")
        ('top-k', 'hardest + Smooth-NDCG', 'soft + windows', 'τ = 0.01')
        >>> name_of("two_branch+fisher/top5"), name_of("k=5 − sum"), name_of("other images")
        ('Two-branch, Fisher: top-5', 'top-5 − sum', 'other images')
        >>> name_of("soft+0.3×windows"), name_of("alpha=0.2,beta=0.1"), name_of("sum@batch=64")
        ('soft + 0.3 × windows', 'α = 0.2, β = 0.1', 'sum, batches of 64')
        >>> name_of("clean_gru/hardest@fast"), name_of("clean_gru")
        ('Clean GRU: hardest, FR', 'Clean GRU')
        >>> name_of("dvse/mask+var+ort"), name_of("pvse/K=2"), name_of("bound=0.4")
        ('DVSE: mask + weights + orthogonality', 'PVSE: K = 2', 'bound β = 0.4')
        >>> name_of("hardest@fast"), name_of("hardest@fast(best 1<2)")
        ('hardest, FR', 'hardest, FR (best first < second)')
        >>> name_of("sgraf/bcls@fast"), name_of("vse_infinity/hardest*")
        ('SGRAF: soft + windows, FR', 'VSE∞: hardest, two runs')
    """
    if " − " in arm:
        return " − ".join(map(name_of, arm.split(" − ")))
    if arm[-2:] in MARKS:
        return name_of(arm[:-2]) + arm[-2:]
    before, _, reranker = arm.partition("@")
    if arm in RERANKED:
        return RERANKED[arm]
    method, bracket, scales = reranker.partition("(")
    if method in RERANKED:
        scales = re.sub("1([<=>])2", r"first \1 second", scales)
        return f"{name_of(before)}, {RERANKED[method]}{bracket and ' (' + scales}"
    if reranker.startswith("batch="):
        return f"{name_of(before)}, batches of {reranker.removeprefix('batch=')}"
    if arm.endswith(TWO):
        return f"{name_of(arm.removesuffix(TWO))}, two runs"
    if re.fullmatch(r"\w+=[\d.]+,\w+=[\d.]+", arm):
        return ", ".join(map(name_of, arm.split(",")))
    setting, slash, terms = arm.partition("/")
    model, plus, inputs = setting.partition("+")
    if model in MODELS or setting in JUDGES:
        named = JUDGES.get(setting) or MODELS[model].display_name + (
            f", {INPUTS.get(inputs, inputs)}" if plus else "")
        return f"{named}: {name_of(terms)}" if slash else named
    if arm in SAME:
        return SAME[arm]
    if arm.startswith("labels("):  # a label source, of which nothing is trained
        return arm.removeprefix("labels(").removesuffix(")")
    hyperparameter, equals, value = arm.partition("=")
    if equals and arm not in OTHER and re.fullmatch(r"[\d.e-]+", value):
        return _with_value(hyperparameter, value)
    names = [_term(term) for term in arm.split("+")]
    return arm if None in names else " + ".join(names)


def unmarked(arm: str) -> str:
    """An arm without the marks behind it.

    Example:
        >>> unmarked("hardest § †"), unmarked("sum")
        ('hardest', 'sum')
    """
    return unmarked(arm[:-2]) if arm[-2:] in MARKS else arm


def marks_note(names: Iterable[str]) -> str:
    """What the marks behind some names mean, for a note: those that are there.

    Example:
        >>> marks_note(["sum §", "hardest"])
        '§ learning rate at the edge of those tried'
    """
    text = "\n".join(names)
    return "; ".join(f"{mark.strip()} {meaning}" for mark, meaning in MARKS.items()
                     if mark in text)


def _with_value(hyperparameter: str, value: str) -> str:
    """One point of a sweep: "d=64" is "d = 64"; a k names the loss it belongs to."""
    if hyperparameter in ("k", "kth"):
        return f"top-{value}" if hyperparameter == "k" else f"k-th, k = {value}"
    return f"{GREEK.get(hyperparameter, hyperparameter)} = {value}"


def _term(term: str) -> str | None:
    """One of the losses that are added; what stands in brackets behind it stays. None: no loss."""
    weight, times, weighed = term.partition("×")
    if times:
        return (name := _term(weighed)) and f"{weight} × {name}"
    loss, bracket, rest = term.partition("(")
    if loss in OTHER:
        name = OTHER[loss]
    elif (loss := SHORT.get(loss, loss)) in LOSSES | OUTPUT_LOSSES:
        name = (LOSSES | OUTPUT_LOSSES)[loss].display_name
    else:
        return None
    return f"{name} ({rest}" if bracket else name


def joined(names: Sequence[str]) -> str:
    """All names in a sentence, as they are.

    Example:
        >>> joined(["RSUM"]), joined(["RSUM", "mass", "hit"])
        ('RSUM', 'RSUM, mass and hit')
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


# Names beside marks: where each covers nothing and cannot be taken for that of another mark.

WAYS = np.array([(np.cos(turn), np.sin(turn)) for turn in np.arange(0, 2 * np.pi, np.pi / 8)])
AWAY = (5, 11, 19, 29, 41, 55, 70)  # points from a mark to the nearest edge of its name
PASSES = 6  # each name is placed anew so often, around where the others stand by then
STEPS, THICK = 16, 1.5  # a leader as boxes: how many, and half their width in points
CLEAR = 7  # points: a name nearer than that to another mark could be its name
# What a name over something costs, a line over something (for its area), a name near another mark,
# and steps away (of their square, for a square point).
COVERED, CROSSED, CONFUSED, FARTHER = 10.0, 12.0, 4.0, 8.0


def name_marks(axes: Axes, names: Sequence[str], at: np.ndarray, colours: Sequence[str],
               taken: np.ndarray, size: float = 9) -> None:
    """Each name near its mark; joined to it by a thin line where it does not touch it. Comes last,
    after `settle`: the layout decides what fits.

    Args:    at: (N, 2) marks, in data units; taken: (M, 4) boxes that neither names nor lines
             should cover, in pixels: left, bottom, right, top; size: of the type, in points.
    """
    marks, scale = axes.transData.transform(at), axes.figure.dpi / 72
    notes = [axes.annotate(name, place, (0, 0), fontsize=size, textcoords="offset points",
                           color=colour, zorder=4, va="bottom",
                           arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.6,
                                       "shrinkA": 0, "shrinkB": 3, "relpos": (0.5, 0.5)})
             for name, place, colour in zip(names, at, colours, strict=True)]
    sizes = np.array([Text.get_window_extent(note).size for note in notes])
    boxes, joined = placed(marks, sizes, taken, axes.get_window_extent().extents, scale)
    for note, mark, box, line in zip(notes, marks, boxes, joined, strict=True):
        note.set_in_layout(False)
        note.set_position((box[:2] - mark) / scale)
        note.arrow_patch.set_visible(line)


def settle(figure: Figure) -> None:
    """Lay a figure out for good: only its second layout knows how large its texts are."""
    for _ in range(2):
        figure.canvas.draw()


def obstacles(axes: Axes, points: pd.DataFrame, lines: Sequence[np.ndarray] = ()) -> np.ndarray:
    """What names must not cover, (M, 4) boxes in pixels: marks, their intervals, lines.

    Args:    points: x, y, low_x, high_x, low_y, high_y (NaN: no interval); lines: (N, 2) each.
    """
    x, y = points["x"], points["y"]
    spans = [(x, y, x, y, 4), (points["low_x"], y, points["high_x"], y, 1.3),
             (x, points["low_y"], x, points["high_y"], 1.3)]
    for line in lines:
        steps = np.linspace(0, len(line) - 1, 20 * len(line))
        along = [np.interp(steps, range(len(line)), ends) for ends in line.T]
        spans.append((*along, *along, 1))
    boxes = []
    for left, low, right, high, pad in spans:
        ends = [axes.transData.transform(np.column_stack(end))
                for end in ((left, low), (right, high))]
        boxes.append(np.hstack(ends) + pad * axes.figure.dpi / 72 * np.array([-1, -1, 1, 1]))
    boxes = np.concatenate(boxes)
    return boxes[~np.isnan(boxes).any(axis=1)]


def placed(marks: np.ndarray, sizes: np.ndarray, taken: np.ndarray, room: np.ndarray,
           scale: float) -> tuple[np.ndarray, np.ndarray]:
    """(N, 4) boxes of names, and (N,) which are joined to their mark by a line.

    Args:    marks: (N, 2); sizes: (N, 2) of names; taken: (M, 4); room: (4,) to stay in: all in
             pixels; scale: pixels in a point.
    """
    spots = [spots_of(mark, size, scale) for mark, size in zip(marks, sizes, strict=True)]
    lines = [leaders(mark, boxes, scale) for mark, boxes in zip(marks, spots, strict=True)]
    around = np.hstack([marks - CLEAR * scale, marks + CLEAR * scale])
    chosen: dict[int, int] = {}
    for _ in range(PASSES):
        for name, (boxes, ways) in enumerate(zip(spots, lines, strict=True)):
            others = {other: spot for other, spot in chosen.items() if other != name}
            full = np.concatenate([
                taken, *(spots[other][None, spot] for other, spot in others.items()),
                *(lines[other][spot] for other, spot in others.items())])
            chosen[name] = int(np.argmin(
                COVERED * overlaps(boxes, full).sum(axis=1) + boxes_outside(boxes, room)
                + CROSSED * overlaps(ways.reshape(-1, 4), full).sum(axis=1).reshape(
                    len(boxes), -1).sum(axis=1)
                + CONFUSED * overlaps(boxes, np.delete(around, name, axis=0)).sum(axis=1)
                + FARTHER * scale ** 2 * np.repeat(np.arange(len(AWAY)) ** 2, len(WAYS))))
    order = [chosen[name] for name in range(len(marks))]
    return (np.array([boxes[spot] for boxes, spot in zip(spots, order, strict=True)]),
            np.array(order) >= len(WAYS))


def spots_of(mark: np.ndarray, size: np.ndarray, scale: float) -> np.ndarray:
    """(K, 4): where a name may stand, in every direction, the nearest first."""
    away = np.repeat(AWAY, len(WAYS))[:, None] * scale
    ways = np.tile(WAYS, (len(AWAY), 1))
    middle = mark + away * ways + np.clip(2 ** 0.5 * ways, -1, 1) * size / 2  # a corner, aslant
    return np.hstack([middle - size / 2, middle + size / 2])


def leaders(mark: np.ndarray, boxes: np.ndarray, scale: float) -> np.ndarray:
    """(K, STEPS, 4): the way from a mark to each box as small boxes of no size where there is no
    line: on the mark, in the box, and to the boxes that touch the mark."""
    middle = (boxes[:, :2] + boxes[:, 2:]) / 2
    part = np.linspace(0, 1, STEPS)[None, :, None]
    way = mark + part * (middle - mark)[:, None]
    inside = ((way > boxes[:, None, :2]) & (way < boxes[:, None, 2:])).all(axis=2)
    inside |= np.linalg.norm(way - mark, axis=2) < CLEAR * scale
    inside[:len(WAYS)] = True
    half = np.where(inside, 0, THICK * scale)[..., None]
    return np.concatenate([way - half, way + half], axis=2)


def boxes_outside(boxes: np.ndarray, room: np.ndarray) -> np.ndarray:
    """(K,): what it costs that a part of each box lies outside of a room."""
    area = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
    return 3 * COVERED * (area - overlaps(boxes, room[None])[:, 0])


def overlaps(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """(A, B): the areas that boxes share.

    Example:
        >>> overlaps(np.array([[0, 0, 2, 2]]), np.array([[1, 1, 5, 5], [3, 0, 4, 1]])).tolist()
        [[1, 0]]
    """
    low = np.maximum(one[:, None, :2], other[None, :, :2])
    high = np.minimum(one[:, None, 2:], other[None, :, 2:])
    return np.clip(high - low, 0, None).prod(axis=2)
