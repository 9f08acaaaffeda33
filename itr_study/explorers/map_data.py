"""Compute what a map shows: places, ranks, colours, numbers; encode it for the page."""

from base64 import b64encode
from collections.abc import Callable, Hashable, Mapping, Sequence
from textwrap import shorten
from typing import NamedTuple

import numpy as np
import pandas as pd
from PIL import Image

from itr_study.digits import number, signed
from itr_study.explorers.messages import quote
from itr_study.explorers.pictures import encode_thumbnail
from itr_study.metrics.first import first, first_with_scores
from itr_study.metrics.ranks import ranks, ranks_from_embeddings
from itr_study.metrics.scores import AnyScores, Scores
from itr_study.metrics.truth import check_image_of_text
from itr_study.plots.retrieval import STEPS, Shade, colours_of
from itr_study.progress import counting

FIRST = 10  # results of a query that count for hubness
BLOCK = 512  # queries scored at a time
MARGIN = 1.05  # of the whole: no mark is on its edge
FINEST = 65535  # steps of a place that is sent, over the whole map
LETTERS = 60  # of a text that is named

Frame = tuple[np.ndarray, np.ndarray]  # images (I, D), texts (T, D)


class Plane(NamedTuple):
    """Of each frame places (I + T, 2), images first, and shares (2,) of the variance kept."""

    places: dict[Hashable, np.ndarray]
    shares: dict[Hashable, np.ndarray]


def project(frames: Mapping[Hashable, Frame]) -> Plane:
    """Project all frames on the first two principal components of the last one.

    Each axis points to where its largest loading is positive, whatever the solver says.
    """
    from sklearn.decomposition import PCA  # here: it takes a second, which a search need not pay

    vectors = {name: np.concatenate(frame).astype(np.float64) for name, frame in frames.items()}
    with np.errstate(invalid="ignore", divide="ignore"):  # its shares of no variance, not used
        fitted = PCA(2, svd_solver="covariance_eigh").fit(list(vectors.values())[-1])
    axes = fitted.components_
    axes = axes * np.sign(np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], 1))
    places, shares = {}, {}
    for name, values in vectors.items():
        places[name] = (values - fitted.mean_) @ axes.T
        whole = values.var(axis=0).sum()
        shares[name] = places[name].var(axis=0) / whole if whole > 0 else np.zeros(2)
    return Plane(places, shares)


class Known(NamedTuple):
    """Ranks (I + T,) of the matches, and counts (I + T,) of the queries that find each."""

    ranks: np.ndarray
    counts: np.ndarray


def compute_known(frame: Frame, image_of_text: np.ndarray,
                  scores: AnyScores | None = None) -> Known:
    """Rank a frame by scores (I, T), None: by the inner products of its vectors.

    Example: of galleries of two, all are among the first ten of both queries
        >>> frame = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1.0, 0.0], [0.6, 0.8]])
        >>> compute_known(frame, np.array([0, 1]))
        Known(ranks=array([1, 1, 1, 1]), counts=array([2, 2, 2, 2]))
    """
    images, texts = (np.asarray(part, np.float32) for part in frame)
    if scores is None:
        found = ranks_from_embeddings(images, texts, image_of_text)
        counts = [count_found(images, texts), count_found(texts, images)]
    else:
        found, lists = ranks(scores, image_of_text), first(scores, FIRST)
        counts = [np.bincount(lists["t2i"].ravel(), minlength=len(images)),
                  np.bincount(lists["i2t"].ravel(), minlength=len(texts))]
    return Known(np.concatenate([found.i2t, found.t2i]), np.concatenate(counts))


def count_found(candidates: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Count of how many queries (q, D) each candidate (n, D) is among the first FIRST."""
    counts = np.zeros(len(candidates), np.int64)
    for start in range(0, len(queries), BLOCK):
        scores = queries[start:start + BLOCK] @ candidates.T
        found, _ = first_with_scores(scores, FIRST, "i2t")  # rows ask
        counts += np.bincount(found.ravel(), minlength=len(candidates))
    return counts


def pick_far(places: np.ndarray, centre: np.ndarray, most: int) -> np.ndarray:
    """Pick some of places (n, 2): the nearest to a centre, then always the farthest from those.

    Example:
        >>> pick_far(np.array([[0, 0], [1, 0], [9, 0], [8, 0]]), np.array([1.2, 0]), 3)
        array([1, 2, 0])
    """
    taken: list[int] = []
    far = -np.square(places - centre).sum(axis=1)
    while len(taken) < min(most, len(places)):
        taken.append(int(far.argmax()))
        own = np.square(places - places[taken[-1]]).sum(axis=1)
        far = own if len(taken) == 1 else np.minimum(far, own)
        far[taken] = -1
    return np.array(taken, np.int64)


def rank_shade(ranks: np.ndarray, most: int) -> Shade:
    """Colour ranks (n,) of the match, log from 1 to `most`; hollow beyond FIRST."""
    most = max(most, 2)
    far = np.log(most)
    ticks = [(float(np.log(rank) / far), f"{rank:,}") for rank in list_powers(most)]
    return Shade("rank of the match", np.log(ranks) / far, ranks > FIRST, ticks,
                 meaning=(f"match among the first {FIRST}", "match further down"))


def hub_shade(counts: np.ndarray, most: int) -> Shade:
    """Colour how often each (n,) is found, log(1 + count) from 0 to `most`; hollow if never."""
    far = np.log1p(max(most, 1))
    ticks = [(float(np.log1p(count) / far), f"{count:,}")
             for count in (0, *list_powers(max(most, 1)))]
    return Shade(f"how often among the first {FIRST}", np.log1p(counts) / far, counts == 0, ticks,
                 meaning=("found", f"never among the first {FIRST}"))


def gain_shade(difference: np.ndarray, most: int) -> Shade:
    """Colour rank less rank under another model (n,), log to both sides; hollow if worse."""
    far = np.log1p(max(most, 1))
    ends = [(float(np.log1p(size) / far / 2), size) for size in list_powers(max(most, 1))]
    ticks = [*((0.5 - at, signed(-size, 0)) for at, size in reversed(ends)), (0.5, "0"),
             *((0.5 + at, signed(size, 0)) for at, size in ends)]
    levels = 0.5 + np.sign(difference) * np.log1p(np.abs(difference)) / far / 2
    return Shade("rank here minus rank of the other model", levels, difference > 0, ticks,
                 signed=True, meaning=("ranked as high here, or higher", "ranked lower here"))


def list_powers(most: int) -> Sequence[int]:
    """List powers of ten below `most`, and `most` unless it is too near to the last of them.

    Example:
        >>> list_powers(500), list_powers(11), list_powers(1)
        ([1, 10, 100, 500], [1, 11], [1])
    """
    powers = [10 ** power for power in range(len(str(most))) if 10 ** power * 2 <= most]
    return [*powers, most]


class MapData:
    """The points of a map, images first, in all frames; arguments as of `EmbeddingMap`."""

    def __init__(self, frames: Mapping[Hashable, Frame], image_of_text: np.ndarray,
                 texts: Sequence[str], image_ids: Sequence[str] | None,
                 picture: Callable[[str], Image.Image] | None, other: AnyScores | None,
                 scores: AnyScores | None) -> None:
        frames = read_frames(frames)
        shape = self.n_images, self.n_texts = tuple(map(len, next(iter(frames.values()))))
        if scores is not None and len(frames) > 1:
            raise ValueError(f"scores are of one frame, but there are {len(frames)}; give the "
                             "frames alone: their ranks are those of inner products")
        owner = check_image_of_text(image_of_text, *shape)
        ids = [f"image {n}" for n in range(1, shape[0] + 1)] if image_ids is None else image_ids
        for what, given, count in (("texts", texts, shape[1]), ("image_ids", ids, shape[0])):
            if given is None or len(given) != count:
                raise ValueError(f"{what} must be one for each of {count} vectors, in their order; "
                                 f"got {'none' if given is None else len(given)}")
        for what, given in (("other", other), ("scores", scores)):
            if given is not None and Scores.of(given).shape != shape:
                raise ValueError(f"{what} must be scores of the same images and texts, {shape}; "
                                 f"got {Scores.of(given).shape}")
        self.items, self.picture, self.names = [*ids, *texts], picture, list(frames)
        self.first_text = {int(i): text for i, text in zip(owner[::-1], texts[::-1], strict=True)}
        with counting(f"a map of {shape[0]:,} images and {shape[1]:,} texts",
                      len(frames) + 1) as show:
            self.plane, self.known = project(frames), {}
            for done, (name, frame) in enumerate(frames.items(), start=1):
                show(done, "ranks and neighbours")
                self.known[name] = compute_known(frame, owner, scores)
            found = None if other is None else ranks(other, owner)
        self.other = None if found is None else np.concatenate([found.i2t, found.t2i])
        every = np.concatenate(list(self.plane.places.values()))
        low, high = every.min(axis=0), every.max(axis=0)
        self.middle, self.whole = (low + high) / 2, MARGIN * (float((high - low).max() / 2) or 1.0)
        self.shades = {name: self._shades(name) for name in frames}

    def _shades(self, name: Hashable) -> dict[str, Shade]:
        """Return what the points of a frame can be coloured by, on the scales of all frames."""
        known, every = self.known[name], self.known.values()
        kinds = np.repeat([0.0, 1.0], [self.n_images, self.n_texts])
        shades = {"kind": Shade("images and texts", kinds, np.zeros(len(kinds), bool)),
                  "rank": rank_shade(known.ranks, max(int(one.ranks.max()) for one in every)),
                  "hub": hub_shade(known.counts, max(int(one.counts.max()) for one in every))}
        if self.other is not None:
            most = max(int(np.abs(one.ranks - self.other).max()) for one in every)
            shades["gain"] = gain_shade(known.ranks - self.other, most)
        return shades

    def find_inside(self, name: Hashable, corners: np.ndarray) -> np.ndarray:
        """Find the points of a frame between two corners (2, 2), the low one first."""
        places, (low, high) = self.plane.places[name], corners
        return np.flatnonzero(((places >= low) & (places <= high)).all(axis=1))

    def table(self, name: Hashable, points: np.ndarray) -> pd.DataFrame:
        """List points of a frame: kind, index in the split, item, rank of the match, found."""
        image, known = points < self.n_images, self.known[name]
        return pd.DataFrame({"kind": np.where(image, "image", "text"),
                             "index": np.where(image, points, points - self.n_images),
                             "item": [self.items[i] for i in points.tolist()],
                             "rank": known.ranks[points], "found": known.counts[points]})

    def numbers(self, name: Hashable, colour: str) -> dict[str, str]:
        """Return what a colour shows in a frame; the first is also told of other frames."""
        places, known = self.plane.places[name], self.known[name]
        if colour == "kind":
            images, texts = np.split(places, [self.n_images])
            gap = np.linalg.norm(images.mean(axis=0) - texts.mean(axis=0)) / self.spread(name)
            return {"between the middles of images and texts": number(float(gap), 2)}
        if colour == "rank":
            failed = known.ranks > FIRST
            images, texts = np.split(failed, [self.n_images])
            far = np.linalg.norm(places - places.mean(axis=0), axis=1)
            inner = far <= np.median(far)
            parts = {"failures": failed, "failures, images": images, "failures, texts": texts,
                     "failures, inner half": failed[inner], "failures, outer half": failed[~inner]}
            return {label: format_share(part) for label, part in parts.items() if part.size}
        if colour == "gain":
            gains = self.other - known.ranks
            return {"ranked higher here": format_share(gains > 0),
                    "ranked lower here": format_share(gains < 0)}
        sizes = self.n_images, self.n_texts
        expected = [min(FIRST, own) * asking / own
                    for own, asking in zip(sizes, sizes[::-1], strict=True)]
        hub = int((known.counts / np.repeat(expected, sizes)).argmax())
        return {"never found": format_share(known.counts == 0),
                "strongest hub": shorten(self.items[hub], LETTERS),
                "found by": f"{known.counts[hub]:,} of {sizes[hub < self.n_images]:,}",
                "an image on average": number(expected[0], 1),
                "a text on average": number(expected[1], 1)}

    def spread(self, name: Hashable) -> float:
        """Compute the mean distance of points from their middle; 1 if all are equal."""
        places = self.plane.places[name]
        return float(np.linalg.norm(places - places.mean(axis=0), axis=1).mean()) or 1.0

    def encode(self, key: str) -> str:
        """Encode an array or a picture for the page, in base64.

        "places/FRAME": pairs of uint16, 0 to FINEST over the whole map; "shade/COLOUR/FRAME":
        uint8, the step on the scale, and STEPS more if hollow; "picture/IMAGE": its address.
        """
        what, *which = str(key).split("/")
        try:
            if int(which[-1]) < 0:  # which Python counts from the end
                raise LookupError(key)
            if what == "picture":
                image = range(self.n_images)[int(which[0])]
                return encode_thumbnail(self.picture(self.items[image]))
            name = self.names[int(which[-1])]
            if what == "places":
                places = (self.plane.places[name] - self.middle) / self.whole
                values = np.round((places + 1) / 2 * FINEST).astype("<u2")
            else:
                shade = self.shades[name][which[0]]
                values = np.round(shade.levels * (len(colours_of(shade)) - 1)).astype(np.uint8)
                values += STEPS * shade.hollow.astype(np.uint8)
            return b64encode(values.tobytes()).decode()
        except (LookupError, TypeError, ValueError) as error:
            raise ValueError(f"there is no {key!r} on this map") from error


def format_share(which: np.ndarray) -> str:
    """Format how many of all, and their share.

    Example:
        >>> format_share(np.array([True, False, False]))
        '1 of 3 (33 %)'
    """
    return f"{which.sum():,} of {len(which):,} ({number(100 * float(np.mean(which)), 0)} %)"


def read_frames(frames: Mapping[Hashable, Frame]) -> dict[Hashable, Frame]:
    """Convert frames to float arrays of the same images and texts in one space; else ValueError."""
    if not isinstance(frames, Mapping) or not frames:
        raise ValueError("frames must map a name, such as an epoch, to (images (I, D), texts (T, "
                         f"D)); got {quote(frames)}")
    checked, shapes = {}, set()
    for name, frame in frames.items():
        if not isinstance(frame, list | tuple) or len(frame) != 2:
            raise ValueError(f"frame {name!r} must be (images (I, D), texts (T, D)), got "
                             f"{quote(frame)}")
        images, texts = (np.asarray(part, np.float32) for part in frame)
        shapes.add((images.shape, texts.shape))
        if (images.ndim != 2 or texts.ndim != 2 or images.shape[1:] != texts.shape[1:]
                or images.shape[1] < 2 or not len(images) or not len(texts)):
            raise ValueError("a frame must be (images (I, D), texts (T, D)), one vector each, D at "
                             f"least 2; frame {name!r} has {images.shape} and {texts.shape}")
        if not (np.isfinite(images).all() and np.isfinite(texts).all()):
            raise ValueError(f"the vectors of frame {name!r} hold NaN or infinity: the model has "
                             "diverged; take an earlier epoch")
        checked[name] = images, texts
    if len(shapes) > 1:
        raise ValueError("all frames must be of the same images and texts in the same space; got "
                         f"shapes {sorted(shapes)}")
    return checked
