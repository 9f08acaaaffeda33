"""VSE++: a linear map of image features and a recurrent text encoder."""

from torch import Tensor, nn
from torch.nn.functional import normalize

from itr_study.checks import check_count
from itr_study.data.batches import Batch, InputSpec
from itr_study.models.base import check_counts, fields
from itr_study.models.drop import check_shares
from itr_study.models.image import LinearRegions, TunesNetwork
from itr_study.models.text import build_text


class VSEPP(TunesNetwork):
    """Linear map of image regions and a text encoder over words, compared by cosine.

    Args:
        text: also "minilm" (fine-tuned, needs tokens="wordpiece:minilm"), or "transformer", of two
            layers with random weights; or "clip:<folder>", the text tower of a CLIP or the like
            with its pooling and projection (needs tokens="wordpiece:clip:<folder>"). A linear map
            whose sizes agree then begins as the identity, so that training begins at its scores.
        tuned: how many layers of one of these learn, from the last, with all that follows them;
            None: all layers.
        pool: over regions, "mean", "max", "both" or "gpo".
        image_hidden: units of a layer before the linear map of the images; None: no such layer.
        hidden_dropout: on these units and on the wider state of `text_size`.
        dropout_alike: whether image_dropout leaves out the same features in all regions of an
            image.

    With images="pixels:<encoder>" in the run's config that network is fine-tuned too, with
    "<encoder>:stage<n>:<views>" its stages from n on, over cached maps; its rate is set by
    learning_rate_factors, {"network": 0.1} or the like.
    Shape: scores (I, T) in [-1, 1].
    Source: Faghri et al., VSE++, BMVC 2018, §3.1 and §4.1: GRU 1024, word vectors 300, features
        l2-normalised after the map.
    Differs: regions are pooled here (the paper maps one pooled vector); no absolute value. What
        follows image_dropout is not in the paper, and off by default.
    """

    name, display_name, source, version = "vsepp", "VSE++", "Faghri et al., BMVC 2018", 1

    def __init__(self, inputs: InputSpec, size: int = 1024, text: str = "gru",
                 word_size: int = 300, pool: str = "mean", dropout: float = 0.0,
                 image_dropout: float = 0.0, region_dropout: float = 0.0,
                 word_dropout: float = 0.0, text_size: int | None = None,
                 image_hidden: int | None = None, hidden_dropout: float = 0.0,
                 dropout_alike: bool = False, tuned: int | None = None) -> None:
        super().__init__()
        check_counts(size=size, word_size=word_size, text_size=text_size, image_hidden=image_hidden)
        if tuned is not None:
            check_count("tuned", tuned, 0)
        check_shares(region_dropout=region_dropout, word_dropout=word_dropout,
                     hidden_dropout=hidden_dropout)
        if hidden_dropout and text_size is None and image_hidden is None:
            raise ValueError("hidden_dropout drops units of the images' hidden layer and of the "
                             "wider state of the texts; set image_hidden or text_size")
        if not isinstance(dropout_alike, bool):  # 1 would pass for True
            raise ValueError(f"dropout_alike must be True or False, got {dropout_alike!r}")
        self.image = LinearRegions(self.take_network(inputs), size, pool, image_dropout,
                                   region_dropout, image_hidden, hidden_dropout, dropout_alike)
        self.text = build_text(text, inputs, size, word_size, dropout, tuned,
                               word_dropout=word_dropout, state_size=text_size,
                               hidden_dropout=hidden_dropout)
        if text.startswith("clip:"):
            for linear in (self.image.linear, self.text.linear):
                if isinstance(linear, nn.Linear) and linear.in_features == linear.out_features:
                    nn.init.eye_(linear.weight)
                    nn.init.zeros_(linear.bias)

    def encode_images(self, batch: Batch) -> Tensor:
        """Map and pool the regions."""
        return normalize(self.image(*self.regions_of(batch)).float(), dim=1)

    def encode_texts(self, batch: Batch) -> Tensor:
        """Read the words."""
        return normalize(self.text(*fields(batch, "tokens", "lengths")).float(), dim=1)
