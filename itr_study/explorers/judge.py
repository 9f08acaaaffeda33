"""You are the judge: rate pairs that others rated, and see how far all of you agree."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from PIL import Image

from itr_study.checks import check_choice, check_count
from itr_study.data import DATASETS
from itr_study.data.base import Judgements, RetrievalDataset
from itr_study.digits import counted, number
from itr_study.evaluation.search import Searcher
from itr_study.explorers.explorer import Control, Explorer, button
from itr_study.explorers.messages import parts_of, quoted
from itr_study.explorers.pictures import thumbnail_uri
from itr_study.features.dataset import judged_pairs
from itr_study.metrics.human import human_correlation
from itr_study.plots.retrieval import Agreement, nobody_yet, you_judge
from itr_study.progress import progress

FEWEST = 5  # pairs from which on an interval is known
YOU = "you"
# What the experts of Flickr8k were to grade, in the words of its readme, made short.
GRADES = {1: "does not describe it at all", 2: "describes small parts of it",
          3: "almost describes it, with small mistakes", 4: "describes it"}
CLASSES = (1 / 3, 2 / 3, 0.999)  # exact relevance from which a pair has grade 2, 3, 4
BEFORE = "those who rated before"  # where nothing else is known of them
DRAWN = 60  # pairs of each class, where all pairs have exact relevance
LEAST = FEWEST  # ratings before any agreement is shown
SIDE = 320  # pixels of the picture that is rated
AXIS = "Kendall's τ-c"


def tau_interval(tau: float, pairs: int) -> tuple[float, float]:
    """About 95 % interval of Kendall's tau over other pairs, by Fisher's transformation with the
    variance 0.437 / (n - 4) of Fieller, Hartley and Pearson (1957); they had no ties.

    A tau of 1 is taken for one that lies half a step below it: with few pairs it may be chance.

    Args:    pairs: at least 5.

    Example:
        >>> [round(end, 2) for end in tau_interval(0.6, 20)], tau_interval(1.0, 5)[0] < 0.2
        ([0.35, 0.77], True)
    """
    half = 1.959964 * (0.437 / (pairs - 4)) ** 0.5
    most = 1 - 2 / (pairs * (pairs - 1))  # neighbours that swap move it by twice as much below 1
    middle = np.arctanh(np.clip(tau, -most, most))
    low, high = (float(np.tanh(middle + way * half)) for way in (-1, 1))
    return min(low, tau), max(high, tau)


def orders(values: np.ndarray) -> bool:
    """Whether not all values, NaN left out, are equal: else they put nothing above another, and
    Kendall's tau with them is not defined."""
    known = values[~np.isnan(values)]
    return bool(known.size) and bool((known != known[0]).any())


def agreement(scores: np.ndarray, ratings: np.ndarray) -> tuple[float, float, float]:
    """Kendall's tau-c of scores (N,) with all ratings (N, raters) of each pair, and its interval;
    `orders` must hold of both.

    Example: equal grades of five pairs
        >>> agreement(np.array([1, 2, 3, 4, 4]), np.array([[1.0], [2], [3], [4], [4]]))[0]
        0.96
    """
    pairs = len(scores)
    nobody = ("",) * pairs
    judged = Judgements("you", nobody, nobody, ratings, np.zeros(pairs, bool), "c")
    (tau,) = human_correlation(scores, judged).values()
    return tau, *tau_interval(tau, pairs)


def agreements(yours: np.ndarray | None, ratings: np.ndarray, raters: Sequence[str],
               scores: Mapping[str, np.ndarray]) -> tuple[list[Agreement], list[str]]:
    """All who rate N pairs: their agreement, the largest first, and the names of those of whom it
    is not defined, for they or whom they are held against put no pair above another.

    Each rater is held against the other raters, all else against all.

    Args:    yours: (N,) the reader's, None where there are none yet; ratings: (N, raters), NaN
             where absent; scores: by name (N,).
    """
    compared = [] if yours is None else [(YOU, YOU, yours, ratings)]
    for n, name in enumerate(raters):
        rest = np.delete(ratings, n, axis=1)
        both = ~np.isnan(ratings[:, n]) & ~np.isnan(rest).all(axis=1)
        if both.sum() >= FEWEST:
            compared.append((name, "rater", ratings[both, n], rest[both]))
    compared += [(name, "computed", values, ratings) for name, values in scores.items()]
    known = [orders(values) and orders(beside) for _, _, values, beside in compared]
    found = [Agreement(name, kind, *agreement(values, beside))
             for (name, kind, values, beside), defined in zip(compared, known, strict=True)
             if defined]
    return sorted(found, key=lambda one: -one.value), [
        one[0] for one, defined in zip(compared, known, strict=True) if not defined]


class RatedPairs(NamedTuple):
    """N pairs: images (ids), texts, ratings (N, raters) from 1 to 4; scores by name (N,); raters'
    names; who they are, in the words of a sentence."""

    images: list[str]
    texts: list[str]
    ratings: np.ndarray
    scores: dict[str, np.ndarray]
    raters: tuple[str, ...]
    judges: str = BEFORE


def rated_pairs(dataset: RetrievalDataset, name: str, others: Mapping[str, np.ndarray],
                seed: int = 0) -> RatedPairs:
    """Pairs of a split that experts graded, or else some of each class of exact relevance; an
    image's own texts are left out.

    Args:    others: scores by name, (I, T) of the split or (N,) of its judged pairs in their order.
    Raises:  ValueError where nobody graded the pairs, for an unknown split, and for scores of
             another shape.
    """
    check_choice("split", name, dataset.splits)
    split = dataset.splits[name]
    judged = judged_pairs(dataset, split).get("expert")
    if judged is not None:
        rows, columns, ratings = judged.images, judged.texts, judged.judgements.ratings
        raters = tuple(f"expert {n + 1}" for n in range(ratings.shape[1]))
        kept = np.flatnonzero(~judged.judgements.own)
    elif dataset.relevance is not None:
        rows, columns, ratings = by_relevance(dataset.relevance(split), split.image_of_text, seed)
        raters, kept = ("exact relevance",), np.arange(len(rows))
    else:
        raise ValueError(f"nobody graded pairs of the {name} split of {dataset.name}, and their "
                         "exact relevance is not known; take the test split of flickr8k, or "
                         "scenes")
    whole = (len(split.image_ids), len(split.texts))
    scores = {}
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
    return RatedPairs([split.image_ids[n] for n in rows[kept]],
                      [split.texts[n] for n in columns[kept]], ratings[kept], scores, raters,
                      known.judged_by if known and known.judged_by else BEFORE)


def by_relevance(relevance: np.ndarray, image_of_text: np.ndarray, seed: int
                 ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Some pairs of each class of exact relevance (I, T), no image with its own text: images (N,),
    texts (N,) and grades (N, 1)."""
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


def spread(ratings: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Which pairs are rated: as many of each grade as can be, in an order that tells nothing.

    Args:    ratings: (N, raters) from 1 to 4; a pair's grade is the median.
    Returns: (min(count, N),) places of pairs.

    Example: each grade is among the four, the rare ones too
        >>> ratings = np.array([[1], [1], [4], [1], [1], [2], [3], [2]])
        >>> sorted(ratings[spread(ratings, 4, seed=0)].ravel().tolist())
        [1, 2, 3, 4]
    """
    random = np.random.default_rng(seed)
    grade = np.floor(np.nanmedian(ratings, axis=1) + 0.5)  # of two, the upper one
    order = random.permutation(len(grade))
    turn = np.empty(len(grade), int)  # the how-manieth of its grade each pair is
    for level in GRADES:
        own = order[grade[order] == level]
        turn[own] = np.arange(len(own))
    taken = order[np.argsort(turn[order], kind="stable")][:count]
    return random.permutation(taken)


def check_pairs(images: int, texts: int, ratings: np.ndarray,
                scores: Mapping[str, np.ndarray]) -> None:
    """Raise ValueError unless all are of the same pairs, each with a grade."""
    if ratings.ndim != 2 or len({images, texts, len(ratings)}) != 1 or texts < FEWEST:
        raise ValueError(f"images, texts and ratings (pairs, raters) must be of the same pairs, at "
                         f"least {FEWEST}; got {images}, {texts} and {ratings.shape}")
    grades = ratings[~np.isnan(ratings)]
    if np.isnan(ratings).all(axis=1).any() or not np.isin(grades, list(GRADES)).all():
        raise ValueError("ratings must be 1, 2, 3 or 4, at least one for each pair, and NaN where "
                         "a rater gave none")
    if not isinstance(scores, Mapping):
        raise ValueError(f"scores must map a name to {texts} numbers, got {quoted(scores)}")
    for name, values in scores.items():
        values = np.asarray(values, float)
        if values.shape != (texts,) or not np.isfinite(values).all():
            raise ValueError(f"scores of {name!r} must be {texts} finite numbers, one for each "
                             f"pair; got shape {values.shape}")


class YouJudge(Explorer):
    """Some pairs of an image and a text, one after the other, to be rated from 1 to 4.

    What others say of a pair is not shown before the reader has rated it; a rating that the reader
    gave stays once they have looked.

    Args:    images: (N,) what `picture` takes, of each pair; texts: (N,); ratings: (N, raters) from
             1 to 4, NaN where absent; picture: an image -> its picture; scores: by name (N,),
             higher = describes it better; raters: their names; count: pairs to rate, of which as
             many as can be have each grade; seed: which; judges: who graded them before, in the
             words of a sentence.
    Raises:  ValueError for shapes that differ, a pair that nobody rated, ratings that are no
             grades, scores that are not finite, and fewer than 5 pairs.
    """

    drawing, title = "judge", "You are the judge"

    def __init__(self, images: Sequence[Any], texts: Sequence[str], ratings: np.ndarray,
                 picture: Callable[[Any], Image.Image], scores: Mapping[str, np.ndarray],
                 raters: Sequence[str] = (), count: int = 20, seed: int = 0,
                 judges: str = BEFORE) -> None:
        for what, given in (("images", images), ("texts", texts)):
            if given is None:
                raise ValueError(f"{what} must be one for each pair, got None")
        if not callable(picture):
            raise ValueError("picture must be a function from an image to its picture, such as "
                             f"dataset.open_image; got {quoted(picture)}")
        ratings = np.asarray(ratings, float)
        check_count("count", count, least=LEAST)
        check_pairs(len(images), len(texts), ratings, scores)
        chosen = spread(ratings, count, seed)
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
        self.given: dict[int, int] = {}  # by place: the reader's
        self.opened: set[int] = set()  # places of which the reader has seen the others' ratings

    @classmethod
    def of(cls, dataset: RetrievalDataset,
           others: Mapping[str, Searcher | np.ndarray] | None = None,
           seed: int = 0, count: int = 20, split: str = "test") -> Self:
        """Pairs of a data set: those its experts rated, else those whose exact relevance is known,
        in four classes (all of the text holds, at least two thirds, a third, less).

        Args:    others: by name trained models, or scores of all images and texts of the split
                 (I, T) or of its judged pairs (N,) in their order, as
                 `lab.studies.results.judged_of` gives them.
        Raises:  ValueError for a data set that has neither, and for scores of another shape.
        """
        scores = {name: one.scores if isinstance(one, Searcher) else one
                  for name, one in (others or {}).items()}
        pairs = rated_pairs(dataset, split, scores, seed)
        return cls(pairs.images, pairs.texts, pairs.ratings, dataset.open_image, pairs.scores,
                   pairs.raters, count, seed, pairs.judges)

    def rate(self, grade: int, pair: int | None = None) -> None:
        """Give a pair a grade, and go on from it to the next one without.

        Args:    grade: from 1 to 4; pair: its number, from 1; None: the one that is shown.
        Raises:  ValueError for what is no grade or no pair, and for a pair of which the reader
                 knows the others' ratings.
        """
        count, pair = len(self.texts), self.place + 1 if pair is None else pair
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

    def step(self, by: int) -> None:
        """Some pairs on, or back. Raises: ValueError beyond the first and the last."""
        if not 0 <= self.place + by < len(self.texts):
            raise ValueError("there is no pair beyond the first and the last")
        self.place += by

    def open(self, _: Any = None) -> None:
        """Show how others graded this pair. Raises: ValueError before it is rated."""
        if self.place not in self.given:
            raise ValueError("Rate the pair first: a grade that you know would sway yours.")
        self.opened.add(self.place)

    def agreements(self) -> tuple[list[Agreement], list[str]]:
        """All who rate, on the pairs that the reader rated; before there are 5, the others on all
        pairs; and those of whom it is not defined. See `taus.agreements`."""
        pairs = self._compared()
        yours = None if len(self.given) < LEAST else np.array([float(self.given[n]) for n in pairs])
        return agreements(yours, self.ratings[pairs], self.raters,
                          {name: scores[pairs] for name, scores in self.scores.items()})

    def _compared(self) -> list[int]:
        """Places of the pairs that count: those of the reader, all where these are too few."""
        return sorted(self.given) if len(self.given) >= LEAST else list(range(len(self.texts)))

    def _undefined(self, names: Sequence[str]) -> str:
        """Why there is no τ of some, as a sentence."""
        pairs = counted(len(self._compared()), "pair")
        if names and not orders(self.ratings[self._compared()]):
            return (f"All {pairs} have the same grade by {self.judges}: none is above another, and "
                    "Kendall's τ is not defined. Rate more pairs.")
        said = [f"You gave all {pairs} the same grade: that puts none above another, and Kendall's "
                "τ is not defined. Where one text fits better than another, give it a better "
                "grade."] if YOU in names else []
        if others := [name for name in names if name != YOU]:
            said.append(f"No τ for {', '.join(others)}: all pairs are the same to them, or to "
                        "those whom they are held against.")
        return " ".join(said)

    @property
    def selected(self) -> pd.DataFrame:
        """The pairs that the reader rated: pair (its number on the page, from 1), image, text,
        you, and each rater's."""
        rated = sorted(self.given)
        return pd.DataFrame({"pair": [n + 1 for n in rated],
                             "image": [self.images[n] for n in rated],
                             "text": [self.texts[n] for n in rated],
                             "you": [self.given[n] for n in rated]} | {
            name: self.ratings[rated, column] for column, name in enumerate(self.raters)})

    def controls(self) -> list[Control]:
        # none is ever off: a button that is loses the focus, and the keys go to the notebook
        return [button("back", "Back"), button("forward", "Forward"),
                button("open", f"Show the grade by {self.judges}")]

    def actions(self) -> Mapping[str, Callable[[Any], None]]:
        return {"rate": self._rate, "back": lambda _: self.step(-1),
                "forward": lambda _: self.step(1), "open": self.open}

    def _rate(self, said: Mapping[str, Any]) -> None:
        (grade,) = parts_of("a rating", said, "grade")
        self.rate(grade, said.get("pair"))

    def stage(self) -> dict[str, Any]:
        place, enough = self.place, len(self.given) >= LEAST
        agreements = self.agreements()[0] if enough else []
        return {"place": place + 1, "count": len(self.texts), "text": self.texts[place],
                "picture": thumbnail_uri(self.show(self.images[place]), SIDE),
                "grades": [{"grade": grade, "words": said, "chosen": self.given.get(place) == grade}
                           for grade, said in GRADES.items()],
                "rated": len(self.given), "others": self._others(), "fixed": place in self.opened,
                "waits": "" if enough else f"Rate {counted(LEAST - len(self.given), 'more pair')} "
                         f"to see how far you agree with {self.judges}.",
                "axis": AXIS, "judges": self.judges,
                "agreements": [
                    one._asdict() | {"says": f"{number(one.value, 2)} [{number(one.low, 2)}, "
                                             f"{number(one.high, 2)}]"} for one in agreements]}

    def _others(self) -> str:
        """What the others say of the pair, once the reader asked."""
        if self.place not in self.opened:
            return ""
        said = [f"{name}: {rating:.0f}" for name, rating in zip(
            self.raters, self.ratings[self.place], strict=True) if not np.isnan(rating)]
        return f"You: {self.given[self.place]}; " + ", ".join(said) + "."

    def sentence(self) -> str:
        rated, count = len(self.given), len(self.texts)
        agreements, undefined = self.agreements()
        if rated < LEAST:
            told = (f"You have rated {rated} of {count} pairs; from {LEAST} on your agreement is "
                    "shown.")
            ends = [f"{number(one.value, 2)} ({one.name})" for one in agreements]
            return (f"{told} On all of them the others' τ-c goes from {ends[-1]} to {ends[0]}."
                    if len(ends) > 1 else told)
        why = self._undefined(undefined)
        if undefined and undefined[0] == YOU:
            return why
        you = next(one for one in agreements if one.kind == YOU)
        others = [one for one in agreements if one.kind != YOU]
        inside = [one for one in others if you.low <= one.value <= you.high]
        lie = "lies" if len(inside) == 1 else "lie"
        alike = f" {len(inside)} of the {len(others)} others {lie} inside it." * bool(others)
        if len(others) == 1:
            alike = f" The τ-c of {others[0].name} lies {'inside' if inside else 'outside'}."
        return (f"Your τ-c with {self.judges} is {number(you.value, 2)}, from "
                f"{counted(rated, 'pair')}. So few pairs say little: with other pairs like these "
                f"it could be from {number(you.low, 2)} to {number(you.high, 2)}.{alike}"
                + f" {why}" * bool(why))

    def picture(self) -> Figure:
        """The agreement of all, as a dot plot."""
        agreements, undefined = self.agreements()
        if not agreements:
            return nobody_yet(self.title, AXIS, self._undefined(undefined) or f"rate {LEAST} pairs "
                              f"to see how far you agree with {self.judges}")
        enough, pairs = len(self.given) >= LEAST, len(self._compared())
        against = ("; each rater is held against the other raters" * (len(self.raters) > 1))
        return you_judge(agreements, self.title if enough else
                         f"{self.title}: what the others reach on the {pairs} pairs", AXIS,
                         f"{pairs} pairs, graded from 1 to 4; lines: about 95 %, with other pairs"
                         + against + f". {self._undefined(undefined)}".rstrip(" ."), self.judges)
