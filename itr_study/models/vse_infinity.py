"""VSE∞: a visual-semantic embedding whose pooling is learnt, over regions and over words.

Source: Chen et al., Learning the best pooling strategy for visual semantic embedding, CVPR 2021.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from itr_study.checks import check_choice, check_count, check_number
from itr_study.data.batches import Batch, InputSpec
from itr_study.models.drop import MOST_DROPPED, drop_features, drop_words, keep_some
from itr_study.models.gpo import GPO
from itr_study.models.image import TunesNetwork
from itr_study.models.text import build_text


class RegionMap(nn.Module):
    """A linear map of every region, plus a small network of two layers where `hidden` is given.

    Shape:   (I, R, region_size) -> (I, R, size).
    """

    def __init__(self, region_size: int, size: int, hidden: int | None):
        super().__init__()
        self.linear = nn.Linear(region_size, size)
        self.beside = None if hidden is None else nn.Sequential(
            nn.Linear(region_size, hidden), nn.ReLU(), nn.Linear(hidden, size))

    def forward(self, regions: Tensor) -> Tensor:
        mapped = self.linear(regions)
        return mapped if self.beside is None else mapped + self.beside(regions)


class VSEInfinity(TunesNetwork):
    """Regions mapped to the embedding and states of a recurrent net at all words, each pooled by a
    generalised pooling operator of its own, compared by cosine.

        v = sum_k θ_k max_k W x,   t = sum_k ϑ_k max_k h;   max_k: of each feature the k-th largest

    The paper's warm-up, all negatives in the first epoch and then the hardest one, is a matter of
    training: settings={"warmup_epochs": 1}, warmup_objective=[{"loss": "triplet_sum"}] and
    objective=[{"loss": "triplet_hardest"}] in a config.

    Args:    inputs: sizes of regions and vocabulary; size: D (1024); text: "gru" or "bigru", the
             mean of both directions at each word; word_size: of learnt word vectors (given ones
             keep their own); region_dropout, word_dropout: shares of regions and of words left out
             in training (0.2); image_hidden: units of a network of two layers beside the linear
             map of regions, as the paper has it for detected regions; None: the linear map alone,
             as for grids; text_size: of the states, mapped linearly to D (None: D, not mapped);
             dropout: on word vectors; image_dropout: share of features left out, of all regions
             of an image alike (both ours, 0).
             A network is fine-tuned where images="pixels:<encoder>" or
             "<encoder>:stage<n>:<views>", as in VSE++.
    Shape:   scores (I, T) in [-1, 1].
    Raises:  ValueError without regions or without tokens in the data, and for sizes that are none.
    Source:  VSE∞ §3 (pooling: `models.gpo`; dropping: "size augmentation").
    Differs: each region and each word is left out with the same chance, at least one stays, and a
             word gives way to no mask word (see `drop_words`); no batch norm in the small network,
             since padded regions would count in it; recurrent nets only, no BERT.
    """

    name, display_name, source, version = "vse_infinity", "VSE∞", "Chen et al., CVPR 2021", 2

    def __init__(self, inputs: InputSpec, size: int = 1024, text: str = "bigru",
                 word_size: int = 300, region_dropout: float = 0.2, word_dropout: float = 0.2,
                 image_hidden: int | None = None, text_size: int | None = None,
                 dropout: float = 0.0, image_dropout: float = 0.0):
        super().__init__()
        region_size = self.take_network(inputs)
        check_count("size", size)
        check_count("word_size", word_size)
        check_choice("text of vse_infinity", text, ("gru", "bigru"))
        for what, units in (("image_hidden", image_hidden), ("text_size", text_size)):
            if units is not None:
                check_count(what, units)
        for what, share in (("region_dropout", region_dropout), ("word_dropout", word_dropout),
                            ("dropout", dropout), ("image_dropout", image_dropout)):
            check_number(what, share, least=0, most=MOST_DROPPED)
        self.region_dropout, self.word_dropout = region_dropout, word_dropout
        self.image_dropout = image_dropout
        self.image = nn.Module()
        self.image.map = RegionMap(region_size, size, image_hidden)
        self.image.pool = GPO()
        self.text = build_text(text, inputs, size, word_size, dropout, state_size=text_size)
        self.text.pool = GPO()

    def encode_images(self, batch: Batch) -> Tensor:
        regions, mask = self.regions_of(batch)
        if self.training and self.region_dropout:
            mask = keep_some(mask, self.region_dropout)
        if self.training and self.image_dropout:
            regions = drop_features(regions, self.image_dropout)
        return normalize(self.image.pool(self.image.map(regions), mask).float(), dim=1)

    def encode_texts(self, batch: Batch) -> Tensor:
        tokens, lengths = batch.tokens, batch.lengths
        if self.training and self.word_dropout:
            tokens, lengths = drop_words(tokens, lengths, self.word_dropout)
        states = self.text.head(self.text.states(tokens, lengths)[0])  # (T, W, D)
        exists = torch.arange(states.shape[1], device=states.device) < lengths[:, None]
        return normalize(self.text.pool(states, exists).float(), dim=1)
