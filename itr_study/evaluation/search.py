"""Search a split with a trained model, by words or by a picture."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import nn

from itr_study.data.base import RetrievalDataset
from itr_study.data.batches import EncodedSplit
from itr_study.evaluation.evaluate import encode, evaluating, score
from itr_study.features.encoded import EncodedData
from itr_study.models.base import Code, device_of


class Hit(NamedTuple):
    """One found item: rank from 1, score (higher = more alike), its id, and what it says."""

    rank: int
    score: float
    id: str
    text: str
    match: bool | None  # None where the right answer is not known


@dataclass(eq=False)
class Searcher:
    """A split encoded once, ready for queries.

    Args:    model: trained, in evaluation mode; dataset and data: the same data before and after
             encoding; name: of the split searched.
    """

    model: nn.Module
    dataset: RetrievalDataset
    data: EncodedData
    name: str = "test"

    def __post_init__(self) -> None:
        self.split = self.dataset.splits[self.name]
        self.encoded = self.data.splits[self.name]
        self.device = device_of(self.model)
        self.images, self.texts = encode(self.model, self.encoded)

    def by_text(self, text: str, top: int = 10) -> list[Hit]:
        """The images most alike to a text; their first texts are shown. Matches are known where
        the text is one of the split's own."""
        tokens, sentences = self.data.encode_texts([text])
        regions = np.zeros((1, 1, 1, self.data.inputs.region_size), np.float32)
        query = EncodedSplit("query", np.zeros(1, np.int64), regions, tokens=tokens,
                             sentences=sentences)
        with evaluating(self.model):
            code = self.model.encode_texts(query.text_batch(np.array([0])).to(self.device))
        scores = score(self.model, self.images, code)[:, 0]
        own = {self.split.image_of_text[t] for t, said in enumerate(self.split.texts)
               if said == text}
        first = dict(reversed(list(zip(self.split.image_of_text, self.split.texts, strict=True))))
        return [Hit(rank, value, self.split.image_ids[i], first[i], i in own if own else None)
                for rank, value, i in _best(scores, top)]

    def by_image(self, image: str | Image.Image, top: int = 10) -> list[Hit]:
        """The texts most alike to an image: one of the split by id, or any picture.

        Raises:  ValueError for an unknown id, or a picture where features came with the data.
        """
        if isinstance(image, str):
            own = self._index(image)
            code = self._image_code(self.encoded, own)
        else:
            own = None
            regions = self.data.encode_images([image.convert("RGB")])
            code = self._image_code(EncodedSplit("query", np.zeros(0, np.int64), regions), 0)
        scores = score(self.model, code, self.texts)[0]
        return [Hit(rank, value, self.split.text_ids[t], self.split.texts[t],
                    None if own is None else bool(self.split.image_of_text[t] == own))
                for rank, value, t in _best(scores, top)]

    def _index(self, image: str) -> int:
        if image not in self.split.image_ids:
            some = ", ".join(self.split.image_ids[:3])
            raise ValueError(f"{image!r} is neither a picture file nor an image of the "
                             f"{self.name} split, whose ids look like {some}")
        return self.split.image_ids.index(image)

    def _image_code(self, split: EncodedSplit, index: int) -> Code:
        with evaluating(self.model):
            return self.model.encode_images(split.image_batch(np.array([index])).to(self.device))


def _best(scores: torch.Tensor, top: int) -> list[tuple[int, float, int]]:
    """(rank, score, index) of the highest scores, the first of equals first."""
    order = torch.argsort(scores, descending=True, stable=True)[:top].tolist()
    return [(rank, scores[i].item(), i) for rank, i in enumerate(order, start=1)]


def hit_table(hits: list[Hit]) -> str:
    """One line a hit; the right ones are marked."""
    width = max(len(hit.id) for hit in hits)
    mark = {True: "match", False: "", None: ""}
    return "\n".join(f"{h.rank:3}  {h.score:7.4f}  {mark[h.match]:<5}  {h.id:<{width}}  {h.text}"
                     for h in hits)
