"""VSE∞: a visual-semantic embedding that learns to pool over regions and over words."""

from typing import Any

from torch import Tensor, nn
from torch.nn.functional import normalize

from itr_study.data.batches import Batch, InputSpec
from itr_study.models.base import check_counts, fields
from itr_study.models.drop import check_shares, drop_regions
from itr_study.models.image import GPO, TunesNetwork
from itr_study.models.text import build_recurrent


class RegionMap(nn.Module):
    """A linear map of regions (I, R, D), plus a network of two layers if `hidden` is given."""

    def __init__(self, region_size: int, size: int, hidden: int | None) -> None:
        super().__init__()
        self.linear = nn.Linear(region_size, size)
        self.beside = None if hidden is None else nn.Sequential(
            nn.Linear(region_size, hidden), nn.ReLU(), nn.Linear(hidden, size))

    def forward(self, regions: Tensor) -> Tensor:
        """Map the regions."""
        mapped = self.linear(regions)
        return mapped if self.beside is None else mapped + self.beside(regions)


class VSEInfinity(TunesNetwork):
    """Mapped regions and states at words, each pooled by learnt weights, compared by cosine.

        v = sum_k θ_k max_k W x,   t = sum_k ϑ_k max_k h;   max_k: of each feature the k-th largest

    The paper's warm-up, all negatives in the first epoch and then the hardest one, is a matter of
    training: settings={"warmup_epochs": 1}, warmup_objective=[{"loss": "triplet_sum"}] and
    objective=[{"loss": "triplet_hardest"}] in a config. A network is fine-tuned as in VSE++.

    Args: image_hidden: units of a network of two layers added to the linear map of regions, as in
        the paper for detected regions; None: the linear map alone, as for grids.
    Shape: scores (I, T) in [-1, 1].
    Source: Chen et al., Learning the best pooling strategy for visual semantic embedding, CVPR
        2021, §3 (pooling: `GPO`; dropping: "size augmentation").
    Differs: each region and each word is left out with the same chance, at least one stays, and a
        word gives way to no mask word (see `drop_words`); no batch norm in the small network, since
        padded regions would count in it; recurrent nets only, no BERT; dropout and image_dropout
        are ours.
    """

    name, display_name, source, version = "vse_infinity", "VSE∞", "Chen et al., CVPR 2021", 2

    def __init__(self, inputs: InputSpec, size: int = 1024, text: str = "bigru",
                 word_size: int = 300, region_dropout: float = 0.2, word_dropout: float = 0.2,
                 image_hidden: int | None = None, text_size: int | None = None,
                 dropout: float = 0.0, image_dropout: float = 0.0) -> None:
        super().__init__()
        region_size = self.take_network(inputs)
        check_counts(size=size, word_size=word_size, image_hidden=image_hidden, text_size=text_size)
        check_shares(region_dropout=region_dropout, word_dropout=word_dropout, dropout=dropout,
                     image_dropout=image_dropout)
        self.region_dropout, self.image_dropout = region_dropout, image_dropout
        self.image: Any = nn.Module()
        self.image.map = RegionMap(region_size, size, image_hidden)
        self.image.pool = GPO()
        self.text = build_recurrent(self.name, text, inputs, size, word_size, dropout=dropout,
                                    word_dropout=word_dropout, state_size=text_size)
        self.text.pool = GPO()

    def encode_images(self, batch: Batch) -> Tensor:
        """Map and pool the regions."""
        regions, mask = self.regions_of(batch)
        if self.training:
            regions, mask = drop_regions(regions, mask, self.region_dropout, self.image_dropout)
        return normalize(self.image.pool(self.image.map(regions), mask).float(), dim=1)

    def encode_texts(self, batch: Batch) -> Tensor:
        """Pool the states at words."""
        states, _, exists = self.text.states(*fields(batch, "tokens", "lengths"))
        return normalize(self.text.pool(self.text.head(states), exists).float(), dim=1)
