"""What SAF and SGR share: encoders, similarity vectors of all pairs, block by block.

Source: SGRAF (Diao et al., AAAI 2021).
"""

from abc import abstractmethod
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from itr_study.checks import check_choice, check_count, check_number
from itr_study.data.batches import Batch, InputSpec
from itr_study.models.base import Code, ModelOutput, RetrievalModel
from itr_study.models.cross_attention import Places, Similarities, WholePool, placed, word_attention
from itr_study.models.drop import MOST_DROPPED, drop_features, drop_words, keep_some
from itr_study.models.image import check_regions
from itr_study.models.text import build_text

# How many numbers (image, word, D) are made at a time, by device: on a CPU about what a cache
# holds, on others what keeps them busy.
CPU_CELLS, DEVICE_CELLS = 2**20, 2**26
KEPT_CELLS = 2**26  # in training, in all: more are not kept, but made again for the gradient


class CrossAttention(RetrievalModel):
    """A base: what `saf` and `sgr` share. A class of them reads a score off similarity vectors.

    Args:    inputs: sizes of regions and vocabulary; size: D (1024); similarity: S (256); text:
             "bigru", or "gru", whose states are the words; word_size: of learnt word vectors;
             scale: λ of the attention (9); dropout: on word vectors; image_dropout: share of
             features left out, of all regions of an image alike; region_dropout, word_dropout:
             shares of regions and words left out.
    Shape:   scores (I, T) in (0, 1).
    Differs: the papers' region features are of a detector (36); these are any, a grid's too. Places
             have length 1. First weights of what compares pairs: see `spread`. `attend` gives what
             the papers draw, how much words look at regions.
    Raises:  ValueError without regions or without tokens in the data, and for sizes that are none.
    """

    compares_pairs = True

    def __init__(self, inputs: InputSpec, size: int = 1024, similarity: int = 256,
                 text: str = "bigru", word_size: int = 300, scale: float = 9.0,
                 dropout: float = 0.0, image_dropout: float = 0.0, region_dropout: float = 0.0,
                 word_dropout: float = 0.0):
        super().__init__()
        check_regions(self.name, inputs)
        for name, count in (("size", size), ("similarity", similarity), ("word_size", word_size)):
            check_count(name, count)
        check_number("scale", scale, above=0)
        check_choice(f"text of {self.name}", text, ("gru", "bigru"))
        for name, share in (("dropout", dropout), ("image_dropout", image_dropout),
                            ("region_dropout", region_dropout), ("word_dropout", word_dropout)):
            check_number(name, share, least=0, most=MOST_DROPPED)
        self.region_dropout, self.word_dropout = region_dropout, word_dropout
        self.image_dropout = image_dropout
        self.image, self.pair = nn.Module(), nn.Module()
        self.image.regions = nn.Linear(inputs.region_size, size)
        self.image.whole = WholePool(size)
        self.text = build_text(text, inputs, size, word_size, dropout)
        self.text.whole = WholePool(size)
        self.pair.similarities = Similarities(size, similarity, scale)

    @abstractmethod
    def read(self, nodes: Tensor, exists: Tensor) -> Tensor:
        """Scores (I, T) in (0, 1) of similarity vectors (I, T, P, S), of which exists (T, P)."""

    def encode_images(self, batch: Batch) -> Places:
        """Regions, those that exist, and the whole of each image."""
        regions, exists = batch.regions, batch.region_mask
        if self.training and self.region_dropout:
            exists = keep_some(exists, self.region_dropout)
        if self.training and self.image_dropout:
            regions = drop_features(regions, self.image_dropout)
        return placed(self.image.regions(regions), exists, self.image.whole)

    def encode_texts(self, batch: Batch) -> Places:
        """Words, those that exist, and the whole of each text."""
        tokens, lengths = batch.tokens, batch.lengths
        if self.training and self.word_dropout:
            tokens, lengths = drop_words(tokens, lengths, self.word_dropout)
        states, _ = self.text.states(tokens, lengths)
        exists = torch.arange(states.shape[1], device=states.device) < lengths[:, None]
        return placed(states, exists, self.text.whole)

    def score(self, images: Code, texts: Code) -> ModelOutput:
        """Scores (I, T) in (0, 1).

        In training all similarity vectors are there at once, in evaluation those of some images
        and of some texts of like length, without the padding of the others.
        """
        images, texts = Places(*images), Places(*texts)
        if self.training:
            return ModelOutput(self.read(self.compared(images, texts), with_whole(texts.exists)))
        lengths, order = texts.exists.sum(dim=1).sort(stable=True)
        columns = [torch.cat([
            self.read(self.pair.similarities(block, some), with_whole(some.exists))
            for block in image_blocks(images, some)])
            for some in text_blocks(taken(texts, order), lengths.tolist())]
        return ModelOutput(torch.cat(columns, dim=1)[:, order.argsort()])

    def compared(self, images: Places, texts: Places) -> Tensor:
        """Similarity vectors (I, T, 1 + W, S), made for some images at a time; of many pairs what
        lies between is made again for the gradient, so that memory holds it for one block."""
        cells = len(images.whole) * texts.vectors.numel()
        again = cells > KEPT_CELLS and torch.is_grad_enabled()
        similarities = self.pair.similarities
        return torch.cat([
            checkpoint(similarities, block, texts, use_reentrant=False, preserve_rng_state=False)
            if again else similarities(block, texts) for block in image_blocks(images, texts)])

    def attend(self, images: Code, texts: Code) -> Tensor:
        """How much each word of a text looks at each region of an image: row p of both is a pair.

        Shape:   codes of P images and of P texts -> (P, W, R): of each existing word the weights
                 of the existing regions, which sum to 1; 0 elsewhere.
        Raises:  ValueError for another number of images than of texts.
        """
        images, texts = Places(*images), Places(*texts)
        if len(images.whole) != len(texts.whole):
            raise ValueError(f"attend takes pairs, got {len(images.whole)} images and "
                             f"{len(texts.whole)} texts; repeat the one for each of the others")
        cosines = images.vectors @ texts.vectors.transpose(1, 2)  # (P, R, W)
        weights = word_attention(cosines, images.exists, self.pair.similarities.scale)
        exists = images.exists.unsqueeze(2) & texts.exists.unsqueeze(1)
        return weights.masked_fill(~exists, 0).transpose(1, 2)


def with_whole(exists: Tensor) -> Tensor:
    """Which of the 1 + W similarity vectors of a text exist (T, 1 + W): that of the whole always.
    """
    return torch.cat([torch.ones_like(exists[:, :1]), exists], dim=1)


def taken(items: Places, rows: Tensor | slice, width: int | None = None) -> Places:
    """Some of the items, with their first places."""
    return Places(items.vectors[rows, :width], items.exists[rows, :width], items.whole[rows])


def pairs_at_once(vectors: Tensor) -> int:
    """How many pairs of an image and a word of so many entries fit a block."""
    cells = CPU_CELLS if vectors.device.type == "cpu" else DEVICE_CELLS
    return cells // vectors.shape[-1]


def image_blocks(images: Places, texts: Places) -> Iterator[Places]:
    """The images, as many at a time as fit with all of these texts; at least one."""
    step = max(1, pairs_at_once(texts.vectors) // max(1, texts.exists.numel()))
    for start in range(0, max(1, len(images.whole)), step):  # of no images a block of none
        yield taken(images, slice(start, start + step))


def text_blocks(texts: Places, lengths: list[int]) -> Iterator[Places]:
    """The texts, which are sorted by their lengths, some at a time, no wider than the longest of
    these; so few that eight images or more fit with them, where one text is not too much."""
    most, start = pairs_at_once(texts.vectors) // 8, 0
    if not lengths:
        yield texts
    for stop in range(1, len(lengths) + 1):
        if stop == len(lengths) or (stop + 1 - start) * lengths[stop] > most:
            yield taken(texts, slice(start, stop), lengths[stop - 1])
            start = stop
