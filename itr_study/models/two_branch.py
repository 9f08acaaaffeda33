"""Two branches of fully connected layers over fixed image and sentence vectors."""

from torch import Tensor, nn
from torch.nn.functional import normalize

from itr_study.checks import check_count
from itr_study.data.batches import Batch, InputSpec
from itr_study.models.base import RetrievalModel, check_counts, fields
from itr_study.models.image import check_regions, masked_mean


def branch(sizes: list[int], dropout: float) -> nn.Sequential:
    """Chain linear layers; ReLU, batch norm and dropout between them, none after."""
    layers: list[nn.Module] = []
    for before, after in zip(sizes[:-2], sizes[1:-1], strict=True):
        layers += [nn.Linear(before, after), nn.ReLU(), nn.BatchNorm1d(after), nn.Dropout(dropout)]
    return nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))


class TwoBranch(RetrievalModel):
    """Pooled image features and sentence vectors, each through its own small network.

    Args:
        hidden: units of the layers before the embedding.
        text_layers: hidden layers of the text branch (the paper has 1024, 512).
        dropout: after hidden layers.
        input_dropout: share of input features set to zero (0; ours).
    Shape: scores (I, T) in [-1, 1].
    Source: deep top-k ranking (the `topk` paper), §III-C, Fig. 2: image 4096 -> 1024 -> 512, text
        6000 -> 1024 -> 512 -> 512, ReLU, batch norm, dropout 0.3; Eq. 4 for the score.
    Differs: embeddings are l2-normalised (the paper calls Eq. 4 cosine but writes no norm) and the
        last layer has no ReLU, so that cosines may be negative; the order within a layer is ours.
    """

    name, display_name, source, version = "two_branch", "Two-branch", "topk paper, Fig. 2", 1

    def __init__(self, inputs: InputSpec, size: int = 512, hidden: int = 1024,
                 text_layers: int = 2, dropout: float = 0.3, input_dropout: float = 0.0) -> None:
        super().__init__()
        check_regions(self.name, inputs)
        if not inputs.sentence_size:
            raise ValueError("two_branch needs region features and sentence vectors; set "
                             "sentences='minilm' or 'fisher' in the run's config")
        check_counts(size=size)
        check_count("hidden", hidden, least=2)  # a second layer of the texts has half of them
        check_count("text_layers", text_layers, 1, 8)
        text_hidden = [hidden] + [hidden // 2] * (text_layers - 1)
        self.input_dropout = nn.Dropout(input_dropout)
        self.image = branch([inputs.region_size, hidden, size], dropout)
        self.text = branch([inputs.sentence_size, *text_hidden, size], dropout)

    def encode_images(self, batch: Batch) -> Tensor:
        """Map the mean region of each image."""
        pooled = masked_mean(*fields(batch, "regions", "region_mask"))  # (I, D)
        return normalize(self.image(self.input_dropout(pooled)).float(), dim=1)

    def encode_texts(self, batch: Batch) -> Tensor:
        """Map the sentence vectors."""
        return normalize(self.text(self.input_dropout(*fields(batch, "sentences"))).float(), dim=1)
