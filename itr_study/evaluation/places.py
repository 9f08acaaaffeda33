"""Where the regions lie that a model was given: boxes of each picture of a split."""

from collections.abc import Callable
from functools import cache
from math import isqrt

import numpy as np

from itr_study.data.base import RetrievalDataset, Split
from itr_study.data.boxes import grid_boxes
from itr_study.encoders.views import RESIZE_RATIO
from itr_study.evaluation.pointing import detected_boxes
from itr_study.features.encoded import EncodedData
from itr_study.features.regions import FrozenRegions
from itr_study.files.paths import home

WHOLE = np.array([[0.0, 0.0, 1.0, 1.0]])


def region_boxes(dataset: RetrievalDataset, data: EncodedData,
                 split: Split) -> Callable[[int, int], np.ndarray]:
    """What says of an image of a split, by its index and its number of regions R, where these lie:
    (R, 4) left, top, right, bottom in fractions of the picture's sides.

    Regions of a network's map are the cells of a grid, row by row; those of a detector have its
    boxes; one region is the whole picture. NaN for regions that lie nowhere, which `scenes` has,
    and for all of them where the features were made elsewhere and came without boxes.

    Args:    dataset and data: the same before and after encoding.
    """
    detected = [one for one in data.image_encoders if isinstance(one, FrozenRegions)]
    made_here = bool(data.image_encoders or data.inputs.pixels)
    crops = any(one.part.views == "ten" for one in data.image_encoders)

    @cache  # asked for when somebody looks: a table of boxes may have to be made
    def found() -> np.ndarray:
        return detected[0].boxes(dataset, home() / "features")[split.name].boxes

    def boxes(image: int, regions: int) -> np.ndarray:
        if detected:
            return found()[image]
        if regions == 1:
            return WHOLE
        if made_here:
            cells = grid_boxes(isqrt(regions))
            # of ten crops evaluation sees the first, the middle of the picture
            return 0.5 + (cells - 0.5) / RESIZE_RATIO if crops else cells
        if dataset.boxes is not None:
            return detected_boxes(dataset, split.image_ids[image], regions)
        return np.full((regions, 4), np.nan)

    return boxes
