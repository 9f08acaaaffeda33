"""VSE++: a linear map of image features and a recurrent text encoder.

Source: Faghri et al., VSE++, BMVC 2018, §3.1 and §4.1.
"""

from torch import Tensor
from torch.nn.functional import normalize

from itr_study.checks import check_count, check_number
from itr_study.data.batches import Batch, InputSpec
from itr_study.models.drop import MOST_DROPPED
from itr_study.models.image import LinearRegions, TunesNetwork
from itr_study.models.text import build_text


class VSEPP(TunesNetwork):
    """Linear map of image regions and a text encoder over words, compared by cosine.

    Args:    inputs: sizes of regions and vocabulary; size: of the embedding (1024); text: "gru",
             "bigru" or "minilm" (fine-tuned, needs tokens="wordpiece:minilm"); word_size: of
             learnt word vectors; pool: over regions, "mean", "max", "both" or "gpo"; dropout: on
             word vectors (or on the transformer's sentence); image_dropout: on image features;
             region_dropout, word_dropout: shares of regions and words left out in training;
             text_size: of the recurrent state, mapped linearly to `size` (None: the state itself
             is the embedding); image_hidden: units of a layer before the linear map of the images
             (None: no such layer); hidden_dropout: on these units and on the wider state;
             dropout_alike: whether all regions of an image lack the same features.
             With images="pixels:<encoder>" in the run's config that network is fine-tuned too,
             with "<encoder>:stage<n>:<views>" its stages from n on, over cached maps; its rate is
             set by learning_rate_factors, {"network": 0.1} or the like.
    Shape:   scores (I, T) in [-1, 1].
    Raises:  ValueError without regions or without tokens in the data.
    Source:  VSE++ §4.1: GRU 1024, word vectors 300, features l2-normalised after the map.
    Differs: regions are pooled here (the paper maps one pooled vector); no absolute value. What
             follows image_dropout is not in the paper, and off by default.
    """

    name, display_name, source, version = "vsepp", "VSE++", "Faghri et al., BMVC 2018", 1

    def __init__(self, inputs: InputSpec, size: int = 1024, text: str = "gru",
                 word_size: int = 300, pool: str = "mean", dropout: float = 0.0,
                 image_dropout: float = 0.0, region_dropout: float = 0.0,
                 word_dropout: float = 0.0, text_size: int | None = None,
                 image_hidden: int | None = None, hidden_dropout: float = 0.0,
                 dropout_alike: bool = False):
        super().__init__()
        check_count("size", size)
        check_count("word_size", word_size)
        check_number("region_dropout", region_dropout, least=0, most=MOST_DROPPED)
        check_number("word_dropout", word_dropout, least=0, most=MOST_DROPPED)
        check_hidden(text_size, image_hidden, hidden_dropout)
        if not isinstance(dropout_alike, bool):  # 1 would pass for True
            raise ValueError(f"dropout_alike must be True or False, got {dropout_alike!r}")
        self.image = LinearRegions(self.take_network(inputs), size, pool, image_dropout,
                                   region_dropout, image_hidden, hidden_dropout, dropout_alike)
        self.text = build_text(text, inputs, size, word_size, dropout, word_dropout=word_dropout,
                               state_size=text_size, hidden_dropout=hidden_dropout)

    def encode_images(self, batch: Batch) -> Tensor:
        return normalize(self.image(*self.regions_of(batch)).float(), dim=1)

    def encode_texts(self, batch: Batch) -> Tensor:
        return normalize(self.text(batch.tokens, batch.lengths).float(), dim=1)


def check_hidden(text_size: int | None, image_hidden: int | None, hidden_dropout: float) -> None:
    """Raise ValueError for a size that is none, and for a share of hidden units where there are
    none to drop."""
    for name, units in (("text_size", text_size), ("image_hidden", image_hidden)):
        if units is not None:
            check_count(name, units)
    check_number("hidden_dropout", hidden_dropout, least=0, most=MOST_DROPPED)
    if hidden_dropout and text_size is None and image_hidden is None:
        raise ValueError("hidden_dropout drops units of the images' hidden layer and of the wider "
                         "state of the texts; set image_hidden or text_size")
