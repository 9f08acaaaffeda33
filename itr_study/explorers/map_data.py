"""What a map shows, computed once: places, ranks, colours; and how they are sent."""

from base64 import b64encode
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from PIL import Image

from itr_study.digits import signed
from itr_study.explorers.messages import quoted
from itr_study.explorers.pictures import thumbnail_uri
from itr_study.metrics.first import first, first_with_scores
from itr_study.metrics.ranks import ranks, ranks_from_embeddings
from itr_study.metrics.scores import AnyScores, Scores
from itr_study.metrics.truth import check_image_of_text
from itr_study.plots.embedding_map import STEPS, Shade, colours_of
from itr_study.progress import counting

FIRST = 10  # results of a query that count for hubness
BLOCK = 512  # queries scored at a time

Frame = tuple[np.ndarray, np.ndarray]  # images (I, D), texts (T, D)
MARGIN = 1.05  # of the whole: no mark lies on its edge
FINEST = 65535  # steps of a place that is sent, over the whole map


class Plane(NamedTuple):
    """Places of all images, then of all texts, frame by frame, on axes that stay.

    places: frame -> (I + T, 2) float64; shares: frame -> (2,) of the variance of its vectors that
    each axis keeps, in [0, 1].
    """

    places: dict[Hashable, np.ndarray]
    shares: dict[Hashable, np.ndarray]

    @property
    def bounds(self) -> tuple[np.ndarray, float]:
        """(2,) the middle of all places of all frames, and half the side of a square that holds
        them."""
        every = np.concatenate(list(self.places.values()))
        low, high = every.min(axis=0), every.max(axis=0)
        return (low + high) / 2, float((high - low).max() / 2) or 1.0


def plane_of(frames: Mapping[Hashable, Frame]) -> Plane:
    """The first two principal components of the last frame, and all frames on them.

    Each axis points to where its largest loading is positive, whatever the solver says, so that the
    same vectors give the same picture everywhere.
    """
    from sklearn.decomposition import PCA  # here: it takes a second, which a search need not pay

    vectors = {name: np.concatenate(frame).astype(np.float64) for name, frame in frames.items()}
    with np.errstate(invalid="ignore", divide="ignore"):  # its shares of no variance, not used
        fitted = PCA(2, svd_solver="covariance_eigh").fit(list(vectors.values())[-1])
    axes = fitted.components_
    axes = axes * np.sign(np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], 1))
    places = {name: (values - fitted.mean_) @ axes.T for name, values in vectors.items()}
    return Plane(places, {name: shares(vectors[name], places[name]) for name in vectors})


def shares(vectors: np.ndarray, places: np.ndarray) -> np.ndarray:
    """(2,) of the variance of vectors (n, D) what two axes keep of it; 0 where there is none."""
    whole = vectors.var(axis=0).sum()
    return places.var(axis=0) / whole if whole > 0 else np.zeros(2)


class Known(NamedTuple):
    """Of all images, then all texts: ranks (I + T,), of the best match of each, from 1; counts
    (I + T,), of how many queries of the other kind each is among the first FIRST: the counts whose
    skewness `metrics.hubness` is."""

    ranks: np.ndarray
    counts: np.ndarray


def known_of(frame: Frame, image_of_text: np.ndarray) -> Known:
    """What the inner products of two sets of vectors say.

    Example: of galleries of two, all are among the first ten of both queries
        >>> frame = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1.0, 0.0], [0.6, 0.8]])
        >>> known_of(frame, np.array([0, 1]))
        Known(ranks=array([1, 1, 1, 1]), counts=array([2, 2, 2, 2]))
    """
    images, texts = (np.asarray(part, np.float32) for part in frame)
    found = ranks_from_embeddings(images, texts, image_of_text)
    return Known(np.concatenate([found.i2t, found.t2i]),
                 np.concatenate([counts_of(images, texts), counts_of(texts, images)]))


def ranks_by(scores: AnyScores, image_of_text: np.ndarray) -> np.ndarray:
    """(I + T,) of all images, then all texts, the rank of the best match by the scores (I, T)."""
    found = ranks(scores, image_of_text)
    return np.concatenate([found.i2t, found.t2i])


def known_by(scores: AnyScores, image_of_text: np.ndarray) -> Known:
    """What the scores (I, T) of a model say."""
    results = first(scores, FIRST)
    n_images, n_texts = Scores.of(scores).shape
    return Known(ranks_by(scores, image_of_text),
                 np.concatenate([np.bincount(results["t2i"].ravel(), minlength=n_images),
                                 np.bincount(results["i2t"].ravel(), minlength=n_texts)]))


def counts_of(candidates: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """(n,) of how many queries (q, D) each candidate (n, D) is among the first FIRST."""
    counts = np.zeros(len(candidates), np.int64)
    for start in range(0, len(queries), BLOCK):
        scores = queries[start:start + BLOCK] @ candidates.T
        found, _ = first_with_scores(scores, FIRST, "i2t")  # rows ask
        counts += np.bincount(found.ravel(), minlength=len(candidates))
    return counts


def spread_out(places: np.ndarray, centre: np.ndarray, most: int) -> np.ndarray:
    """Indices of at most so many of places (n, 2): the nearest to a centre first, then always the
    one that is farthest from those taken.

    Example:
        >>> spread_out(np.array([[0, 0], [1, 0], [9, 0], [8, 0]]), np.array([1.2, 0]), 3)
        array([1, 2, 0])
    """
    if not len(places):
        return np.zeros(0, np.int64)
    taken = [int(np.square(places - centre).sum(axis=1).argmin())]
    far = np.square(places - places[taken[0]]).sum(axis=1)
    far[taken[0]] = -1
    while len(taken) < min(most, len(places)):
        taken.append(int(far.argmax()))
        far = np.minimum(far, np.square(places - places[taken[-1]]).sum(axis=1))
        far[taken] = -1
    return np.array(taken)


def kind_shade(images: int, texts: int) -> Shade:
    """Images and texts, in two colours."""
    kinds = np.repeat([0.0, 1.0], [images, texts])
    return Shade("images and texts", kinds, np.zeros(len(kinds), bool))


def rank_shade(ranks: np.ndarray, most: int) -> Shade:
    """The rank of the match (n,), on a logarithmic scale from 1 to `most`; hollow below FIRST."""
    far = np.log(max(most, 2))
    ticks = [(float(np.log(rank) / far), f"{rank:,}") for rank in upto(max(most, 2))]
    return Shade("rank of the match", np.log(ranks) / far, ranks > FIRST, ticks,
                 meaning=(f"match among the first {FIRST}", "match further down"))


def hub_shade(counts: np.ndarray, most: int) -> Shade:
    """How often each (n,) is found, log(1 + count) from 0 to `most`; hollow where never."""
    far = np.log1p(max(most, 1))
    ticks = [(float(np.log1p(count) / far), f"{count:,}") for count in (0, *upto(max(most, 1)))]
    return Shade(f"how often among the first {FIRST}", np.log1p(counts) / far, counts == 0, ticks,
                 meaning=("found", f"never among the first {FIRST}"))


def gain_shade(difference: np.ndarray, most: int) -> Shade:
    """The rank under one model less that under another (n,), 0 in the middle, both signs on the
    same logarithmic scale up to `most`; hollow where the first model is worse."""
    far = np.log1p(max(most, 1))
    ends = [(float(np.log1p(size) / far / 2), size) for size in upto(max(most, 1))]
    ticks = [*((0.5 - at, signed(-size, 0)) for at, size in reversed(ends)), (0.5, "0"),
             *((0.5 + at, signed(size, 0)) for at, size in ends)]
    levels = 0.5 + np.sign(difference) * np.log1p(np.abs(difference)) / far / 2
    return Shade("rank here less rank of the other model", levels, difference > 0, ticks,
                 signed=True, meaning=("ranked as high here, or higher", "ranked lower here"))


def upto(most: int) -> Sequence[int]:
    """Powers of ten below `most`, and `most` where it stands apart from the last of them.

    Example:
        >>> upto(500), upto(11), upto(1)
        ([1, 10, 100, 500], [1, 11], [1])
    """
    powers = [10 ** power for power in range(len(str(most))) if 10 ** power * 2 <= most]
    return [*powers, most]


class MapData:
    """The points of a map, images first, in all frames.

    Attributes: names: of the frames; n_images, n_texts; plane: their places; known: frame -> ranks
                and counts; shades: frame -> colour -> what it means; middle (2,), whole: the middle
                of the map, and half its side.
    Args, Raises: as `EmbeddingMap`.
    """

    def __init__(self, frames: Mapping[Hashable, Frame], image_of_text: np.ndarray,
                 texts: Sequence[str], image_ids: Sequence[str] | None,
                 picture: Callable[[str], Image.Image] | None, other: AnyScores | None,
                 scores: AnyScores | None) -> None:
        frames = checked_frames(frames)
        self.n_images, self.n_texts = (len(part) for part in next(iter(frames.values())))
        if scores is not None and len(frames) > 1:
            raise ValueError(f"scores are of one frame, but there are {len(frames)}; give the "
                             "frames alone: their ranks are those of inner products")
        owner = check_image_of_text(image_of_text, self.n_images, self.n_texts)
        ids = image_ids
        if ids is None:
            ids = [f"image {number}" for number in range(1, self.n_images + 1)]
        for what, given, count in (("texts", texts, self.n_texts), ("image_ids", ids,
                                                                    self.n_images)):
            if given is None or len(given) != count:
                raise ValueError(f"{what} must be one for each of {count} vectors, in their order; "
                                 f"got {'none' if given is None else len(given)}")
        for what, given in (("other", other), ("scores", scores)):
            if given is not None and Scores.of(given).shape != (self.n_images, self.n_texts):
                raise ValueError(f"{what} must be scores of the same images and texts, "
                                 f"{(self.n_images, self.n_texts)}; got {Scores.of(given).shape}")
        self.items, self.picture, self.names = [*ids, *texts], picture, list(frames)
        self.first_text = {int(i): text for i, text in zip(owner[::-1], texts[::-1], strict=True)}
        with counting(f"a map of {self.n_images:,} images and {self.n_texts:,} texts",
                      len(frames) + 1) as show:
            self.plane, self.known = plane_of(frames), {}
            for done, (name, frame) in enumerate(frames.items(), start=1):
                show(done, "ranks and neighbours")
                self.known[name] = (known_of(frame, owner) if scores is None
                                    else known_by(scores, owner))
            beside = None if other is None else ranks_by(other, owner)
        self.middle, half = self.plane.bounds
        self.whole = half * MARGIN
        self.shades = {name: self._shades(name, beside) for name in frames}

    def _shades(self, name: Hashable, beside: np.ndarray | None) -> dict[str, Shade]:
        """What the points of a frame can be coloured by, on the scales of all frames."""
        known, every = self.known[name], self.known.values()
        shades = {"kind": kind_shade(self.n_images, self.n_texts),
                  "rank": rank_shade(known.ranks, max(int(one.ranks.max()) for one in every)),
                  "hub": hub_shade(known.counts, max(int(one.counts.max()) for one in every))}
        if beside is not None:
            most = max(int(np.abs(one.ranks - beside).max()) for one in every)
            shades["gain"] = gain_shade(known.ranks - beside, most)
        return shades

    def inside(self, name: Hashable, corners: np.ndarray) -> np.ndarray:
        """Points of a frame between two corners (2, 2), the low one first."""
        places, (low, high) = self.plane.places[name], corners
        return np.flatnonzero(((places >= low) & (places <= high)).all(axis=1))

    def table(self, name: Hashable, points: np.ndarray) -> pd.DataFrame:
        """Some points of a frame, a line each; see `EmbeddingMap.selected`."""
        image, known = points < self.n_images, self.known[name]
        return pd.DataFrame({"kind": np.where(image, "image", "text"),
                             "index": np.where(image, points, points - self.n_images),
                             "item": [self.items[i] for i in points.tolist()],
                             "rank": known.ranks[points], "found": known.counts[points]})

    def packed(self, key: str) -> str:
        """An array, or a picture, in base64: of "places/FRAME" pairs of uint16, 0 to FINEST over
        the whole map; of "shade/COLOUR/FRAME" uint8, the step on the scale, and STEPS more where
        hollow; of "picture/IMAGE" its address. Frames and images by their number.

        Raises:  ValueError for what there is not; whatever opening a picture raises.
        """
        what, *which = str(key).split("/")
        try:
            if int(which[-1]) < 0:  # which Python counts from the end
                raise LookupError(key)
            if what == "picture":
                return thumbnail_uri(self.picture(
                    self.items[range(self.n_images)[int(which[0])]]))
            name = self.names[int(which[-1])]
            if what == "places":
                return packed_places((self.plane.places[name] - self.middle) / self.whole)
            return packed_shade(self.shades[name][which[0]])
        except (LookupError, TypeError, ValueError) as error:
            raise ValueError(f"there is no {key!r} on this map") from error


def packed_places(places: np.ndarray) -> str:
    """Places (n, 2) in [-1, 1] as pairs of uint16, in base64."""
    return base64(np.round((places + 1) / 2 * FINEST).astype("<u2"))


def packed_shade(shade: Shade) -> str:
    """The step of each point on its scale, and STEPS more where it is hollow, in base64."""
    steps = np.round(shade.levels * (len(colours_of(shade)) - 1)).astype(np.uint8)
    return base64(steps + STEPS * shade.hollow.astype(np.uint8))


def base64(values: np.ndarray) -> str:
    """The bytes of an array as text."""
    return b64encode(values.tobytes()).decode()


def checked_frames(frames: Mapping[Hashable, Frame]) -> dict[Hashable, Frame]:
    """Frames as float arrays, of the same images and texts in the same space; else ValueError."""
    if not isinstance(frames, Mapping) or not frames:
        raise ValueError("frames must map a name, such as an epoch, to (images (I, D), texts (T, "
                         f"D)); got {quoted(frames)}")
    checked, shapes = {}, set()
    for name, frame in frames.items():
        if not isinstance(frame, list | tuple) or len(frame) != 2:
            raise ValueError(f"frame {name!r} must be (images (I, D), texts (T, D)), got "
                             f"{quoted(frame)}")
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
