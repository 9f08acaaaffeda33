"""Features of the pictures of a data set: through the cache, or as they come with the data."""

import functools
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from PIL import Image

from itr_study.data.base import DataError, RetrievalDataset, Split
from itr_study.data.box_table import BoxTable, Detections, kept_boxes
from itr_study.encoders import IMAGE_ENCODERS
from itr_study.encoders.base import ImageEncoder, ImageNetwork, make_views, working_dtype
from itr_study.encoders.nanodet import NanoDet
from itr_study.features.cache import CacheKey, Compute, cached, cores
from itr_study.features.specs import ImagePart
from itr_study.files.atomic import canonical_json

CPU_BATCH, GPU_BATCH = 8, 64  # crops a step; fixed, for the last bit may depend on it
BLOCK = 64  # pictures a block: what a kill can cost, and what one thread takes at a time
CHECK_BYTES = 1 << 26  # given features are checked in pieces of this size


class FrozenImages:
    """One part of an images spec, ready to encode pictures.

    Args:    part: which encoder, kind, views; device: where the network runs. The network is
             loaded when the first picture comes: a finished cache needs none.
    """

    def __init__(self, part: ImagePart, device: str = "cpu") -> None:
        chosen = {} if part.precision is None else {"precision": part.precision}
        self.encoder: ImageEncoder = IMAGE_ENCODERS[part.encoder](part.argument, **chosen)
        self.part, self.device = part, device
        self._network: ImageNetwork | None = None
        self._lock = threading.Lock()

    @property
    def identity(self) -> list:
        """Name, version and settings: what the numbers depend on beside the pictures."""
        settings = self.encoder.settings | {"kind": self.part.kind, "views": self.part.views}
        return [self.encoder.name, self.encoder.version, settings]

    @property
    def dtype(self) -> str:
        """In which the network computes here; not part of what it is."""
        precision = self.encoder.settings.get("precision", "float32")
        return str(working_dtype(precision, self.device)).removeprefix("torch.")

    def encode(self, images: Iterable[Image.Image]) -> np.ndarray:
        """Encode RGB pictures, one by one, (N, V, R, D) float32; R = 1 where pooled."""
        with self._lock:  # threads share one network
            if self._network is None:
                self._network = self.encoder.network(self.device)
        pixels = np.stack([make_views(i, self.part.views, self.encoder.size) for i in images])
        crops = torch.from_numpy(pixels.reshape(-1, *pixels.shape[2:]))  # (N * V, 3, H, W)
        step = CPU_BATCH if torch.device(self.device).type == "cpu" else GPU_BATCH
        with torch.inference_mode():
            features = torch.cat([self._features(some) for some in crops.split(step)])
        return features.reshape(*pixels.shape[:2], *features.shape[1:]).numpy()

    def computing(self, dataset: RetrievalDataset, folder: Path) -> Compute:
        """Make what computes rows [start, stop) of the pictures of all splits."""
        ids = all_images(dataset)
        return lambda start, stop: self.encode(open_picture(dataset, image)
                                               for image in ids[start:stop])

    def _features(self, crops: torch.Tensor) -> torch.Tensor:
        """(N, R, D) float32 on the CPU."""
        crops = crops.to(self.device, memory_format=torch.channels_last)
        if self.part.stage:
            return self._network.before(crops, self.part.stage).float().cpu()
        if self.part.kind == "grid":
            return self._network(crops).float().cpu()
        return self._network.pooled(crops)[:, None, :].float().cpu()


def dataset_features(dataset: RetrievalDataset, images: FrozenImages,
                     folder: Path) -> dict[str, np.ndarray]:
    """Encode the pictures of each split, (I, V, R, D) float16: slices of one memory map."""
    sizes = {name: len(split.image_ids) for name, split in dataset.splits.items()}
    return cut(dataset_rows(dataset, images, folder), sizes)


def dataset_rows(dataset: RetrievalDataset, images: FrozenImages, folder: Path) -> np.ndarray:
    """Encode the pictures of all splits, one after the other: (I, V, R, D) float16."""
    name, version, settings = images.identity
    asked = settings.get("precision", "float32")
    key = CacheKey(dataset.name, dataset.content, name, version, settings,
                   images.dtype if asked != "float32" else "")
    compute = images.computing(dataset, folder) if dataset.part_of is None else from_whole(
        dataset, "image_ids", lambda whole: dataset_rows(whole, images, folder))
    return cached(key, len(all_images(dataset)), compute, folder, block=BLOCK, workers=cores())


def from_whole(dataset: RetrievalDataset, ids: Literal["image_ids", "text_ids"],
               rows_of: Callable[[RetrievalDataset], np.ndarray]) -> Compute:
    """Make what takes rows [start, stop) of a part from the whole, asked for with the first."""

    @functools.cache
    def sources() -> tuple[np.ndarray, np.ndarray]:
        whole, part = ([name for split in data.splits.values() for name in vars(split)[ids]]
                       for data in (dataset.part_of, dataset))
        place = {name: row for row, name in enumerate(whole)}
        return rows_of(dataset.part_of), np.array([place[name] for name in part])

    def compute(start: int, stop: int) -> np.ndarray:
        rows, places = sources()
        return rows[places[start:stop]]

    return compute


def all_images(dataset: RetrievalDataset) -> list[str]:
    """List the ids of the pictures, split after split."""
    return [image for split in dataset.splits.values() for image in split.image_ids]


def cut(rows: np.ndarray, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """Cut consecutive rows for each name."""
    parts = np.split(rows, np.cumsum(list(sizes.values()))[:-1])
    return dict(zip(sizes, parts, strict=True))


def given_features(dataset: RetrievalDataset, name: str,
                   split: Split) -> tuple[np.ndarray, np.ndarray | None]:
    """Take features that come with the data, (I, 1, R, D), and their mask (None = all there).

    Raises:  DataError for a wrong shape, NaN, or a picture without any region.
    """
    features, mask = dataset.features[name](split)
    what = f"features {name!r} of {dataset.name}, split {split.name}"
    if features.ndim != 3 or len(features) != len(split.image_ids):
        raise DataError(f"{what}: expected ({len(split.image_ids)}, R, D), got {features.shape}")
    if mask.shape != features.shape[:2] or mask.dtype != bool:
        raise DataError(f"{what}: the mask should be bool {features.shape[:2]}, got {mask.dtype} "
                        f"{mask.shape}")
    if not mask.any(axis=1).all():
        row = int(np.argmin(mask.any(axis=1)))
        raise DataError(f"{what}: picture {split.image_ids[row]} has no region")
    if name == "given" and isinstance(features, np.memmap):  # 33 GB, which the reader has checked
        return features[:, None], None if mask.all() else mask
    step = max(1, CHECK_BYTES // max(features[:1].nbytes, 1))
    for start in range(0, len(features), step):
        finite = np.isfinite(features[start : start + step]).all(axis=(1, 2))
        if not finite.all():
            row = start + int(np.argmin(finite))
            raise DataError(f"{what}: picture {split.image_ids[row]} has NaN or infinite "
                            "features; make them again")
    return features[:, None], None if mask.all() else mask


def open_picture(dataset: RetrievalDataset, image: str) -> Image.Image:
    """Open a picture of a data set; DataError where it has none, or a broken one."""
    if not dataset.has_pictures:
        raise DataError(f"{dataset.name} has features and no pictures: images=\"given\" (of "
                        "`features`: --images given, of `train`: --set images=given) reads the "
                        "features; for a network put pictures into images/, <image id>.jpg")
    try:
        return dataset.open_image(image)
    except OSError as error:
        raise DataError(f"{dataset.name}: picture {image} cannot be read ({error}); put a sound "
                        "copy in its place") from error


@dataclass(frozen=True, eq=False)
class Pixels:
    """The pictures of a split, decoded when asked for: images (N,) -> (N, 3, size, size) uint8."""

    open_image: Callable[[str], Image.Image]
    image_ids: tuple[str, ...]
    size: int

    def __call__(self, images: np.ndarray) -> np.ndarray:
        """Decode pictures."""
        pictures = (self.open_image(self.image_ids[image]) for image in images)
        return np.concatenate([make_views(picture, "one", self.size) for picture in pictures])

    def head(self, images: int) -> "Pixels":
        """Take the first pictures only."""
        return Pixels(self.open_image, self.image_ids[:images], self.size)


def pixel_size(part: ImagePart) -> int:
    """Find the pixels a side that the network of a "pixels:<encoder>" part takes."""
    return IMAGE_ENCODERS[part.encoder](part.argument).size


def made_with(detector: NanoDet) -> str:
    """Name what boxes depend on, the pictures apart."""
    return canonical_json([detector.name, detector.version, detector.settings])


def dataset_boxes(dataset: RetrievalDataset, detector: NanoDet, folder: Path) -> BoxTable:
    """Find the boxes of all pictures: those kept, if this detector made them of these, or computed.

    Raises:  WeightsError where the detector is needed and its files are missing.
    """
    images = all_images(dataset)
    kept = kept_boxes(dataset.name) if dataset.published else None
    if kept is not None and kept.made_with == made_with(detector) and kept.has(images):
        return kept
    return computed_boxes(dataset, detector, folder)


def computed_boxes(dataset: RetrievalDataset, detector: NanoDet, folder: Path) -> BoxTable:
    """Detect boxes through the cache, whatever is kept: 0.1 seconds of a core a picture, once."""
    images = all_images(dataset)

    def compute(start: int, stop: int) -> np.ndarray:
        pictures = (open_picture(dataset, image) for image in images[start:stop])
        return np.stack([as_rows(detector.detect(picture), detector.settings["most"])
                         for picture in pictures])

    key = CacheKey(dataset.name, dataset.content, detector.name, detector.version,
                   detector.settings)
    rows = cached(key, len(images), compute, folder, dtype="float32", block=BLOCK, workers=cores())
    return BoxTable.join(images, [from_rows(of_picture) for of_picture in rows],
                         made_with(detector))


def as_rows(found: Detections, most: int) -> np.ndarray:
    """Pack boxes, (most, 6) float32: class, score, left, top, right, bottom; then zeros."""
    rows = np.zeros((most, 6), np.float32)
    rows[:len(found.classes)] = np.column_stack(found)
    return rows


def from_rows(rows: Sequence) -> Detections:
    """Unpack what `as_rows` was given."""
    rows = np.asarray(rows, np.float64)
    rows = rows[rows[:, 1] > 0]
    return Detections(rows[:, 0].astype(np.int64), rows[:, 1], rows[:, 2:]).rounded()
