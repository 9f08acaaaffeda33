"""Search a split with a trained model, by words or by a picture."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from numbers import Integral
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from itr_study.checks import check_choice, check_count
from itr_study.data.base import RetrievalDataset, Split
from itr_study.data.batches import Batch, EncodedSplit, evaluation_view, pad
from itr_study.data.picture_files import as_rgb
from itr_study.data.vocabulary import check_query
from itr_study.digits import counted
from itr_study.evaluation.evaluate import (
    encode_images,
    encode_texts,
    evaluating,
    first,
    join,
    score,
    take,
)
from itr_study.features.texts import EncodedData
from itr_study.metrics.answers import Level, answer_level
from itr_study.models.base import device_of
from itr_study.progress import counting

ALL = "all"  # instead of a split's name: all splits in one
NOTHING = torch.zeros(0, dtype=torch.int64)  # ids of a batch without images, or without texts
NEW = torch.zeros(1, dtype=torch.int64)  # the id of what is in no split
SAMPLE, NEAR = 8, 0.05  # images and texts whose known scores are compared; of their spread
FIRST = 10  # results of an answer: it holds if a match is among them
ASKED, WORK = 1000, 200_000_000  # queries of the calibration at most, and products of two vectors
LEAST = 100  # such queries at least: a model with attention compares all places with all words
PROMISES = (0.1, 0.2, 0.3, 0.4, 0.5)  # shares of wrong answers: the first that can be kept
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class Hit(NamedTuple):
    """One result: rank from 1, score (higher = more alike), index in the split, id and text."""

    rank: int
    score: float
    index: int
    id: str
    text: str
    match: bool | None  # None where the right answer is not known


class Hits(list[Hit]):
    """Results, best first; whether something fits is computed when it is asked for."""

    def __init__(self, hits: Iterable[Hit], searcher: "Searcher") -> None:
        super().__init__(hits)
        self._searcher = searcher

    @property
    def fits(self) -> bool | None:
        """Whether the best score reaches `Searcher.level`; None: nobody can know."""
        level = self._searcher.level
        return None if level is None else self[0].score >= level.score

    @property
    def refusal(self) -> str:
        """Say that nothing fits, or that nobody knows, and why; "" where something fits."""
        level, best = self._searcher.level, self[0].score
        if level is None:
            return f"whether something fits is not known: {self._searcher.unknown}"
        if best >= level.score:
            return ""
        if level.score == np.inf:
            return ("nothing here can be said to fit: at no score do half of the answers hold "
                    f"(tried with {counted(level.queries, 'caption')} of dev)")
        digits = 2 if level.score - best > 0.01 else 4
        return (f"nothing here fits (the best score, {best:.{digits}f}, is below "
                f"{level.score:.{digits}f}, the level at which {10 * (1 - level.wrong):.0f} of 10 "
                f"answers hold, tried with {counted(level.queries, 'caption')} of dev)")


@dataclass(eq=False)
class Searcher:
    """A split encoded and scored once, ready for queries; only new words and pictures are encoded.

    Args:
        model: trained.
        dataset: the data before encoding, or new pictures without texts (`load_pictures`).
        data: the same after encoding (of new pictures: `with_pictures`).
        name: of the split searched; "all": all of them in one.
        known: scores that need not be computed again, by the names of `measures.all_scores`.
        calibration: split whose captions tell what a good score is; None: dev, if there is one.
    Raises: ValueError: a split that the data does not have, known scores of other data or weights.
    """

    model: nn.Module
    dataset: RetrievalDataset
    data: EncodedData
    name: str = "test"
    known: Mapping[str, Tensor] = field(default_factory=dict, repr=False)
    calibration: EncodedSplit | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_choice("split to search", self.name, [*self.dataset.splits, ALL])
        if self.calibration is None:
            self.calibration = self.data.splits.get("dev")
        names = [*self.dataset.splits] if self.name == ALL else [self.name]
        self.split = joined([self.dataset.splits[name] for name in names])
        size, found = (len(self.split.image_ids), len(self.split.texts)), self.known.get("scores")
        if found is not None and tuple(found.shape) != size:
            raise ValueError(f"known scores must be of the {size[0]} images and {size[1]} texts of "
                             f"{self.name}, got {tuple(found.shape)}; leave them out, or name the "
                             "split that they are of")
        self.device = device_of(self.model)
        encoded = [self.data.splits[name] for name in names]
        with counting(f"encoding {self._size}", 2) as show:
            self.images = join([encode_images(self.model, split) for split in encoded])
            show(1, "images are done")
            self.texts = join([encode_texts(self.model, split)
                               for split in encoded]) if self.split.texts else None
        if found is not None:
            rows, columns = (torch.linspace(0, n - 1, min(n, SAMPLE)).long() for n in size)
            own = score(self.model, take(self.images, rows), take(self.texts, columns))
            if ((own - found[rows][:, columns]).abs() > NEAR * own.std(correction=0) + 1e-3).any():
                raise ValueError(f"known scores are not those of this model and {self.name}: other "
                                 "weights or other data made them; leave them out")

    @property
    def encoded(self) -> EncodedSplit:
        """The split as arrays; there is none of all splits in one."""
        return self.data.splits[self.name]

    @cached_property
    def scores(self) -> np.ndarray:
        """(I, T) float32 of all images and texts of the split, which must have texts."""
        if "scores" in self.known:
            return self.known["scores"].numpy()
        with counting(f"scoring {self._size}", 1):
            return score(self.model, self.images, self.texts).numpy()

    @property
    def _size(self) -> str:
        """The size of the split in words."""
        return f"{len(self.split.image_ids):,} images and {len(self.split.texts):,} texts"

    @cached_property
    def relevance(self) -> np.ndarray | None:
        """(I, T) exact relevance, if the data knows it."""
        known = self.dataset.relevance
        return None if known is None else known(self.split)

    @cached_property
    def first_texts(self) -> list[str]:
        """The first text of every image, "" if it has none."""
        first = dict(reversed(list(zip(self.split.image_of_text, self.split.texts, strict=True))))
        return [first.get(i, "") for i in range(len(self.split.image_ids))]

    @cached_property
    def level(self) -> Level | None:
        """The best score from which answers hold (`answer_level`); None where it is `unknown`.

        Captions of dev ask for their pictures, which join those searched. Of the promises, that for
        9, 8, ... or 5 of 10 answers the picture is among the first 10, the first is taken that can
        be kept.
        """
        if self.unknown:
            return None
        best, right = self.asked(self.calibration)
        levels = [answer_level(best, right, wrong) for wrong in PROMISES]
        return next((level for level in levels if level.answered), levels[-1])

    @property
    def unknown(self) -> str:
        """Why nobody can know what a good score is; "" where one can."""
        dev = self.calibration
        if dev is None or dev.sentences is None and dev.tokens is None:
            return "there is no dev split to try captions of"
        return "there are too few pictures" * (len(self.split.image_ids) <= 2 * FIRST)

    def asked(self, dev: EncodedSplit) -> tuple[np.ndarray, np.ndarray]:
        """Ask captions of a split: their best score (Q,), and whether their picture is found."""
        texts = encode_texts(self.model, dev)
        products = math.prod(first(code).shape[1] for code in (self.images, texts)
                             if first(code).ndim > 2) * len(self.split.image_ids)
        most = min(dev.n_texts, ASKED, max(LEAST, WORK // products))
        queries = torch.linspace(0, dev.n_texts - 1, most).long()
        texts, owner = take(texts, queries), dev.image_of_text[queries.numpy()]
        others = score(self.model, self.images, texts).numpy()  # (I, Q)
        pictures, place = np.unique(owner, return_inverse=True)
        own = score(self.model, take(encode_images(self.model, dev), torch.from_numpy(pictures)),
                    texts).numpy()[place, np.arange(len(owner))]
        if dev.name in self.dataset.splits:  # the picture itself may be among those searched
            asking = np.array(self.dataset.splits[dev.name].image_ids)[owner]
            others[np.array(self.split.image_ids)[:, None] == asking] = -np.inf
        return np.maximum(others.max(axis=0), own), (others >= own).sum(axis=0) < FIRST

    def search_text(self, text: int | str, top: int = 10) -> Hits:
        """Find the images most alike to a text, each with its first text.

        The result tells by `fits` and `refusal` whether something fits at all.

        Args:
            text: its index in the split, or any words; new ones have no known match.
            top: number of results.
        Raises: ValueError: an index out of range, new words without a word, scores that are NaN.
        """
        owners, texts = self.split.image_of_text, self.split.texts
        if isinstance(text, str):
            same = [t for t, words in enumerate(texts) if words == text]
            scores = self._scores_of(text=same[0]) if same else self._score_words(text)
            matches = {owners[t] for t in same} if same else None
        else:
            index = self._index("text", text, len(texts))
            scores, matches = self._scores_of(text=index), {owners[index]}
        return Hits((Hit(rank, value, i, self.split.image_ids[i], self.first_texts[i],
                         None if matches is None else i in matches)
                     for rank, value, i in best(scores, top)), self)

    def search_image(self, image: int | str | Image.Image, top: int = 10) -> list[Hit]:
        """Find the texts most alike to an image.

        Args:
            image: its index or its id in the split, or any picture, whose matches are unknown.
            top: number of results.
        Raises: ValueError: an unknown index or id, a new picture if features came with the data, a
            split without texts.
        """
        if self.texts is None:
            raise ValueError(f"{self.dataset.name} has no texts to find; search it by a text")
        if isinstance(image, Image.Image):
            index, scores = None, self._score_picture(image)
        else:
            index = (self._place(image) if isinstance(image, str)
                     else self._index("image", image, len(self.split.image_ids)))
            scores = self._scores_of(image=index)
        owners = self.split.image_of_text
        return [Hit(rank, value, t, self.split.text_ids[t], self.split.texts[t],
                    None if index is None else bool(owners[t] == index))
                for rank, value, t in best(scores, top)]

    def doubts(self, text: str) -> str:
        """Warn of what the model cannot read of a query; "" if it reads all."""
        (unread,) = self.data.unread([text])
        unknown = ", ".join(unread.words)
        if unread.nothing:
            return f"the model knows no word of it ({unknown}): this order means nothing"
        said = [f"not known to the model, which cannot read it: {unknown}"] * bool(unknown)
        return "; ".join(said + [f"cut at {unread.cut} pieces of words: the model does not read "
                                 "what follows"] * bool(unread.cut))

    def scores_for(self, image: int | None = None, text: int | None = None) -> np.ndarray:
        """Score an image (T,) or a text (I,), by its index, alone: `scores` but for last bits."""
        images = self.images if image is None else take(self.images, torch.tensor([image]))
        texts = self.texts if text is None else take(self.texts, torch.tensor([text]))
        return score(self.model, images, texts).flatten().numpy()

    def _scores_of(self, image: int | None = None, text: int | None = None) -> np.ndarray:
        """Look the same up in `scores`; of all splits in one compute it: `scores` may be large."""
        if self.name == ALL:
            return self.scores_for(image, text)
        return self.scores[:, text] if image is None else self.scores[image]

    def _place(self, image_id: str) -> int:
        if image_id not in self.split.image_ids:
            examples = ", ".join(self.split.image_ids[:3])
            raise ValueError(f"{image_id!r} is neither a picture file nor an image of the "
                             f"{self.name} split, whose ids look like {examples}")
        return self.split.image_ids.index(image_id)

    def _index(self, kind: str, index: int, count: int) -> int:
        whole = isinstance(index, Integral) and not isinstance(index, bool)
        if not (whole and 0 <= index < count):
            new = "any words" if kind == "text" else "an id, or a picture of PIL"
            raise ValueError(f"{kind} must be an index in [0, {count}), the {kind}s of the "
                             f"{self.name} split, or {new}; got {index!r:.80}")
        return int(index)

    def _score_words(self, words: str) -> np.ndarray:
        """Score all images (I,) for new words."""
        check_query(words)
        tokens, sentences = self.data.encode_texts([words])
        tokens, lengths = (None, None) if tokens is None else pad(tokens)
        batch = Batch(NOTHING, NEW, NEW, tokens=tokens, lengths=lengths,
                      sentences=None if sentences is None else as_tensor(sentences))
        with evaluating(self.model):
            code = self.model.encode_texts(batch.to(self.device))
        return score(self.model, self.images, code)[:, 0].numpy()

    def _score_picture(self, picture: Image.Image) -> np.ndarray:
        """Score all texts (T,) for a new picture."""
        features = self.data.encode_images([as_rgb(picture)])
        regions = as_tensor(evaluation_view(features, np.array([0])))
        batch = Batch(NEW, NOTHING, NOTHING, regions=regions,
                      region_mask=torch.ones(regions.shape[:2], dtype=torch.bool))
        with evaluating(self.model):
            code = self.model.encode_images(batch.to(self.device))
        return score(self.model, code, self.texts)[0].numpy()


def joined(splits: list[Split]) -> Split:
    """Join several splits; a single one is returned as it is."""
    if len(splits) == 1:
        return splits[0]
    starts = np.cumsum([0, *(len(split.image_ids) for split in splits)])
    owners = [split.image_of_text + start for split, start in zip(splits, starts, strict=False)]
    ids, text_ids, texts = (tuple(chain.from_iterable(parts)) for parts in zip(
        *((split.image_ids, split.text_ids, split.texts) for split in splits), strict=True))
    return Split(ALL, ids, text_ids, texts, np.concatenate(owners))


def as_tensor(values: np.ndarray) -> Tensor:
    """Convert to float32 on the CPU."""
    return torch.from_numpy(np.asarray(values, np.float32))


def best(scores: np.ndarray, top: int) -> list[tuple[int, float, int]]:
    """List (rank, score, index) of the highest scores, the first of equals first."""
    check_count("top", top)
    if np.isnan(scores).any():
        raise ValueError("the model gives NaN instead of scores, so nothing can be ranked; train "
                         "it again, with a lower learning rate")
    order = np.argsort(-scores, kind="stable")[:top].tolist()
    return [(rank, scores[i].item(), i) for rank, i in enumerate(order, start=1)]


def one_line(text: str) -> str:
    """Write what a terminal would obey, such as a new line in the name of a file, as letters."""
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text.rstrip())


def hit_table(hits: list[Hit]) -> str:
    """Write one line per hit below the names of the columns; right ones are marked."""
    ids = [one_line(hit.id) for hit in hits]
    width = max(len("id"), *map(len, ids))
    lines = (f"{h.rank:4}  {h.score:7.4f}  {'match' if h.match else '':<5}  {name:<{width}}  "
             f"{one_line(h.text)}" for h, name in zip(hits, ids, strict=True))
    heading = f"rank  {'score':>7}  {'':<5}  {'id':<{width}}  text"
    return "\n".join([heading, *(line.rstrip() for line in lines)])
