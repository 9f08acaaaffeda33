"""What a map shows, computed once: places, ranks, colours; and how they are sent."""

from base64 import b64encode
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np
import pandas as pd
from PIL import Image

from itr_study.explorers.heard import quoted
from itr_study.explorers.plane import Frame, known_by, known_of, plane_of, ranks_by
from itr_study.explorers.shades import gain_shade, hub_shade, kind_shade, rank_shade
from itr_study.explorers.thumbnails import thumbnail_uri
from itr_study.metrics.scores import AnyScores, Scores
from itr_study.metrics.truth import check_image_of_text
from itr_study.plots.embedding_map import STEPS, Shade, colours_of
from itr_study.progress import counting

MARGIN = 1.05  # of the whole: no mark lies on its edge
FINEST = 65535  # steps of a place that is sent, over the whole map


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
