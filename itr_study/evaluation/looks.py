"""Where a trained model looks in one picture, for one text.

Use: `seen = Looker(searcher).look(3, 17)` for image 3 and text 17; `seen.rows`, `seen.weights` are
the words, and how much each looks at each region.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from itr_study.checks import check_choice, check_count
from itr_study.data.base import RetrievalDataset, Split
from itr_study.data.batches import Batch
from itr_study.data.box_table import Named
from itr_study.data.scenes.words import NOUNS, SHAPES, plural
from itr_study.data.vocabulary import tokenize
from itr_study.encoders.sentences import WordPieces
from itr_study.evaluation.evaluate import evaluating, score, take
from itr_study.evaluation.pointing import (
    Target,
    boxes_of,
    check_each_text,
    region_boxes,
    target_rows,
)
from itr_study.evaluation.search import ALL, Searcher
from itr_study.models.base import Code, has_heads, scored
from itr_study.models.cross_attention import CrossAttention
from itr_study.models.image import GPO, TunesNetwork, masked_both, masked_max
from itr_study.models.vse_infinity import VSEInfinity
from itr_study.models.vsepp import VSEPP


def regions_of(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return what a model pools, regions or its network's last map (I, R, D), and a mask (I, R)."""
    if isinstance(model, TunesNetwork):
        return model.regions_of(batch)
    if batch.pixels is None:
        return batch.regions, batch.region_mask
    raise ValueError(f"{type(model).__name__} reads pixels, and it is known of vsepp and "
                     "vse_infinity alone what they make of them; take a run with features, such "
                     'as images="lite0:grid:one"')


def region_gradient(model: nn.Module, batch: Batch, text: Code) -> Tensor:
    """Compute how much each region adds to an image's score with a text: feature times gradient.

    Source: Grad-CAM (Selvaraju et al., ICCV 2017, Eqs. 1 and 2), with the score instead of that of
    a class; each place is weighted by its own gradient, not by the mean of all, as in HiResCAM
    (Draelos and Carin, 2020): a maximum over regions has a gradient at one place only. Values below
    zero are not cut off here.

    Takes a batch of one image and the code of one text, both on the model's device.

    Returns: (R,), of any sign, 0 where no region is.
    Raises: ValueError: the score has no gradient at the regions, or one that is not finite.
    """
    regions, exists, slope = score_gradient(model, batch, text)
    name = type(model).__name__
    if slope is None:
        raise ValueError(f"the score of {name} has no gradient at its regions, so that nothing "
                         "tells which of them raise it; take a model that torch computes from "
                         "batch.regions")
    found = (slope * regions)[0].sum(dim=1).masked_fill(~exists[0], 0)
    if not found.isfinite().all():
        raise ValueError(f"the gradient of the score of {name} is NaN or infinite: the model has "
                         "diverged; take an earlier epoch, or another run")
    return found


def score_gradient(model: nn.Module, batch: Batch,
                   text: Code) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return regions (1, R, D), their mask (1, R), and the gradient of the score, if any."""
    with evaluating(model):
        regions, exists = regions_of(model, batch)
        leaf = regions.detach().clone().requires_grad_()
        with torch.enable_grad():
            total = scored(model, _encoded(model, batch, leaf), text).scores.sum()
        slope = torch.autograd.grad(total, leaf, allow_unused=True)[0] \
            if total.requires_grad else None
    return leaf.detach(), exists, slope


def _encoded(model: nn.Module, batch: Batch, regions: Tensor) -> Code:
    """Encode the image as if the model had been given these regions."""
    if not isinstance(model, TunesNetwork) or model.network is None:
        return model.encode_images(replace(batch, regions=regions))
    hook = model.network.register_forward_hook(lambda *_: regions)  # replaces its map
    try:
        return model.encode_images(batch)
    finally:
        hook.remove()


KINDS = {"words": "what each word looks at", "heads": "what each head looks at",
         "ranks": "how much regions count in the pooling", "wins": "which regions win",
         "gradient": "which regions raise the score"}
MEANS = {
    "words": "how much a word looks at a region; the weights of a word add up to 1",
    "heads": "how much a head looks at a region, whatever the text; the weights of a head add up "
             "to 1",
    "ranks": "how much a region counts in the picture's vector, whatever the text: the learnt "
             "weight of its place, when regions are sorted by size, in the mean over all "
             "dimensions; they add up to 1",
    "wins": "share of the dimensions of the picture's vector, whatever the text, in which a region "
            "has the largest value; they add up to 1",
    "gradient": "share of a region in what raises the score: features times the gradient of the "
                "score, cut off below zero; they add up to 1",
}
EVEN = "no region raises the score, so that all have the same weight"
WHOLE_TEXT = "the whole text"


class Look(NamedTuple):
    """What a model looks at in a picture, for a text; of R regions that exist."""

    kind: str  # one of KINDS
    rows: tuple[str, ...]  # (N,) words of the text, heads, or the whole text
    weights: np.ndarray  # (N, R), each row at least 0 and adding up to 1
    boxes: np.ndarray  # (R, 4) left, top, right, bottom in fractions; NaN without a place
    regions: np.ndarray  # (R,) their indices among all that the data has
    score: float | None  # of the pair, if it was asked for
    means: str  # the meaning of the numbers
    by_rank: np.ndarray | None = None  # (R,) learnt weights of the largest value, the second, …


def word_maps(split: Split, looks: Sequence[Look]) -> list[np.ndarray]:
    """Return (W, R) for each text: the map of each word, or the mean of all rows for each."""
    return [look.weights if look.kind == "words" else
            np.tile(look.weights.mean(axis=0), (len(tokenize(text)), 1))
            for text, look in zip(split.texts, looks, strict=True)]


class Looker:
    """Looks of one model over one split.

    Args: searcher: of one split, with texts, and of a model that shows something.
    """

    def __init__(self, searcher: Searcher) -> None:
        if searcher.name == ALL or searcher.texts is None:
            raise ValueError("a look is at one picture for one text of one split; got "
                             f"{searcher.dataset.name}, {searcher.name}: take a searcher of a "
                             "split with texts, such as test")
        self.searcher, self.model = searcher, searcher.model
        self._boxes = region_boxes(searcher.dataset, searcher.data, searcher.split)
        if not self.kinds:
            raise ValueError(
                f"{type(self.model).__name__} shows nothing of where it looks: it has no "
                "attention, no pooling by size, and no gradient at its regions; take one of the "
                "package's models, such as saf, on features of regions")

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """List the KINDS that this model has."""
        model, pool = self.model, pool_of(self.model)
        batch, image, text = self._pair(0, 0)
        crossed = isinstance(model, CrossAttention)
        pieces = isinstance(self.searcher.data.vocabulary, WordPieces)  # a word may be several
        with evaluating(model):
            attention = None if crossed else scored(model, image, text).attention
        there = {"words": crossed and not pieces,
                 "heads": attention is not None and attention.shape[1] > 0,
                 "ranks": isinstance(pool, GPO),
                 "wins": isinstance(pool, GPO) or pool in (masked_max, masked_both),
                 "gradient": score_gradient(model, batch, text)[2] is not None}
        return tuple(kind for kind, one in there.items() if one)

    def look(self, image: int, text: int, kind: str | None = None, with_score: bool = True) -> Look:
        """Return what the model looks at in an image for a text, by their indices in the split.

        kind: one of `kinds`; None: the first of them.
        Raises: ValueError: another kind, or an index out of range.
        """
        split, kind = self.searcher.split, self.kinds[0] if kind is None else kind
        check_choice(f"what {type(self.model).__name__} shows", kind, self.kinds)
        check_count("image", image, 0, len(split.image_ids) - 1)
        check_count("text", text, 0, len(split.texts) - 1)
        batch, one, other = self._pair(image, text)
        with evaluating(self.model):
            exists = regions_of(self.model, batch)[1][0].cpu().numpy()
            found = self._weights(kind, batch, one, other).double().cpu().numpy()[:, exists]
            ranks = pool_of(self.model).weights(exists.sum())[-1] if kind == "ranks" else None
        weights = np.where(found.any(axis=1, keepdims=True), found, 1.0)  # of zeros: even
        weights /= weights.sum(axis=1, keepdims=True)
        means = MEANS[kind] if found.any() else f"{MEANS[kind]}; {EVEN}"
        return Look(kind, self._rows(kind, text, len(weights)), weights,
                    self._boxes(image, len(exists))[exists], np.flatnonzero(exists),
                    self.score(image, text) if with_score else None, means,
                    None if ranks is None else ranks.double().cpu().numpy())

    def score(self, image: int, text: int) -> float:
        """Compute the score of an image and a text, by their indices in the split."""
        _, one, other = self._pair(image, text)
        return float(score(self.model, one, other)[0, 0])

    def maps(self, kind: str | None = None) -> list[Look]:
        """Return the look of every text of the split at its own image, without its score."""
        owners = self.searcher.split.image_of_text.tolist()
        return [self.look(image, text, kind, with_score=False) for text, image in enumerate(owners)]

    def _pair(self, image: int, text: int) -> tuple[Batch, Code, Code]:
        """Return the batch of an image, its code, and that of a text, on the model's device."""
        searcher = self.searcher
        batch = searcher.encoded.image_batch(np.array([image])).to(searcher.device)
        return (batch, *(take(code, torch.tensor([row]), searcher.device) for code, row in (
            (searcher.images, image), (searcher.texts, text))))

    def _rows(self, kind: str, text: int, count: int) -> tuple[str, ...]:
        if kind == "words":
            words = tokenize(self.searcher.split.texts[text])
            return tuple(words[:count]) or (WHOLE_TEXT,)  # "?!" has none and is read as one unknown
        if kind == "heads":
            name = "head" if has_heads(self.model) else "look"
            return tuple(f"{name} {number}" for number in range(1, count + 1))
        return (WHOLE_TEXT if kind == "gradient" else "the picture",)

    def _weights(self, kind: str, batch: Batch, image: Code, text: Code) -> Tensor:
        """Compute the look of a kind at one pair (N, R), 0 at regions that do not exist."""
        model = self.model
        if kind == "words":
            return model.attend(image, text)[0][text[1][0]]  # the words that exist
        if kind == "heads":
            return scored(model, image, text).attention[0]
        if kind == "gradient":
            return region_gradient(model, batch, text).clamp(min=0)[None]
        regions, exists = regions_of(model, batch)
        encoder = model.image
        mapped = (encoder.map if isinstance(model, VSEInfinity) else encoder.linear)(regions)
        if kind == "ranks":
            return pool_of(model).shares(mapped, exists)
        winner = mapped.masked_fill(~exists.unsqueeze(-1), -torch.inf).argmax(dim=1)[0]  # (D,)
        return torch.bincount(winner, minlength=mapped.shape[1])[None] / len(winner)


def pool_of(model: nn.Module) -> nn.Module | Callable | None:
    """Return how a model pools its mapped regions, if that is known."""
    return model.image.pool if isinstance(model, VSEPP | VSEInfinity) else None


# Whether words look at what they name, on generated pictures, where every box is known.

# Nouns, singular and plural, to the number of the shape they name; vague ones are out.
SHAPE_OF = {form: SHAPES.index(shape) for shape, nouns in NOUNS.items()
            for noun in nouns for form in (noun, plural(noun))}


def named_shapes(caption: str) -> list[Named]:
    """Find the words of a caption that name a shape, in their order.

    Example:
        >>> [(named.start, SHAPES[named.number]) for named in named_shapes("A red hoop on boxes")]
        [(2, 'ring'), (4, 'block')]
    """
    return [Named(place, place + 1, SHAPE_OF[word]) for place, word in enumerate(tokenize(caption))
            if word in SHAPE_OF]


def scene_targets(dataset: RetrievalDataset, split: Split) -> Iterator[Target]:
    """Yield every noun for a shape of the text's own picture, with all boxes of that shape."""
    boxes = boxes_of(dataset, split.image_ids)
    for text, caption in enumerate(split.texts):
        image = int(split.image_of_text[text])
        for named in named_shapes(caption):
            found = [box[1:] for box in boxes[image] if box[0].split()[-1] == SHAPES[named.number]]
            if found:
                yield Target(text, image, named, np.clip(np.array(found, float), 0, 1))


def scene_pointing(dataset: RetrievalDataset, split: Split, looks: Sequence[Look]) -> pd.DataFrame:
    """Compute how much of what a model looks at falls in the boxes that each noun names.

    Takes a look for each text, at its own image, as `Looker.maps` gives them; without a row for
    each word their mean counts for every word. Returns a row for each noun, with the columns of
    `word_pointing`; class is the shape.

    Raises: ValueError: another number of looks, data without known boxes, no noun for a shape of
        its picture.
    """
    check_each_text("looks", looks, split)
    places = {int(image): look.boxes
              for image, look in zip(split.image_of_text, looks, strict=True)}
    return target_rows(scene_targets(dataset, split), SHAPES, word_maps(split, looks),
                       places.__getitem__,
                       f"no text of split {split.name} names a shape that its picture shows")
