"""You are the judge: rate pairs that others rated, and see how far all of you agree."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from PIL import Image

from itr_study.checks import check_choice, check_count
from itr_study.data import DATASETS
from itr_study.data.base import Judgements, RetrievalDataset
from itr_study.digits import number
from itr_study.evaluation.search import Searcher
from itr_study.explorers.explorer import Control, Explorer, button
from itr_study.explorers.messages import quote, read_parts
from itr_study.explorers.pictures import encode_thumbnail
from itr_study.features.dataset import judged_pairs
from itr_study.metrics.human import human_correlation
from itr_study.plots.retrieval import Agreement, you_judge
from itr_study.progress import progress

LEAST = 5  # pairs from which on an interval is known, and agreement is shown
YOU = "you"
# What the experts of Flickr8k were to grade, shortened from its readme.
GRADES = {1: "does not describe it at all", 2: "describes small parts of it",
          3: "almost describes it, with small mistakes", 4: "describes it"}
CLASSES = (1 / 3, 2 / 3, 0.999)  # exact relevance from which a pair has grade 2, 3, 4
BEFORE = "those who rated before"  # if nothing else is known of them
DRAWN = 60  # pairs of each class, if all pairs have exact relevance
SIDE = 320  # pixels of the picture that is rated
AXIS = "Kendall's τ-c"
UNDEFINED = "Kendall's τ is not defined if all pairs have the same grade; rate more pairs"


def compute_interval(tau: float, pairs: int) -> tuple[float, float]:
    """Compute an interval of about 95 % for Kendall's tau over other pairs, at least 5.

    Source: Fisher's transformation with the variance 0.437 / (n - 4) of Fieller, Hartley and
        Pearson (1957), who had no ties. A tau of 1 counts as half a step below it.

    Example:
        >>> [round(end, 2) for end in compute_interval(0.6, 20)], compute_interval(1.0, 5)[0] < 0.2
        ([0.35, 0.77], True)
    """
    half = 1.959964 * (0.437 / (pairs - 4)) ** 0.5
    most = 1 - 2 / (pairs * (pairs - 1))  # neighbours that swap move it by twice as much below 1
    middle = np.arctanh(np.clip(tau, -most, most))
    low, high = (float(np.tanh(middle + way * half)) for way in (-1, 1))
    return min(low, tau), max(high, tau)


def compute_agreement(scores: np.ndarray, ratings: np.ndarray) -> tuple[float, float, float]:
    """Compute Kendall's tau-c of scores (N,) with ratings (N, raters), and its interval.

    It is NaN if either puts no pair above another.

    Example: equal grades of five pairs
        >>> grades = np.array([[1.0], [2], [3], [4], [4]])
        >>> compute_agreement(np.array([1, 2, 3, 4, 4]), grades)[0]
        0.96
    """
    if any(len(np.unique(values[~np.isnan(values)])) < 2 for values in (scores, ratings)):
        return np.nan, np.nan, np.nan
    pairs = len(scores)
    nobody = ("",) * pairs
    judged = Judgements("you", nobody, nobody, ratings, np.zeros(pairs, bool), "c")
    (tau,) = human_correlation(scores, judged).values()
    return tau, *compute_interval(tau, pairs)


def list_agreements(yours: np.ndarray | None, ratings: np.ndarray, raters: Sequence[str],
                    scores: Mapping[str, np.ndarray]) -> tuple[list[Agreement], list[str]]:
    """Compute the agreement of all who rate N pairs, and name those for whom it is not defined.

    Each rater is compared with the other raters, `yours` (N,) and scores (N,) with all of them.
    """
    compared = [] if yours is None else [(YOU, YOU, yours, ratings)]
    for n, name in enumerate(raters):
        rest = np.delete(ratings, n, axis=1)
        both = ~np.isnan(ratings[:, n]) & ~np.isnan(rest).all(axis=1)
        if both.sum() >= LEAST:
            compared.append((name, "rater", ratings[both, n], rest[both]))
    compared += [(name, "computed", values, ratings) for name, values in scores.items()]
    found = [Agreement(name, kind, *compute_agreement(values, others))
             for name, kind, values, others in compared]
    known = sorted((one for one in found if not np.isnan(one.value)), key=lambda one: -one.value)
    return known, [one.name for one in found if np.isnan(one.value)]


def load_pairs(dataset: RetrievalDataset, name: str, others: Mapping[str, np.ndarray],
               seed: int = 0) -> dict[str, Any]:
    """Load pairs of a split that experts graded, or sample some of each class of exact relevance.

    Returns arguments of `YouJudge`; an image's own texts are left out. Scores of others are (I, T)
    of the split or (N,) of its judged pairs in their order.

    Raises: ValueError: nobody graded the pairs, an unknown split, scores of another shape.
    """
    check_choice("split", name, dataset.splits)
    split = dataset.splits[name]
    judged = judged_pairs(dataset, split).get("expert")
    if judged is not None:
        rows, columns, ratings = judged.images, judged.texts, judged.judgements.ratings
        raters = tuple(f"expert {n + 1}" for n in range(ratings.shape[1]))
        kept = np.flatnonzero(~judged.judgements.own)
    elif dataset.relevance is not None:
        rows, columns, ratings = sample_pairs(dataset.relevance(split), split.image_of_text, seed)
        raters, kept = ("exact relevance",), np.arange(len(rows))
    else:
        raise ValueError(f"nobody graded pairs of the {name} split of {dataset.name}, and their "
                         "exact relevance is not known; take the test split of flickr8k, or "
                         "scenes")
    whole, scores = (len(split.image_ids), len(split.texts)), {}
    for label, given in others.items():
        values = np.asarray(given, float)
        if values.shape == whole:
            values = values[rows, columns]
        elif judged is None or values.shape != rows.shape:
            raise ValueError(f"scores of {label!r} must be {whole}, of all images and texts"
                             + f", or {rows.shape}, of the judged pairs" * (judged is not None)
                             + f"; got {values.shape}")
        scores[label] = values[kept]
    known = DATASETS.get(dataset.name)
    return {"images": [split.image_ids[n] for n in rows[kept]],
            "texts": [split.texts[n] for n in columns[kept]], "ratings": ratings[kept],
            "scores": scores, "raters": raters,
            "judges": known.judged_by if known and known.judged_by else BEFORE}


def sample_pairs(relevance: np.ndarray, image_of_text: np.ndarray, seed: int
                 ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sample images (N,), texts (N,), grades (N, 1) of each class of relevance, no own texts."""
    random = np.random.default_rng(seed)
    grades = np.ones(relevance.shape, np.uint8)  # not by np.digitize: eight times the memory
    for least in CLASSES:
        grades += relevance >= np.float64(least)  # in float64 whatever the relevance is
    grades[image_of_text, np.arange(len(image_of_text))] = 0
    drawn = []
    for grade in progress(GRADES, "looking for pairs of each grade"):
        places = np.flatnonzero(grades == grade)
        drawn.append(random.choice(places, min(DRAWN, len(places)), replace=False))
    rows, columns = np.unravel_index(np.concatenate(drawn), relevance.shape)
    return rows, columns, grades[rows, columns].astype(float)[:, None]


def draw_evenly(ratings: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Draw pairs (min(count, N),), evenly by the median of ratings (N, raters), in random order.

    Example: each grade is among the four, the rare ones too
        >>> ratings = np.array([[1], [1], [4], [1], [1], [2], [3], [2]])
        >>> sorted(ratings[draw_evenly(ratings, 4, seed=0)].ravel().tolist())
        [1, 2, 3, 4]
    """
    random = np.random.default_rng(seed)
    grade = np.floor(np.nanmedian(ratings, axis=1) + 0.5)  # of two, the upper one
    order = random.permutation(len(grade))
    turn = np.empty(len(grade), int)  # 0 for the first pair of its grade, 1 for the second, ...
    for level in GRADES:
        own = order[grade[order] == level]
        turn[own] = np.arange(len(own))
    taken = order[np.argsort(turn[order], kind="stable")][:count]
    return random.permutation(taken)


def check_pairs(images: Sequence[Any], texts: Sequence[str], ratings: np.ndarray,
                scores: Mapping[str, np.ndarray]) -> None:
    """Raise ValueError unless all are of the same pairs, at least 5, each with a grade."""
    if images is None or texts is None:
        raise ValueError("images and texts must be one for each pair, got None")
    pairs = len(texts)
    if ratings.ndim != 2 or not len(images) == pairs == len(ratings) or pairs < LEAST:
        raise ValueError(f"images, texts and ratings (pairs, raters) must be of the same pairs, at "
                         f"least {LEAST}; got {len(images)}, {pairs} and {ratings.shape}")
    grades = ratings[~np.isnan(ratings)]
    if np.isnan(ratings).all(axis=1).any() or not np.isin(grades, list(GRADES)).all():
        raise ValueError("ratings must be 1, 2, 3 or 4, at least one for each pair, and NaN where "
                         "a rater gave none")
    if not isinstance(scores, Mapping):
        raise ValueError(f"scores must map a name to {pairs} numbers, got {quote(scores)}")
    for name, values in scores.items():
        values = np.asarray(values, float)
        if values.shape != (pairs,) or not np.isfinite(values).all():
            raise ValueError(f"scores of {name!r} must be {pairs} finite numbers, one for each "
                             f"pair; got shape {values.shape}")


class YouJudge(Explorer):
    """Some pairs of an image and a text, one after the other, to be rated from 1 to 4.

    The others' ratings of a pair are hidden until the reader has rated it, and then fix theirs.

    Args:
        images, texts: (N,) of each pair; `picture` opens an image.
        ratings: (N, raters) from 1 to 4, NaN if absent.
        scores: by name (N,), higher = describes it better.
        raters: their names.
        count: pairs to rate, as many of each grade as there are.
        seed: of the draw.
        judges: who graded them before, in the words of a sentence.
    Raises: ValueError: as `check_pairs`; raters that do not fit.
    """

    drawing, title = "judge", "You are the judge"

    def __init__(self, images: Sequence[Any], texts: Sequence[str], ratings: np.ndarray,
                 picture: Callable[[Any], Image.Image], scores: Mapping[str, np.ndarray],
                 raters: Sequence[str] = (), count: int = 20, seed: int = 0,
                 judges: str = BEFORE) -> None:
        if not callable(picture):
            raise ValueError("picture must be a function from an image to its picture, such as "
                             f"dataset.open_image; got {quote(picture)}")
        ratings = np.asarray(ratings, float)
        check_count("count", count, least=LEAST)
        check_pairs(images, texts, ratings, scores)
        chosen = draw_evenly(ratings, count, seed)
        self.images, self.texts = ([values[n] for n in chosen] for values in (images, texts))
        self.ratings, self.show = ratings[chosen], picture
        self.scores = {name: np.asarray(values, float)[chosen] for name, values in scores.items()}
        names = tuple(raters) or tuple(f"expert {n + 1}" for n in range(ratings.shape[1]))
        if len(names) != ratings.shape[1]:
            raise ValueError(f"raters must be {ratings.shape[1]} names, one for each column of "
                             f"ratings; got {len(names)}")
        if YOU in (*names, *scores):
            raise ValueError(f"{YOU!r} is the reader: give that rater or those scores another name")
        self.raters, self.judges, self.place = names, judges, 0
        self.events = {"rate": self.rate}
        self.given: dict[int, int] = {}  # by place: the reader's
        self.opened: set[int] = set()  # places of which the reader has seen the others' ratings

    @classmethod
    def of(cls, dataset: RetrievalDataset,
           others: Mapping[str, Searcher | np.ndarray] | None = None,
           seed: int = 0, count: int = 20, split: str = "test") -> Self:
        """Take pairs of a data set, rated by its experts or by exact relevance in four classes.

        Others are trained models by name, or scores as of `load_pairs`.
        """
        scores = {name: one.scores if isinstance(one, Searcher) else one
                  for name, one in (others or {}).items()}
        return cls(**load_pairs(dataset, split, scores, seed), picture=dataset.open_image,
                   count=count, seed=seed)

    def rate(self, given: Mapping[str, Any]) -> None:
        """Give a pair a grade, and go on to the next one without a grade.

        "grade" is from 1 to 4, "pair" a number from 1 (None: the one shown, refused if opened).
        """
        (grade,), count = read_parts("a rating", given, "grade"), len(self.texts)
        pair = self.place + 1 if given.get("pair") is None else given["pair"]
        check_count("pair", pair, most=count)
        check_count("rating", grade, least=min(GRADES), most=max(GRADES))
        place = pair - 1
        if place in self.opened:
            raise ValueError(f"You have seen the grade by {self.judges}: your rating stays.")
        new = place not in self.given
        self.given[place] = grade
        if new:
            ahead = [(place + step) % count for step in range(1, count)]
            self.place = next((one for one in ahead if one not in self.given), place)

    def step(self, by: int, _: Any = None) -> None:
        """Go some pairs on, or back."""
        if not 0 <= self.place + by < len(self.texts):
            raise ValueError("there is no pair beyond the first and the last")
        self.place += by

    def open(self, _: Any = None) -> None:
        """Show how others graded this pair, once it is rated."""
        if self.place not in self.given:
            raise ValueError("Rate the pair first: a grade that you know would sway yours.")
        self.opened.add(self.place)

    @property
    def compared(self) -> list[int]:
        """Places of the pairs that count: those that the reader rated, all if these are too few."""
        return sorted(self.given) if len(self.given) >= LEAST else list(range(len(self.texts)))

    def agreements(self) -> tuple[list[Agreement], list[str]]:
        """Compute `list_agreements` over the pairs compared, with the reader's if they suffice."""
        pairs = self.compared
        enough = len(self.given) >= LEAST
        yours = np.array([float(self.given[n]) for n in pairs]) if enough else None
        return list_agreements(yours, self.ratings[pairs], self.raters,
                               {name: scores[pairs] for name, scores in self.scores.items()})

    @property
    def selected(self) -> pd.DataFrame:
        """The rated pairs: pair (its number, from 1), image, text, you, and each rater's."""
        rated = sorted(self.given)
        return pd.DataFrame({"pair": [n + 1 for n in rated],
                             "image": [self.images[n] for n in rated],
                             "text": [self.texts[n] for n in rated],
                             "you": [self.given[n] for n in rated]} | {
            name: self.ratings[rated, column] for column, name in enumerate(self.raters)})

    def controls(self) -> list[Control]:
        """List what can be set."""
        # none is ever off: the stage hears the keys, and its first and last pair differ
        return [button("back", "Back", partial(self.step, -1)),
                button("forward", "Forward", partial(self.step, 1)),
                button("open", f"Show the grade by {self.judges}", self.open)]

    def stage(self) -> dict[str, Any]:
        """Return the pair, the grades, and the agreement of all."""
        place, waits = self.place, max(LEAST - len(self.given), 0)
        agreements = [] if waits else self.agreements()[0]
        return {"place": place + 1, "count": len(self.texts), "text": self.texts[place],
                "picture": encode_thumbnail(self.show(self.images[place]), SIDE),
                "grades": [{"grade": grade, "words": said, "chosen": self.given.get(place) == grade}
                           for grade, said in GRADES.items()],
                "rated": len(self.given), "others": self._others(), "fixed": place in self.opened,
                "waits": waits, "axis": AXIS, "judges": self.judges,
                "agreements": [one._asdict() | {"says": format_interval(one)}
                               for one in agreements]}

    def _others(self) -> str:
        """List the others' grades of the pair, once the reader asked."""
        if self.place not in self.opened:
            return ""
        grades = {"You": self.given[self.place]} | dict(zip(self.raters, self.ratings[self.place],
                                                            strict=True))
        return ", ".join(f"{name}: {grade:.0f}" for name, grade in grades.items()
                         if not np.isnan(grade))

    def numbers(self) -> dict[str, str]:
        """Return how many pairs are rated, and the agreement of all with its interval."""
        agreements, undefined = self.agreements()
        told = {"rated": f"{len(self.given)} of {len(self.texts)} pairs",
                "compared with": self.judges}
        told |= {f"τ-c, {one.name}": format_interval(one) for one in agreements}
        return told | {f"τ-c, {name}": "not defined" for name in undefined}

    def picture(self) -> Figure:
        """Draw the agreement of all as a dot plot."""
        agreements, undefined = self.agreements()
        note = UNDEFINED if undefined else ""
        if not agreements:
            return you_judge([], self.title, AXIS, note or f"rate {LEAST} pairs first")
        told = (f"{len(self.compared)} pairs, graded from 1 to 4; lines: about 95 %; each rater "
                f"against the others. {note}")
        return you_judge(agreements, self.title, AXIS, told.rstrip(" ."), self.judges)


def format_interval(one: Agreement) -> str:
    """Format an agreement and its interval."""
    return f"{number(one.value, 2)} [{number(one.low, 2)}, {number(one.high, 2)}]"
