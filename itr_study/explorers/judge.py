"""You are the judge: rate pairs that others rated, and see how far all of you agree."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from PIL import Image

from itr_study.checks import check_count
from itr_study.data.base import RetrievalDataset
from itr_study.digits import counted, number
from itr_study.explorers.explorer import Control, Explorer, button
from itr_study.explorers.heard import parts_of, quoted
from itr_study.explorers.rated_pairs import BEFORE, GRADES, check_pairs, rated_pairs, spread
from itr_study.explorers.taus import FEWEST, YOU, agreements, orders
from itr_study.explorers.thumbnails import thumbnail_uri
from itr_study.plots.you_judge import Agreement, nobody_yet, you_judge

LEAST = FEWEST  # ratings before any agreement is shown
SIDE = 320  # pixels of the picture that is rated
AXIS = "Kendall's τ-c"


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
    def of(cls, dataset: RetrievalDataset, others: Mapping[str, np.ndarray] | None = None,
           seed: int = 0, count: int = 20, split: str = "test") -> Self:
        """Pairs of a data set: those its experts rated, else those whose exact relevance is known,
        in four classes (all of the text holds, at least two thirds, a third, less).

        Args:    others: by name the scores of all images and texts of the split (I, T), or of its
                 judged pairs (N,) in their order, as `studies.results.judged_of` gives them.
        Raises:  ValueError for a data set that has neither, and for scores of another shape.
        """
        pairs = rated_pairs(dataset, split, others or {}, seed)
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
