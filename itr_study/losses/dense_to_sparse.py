"""The distillation of joined texts into single ones, after D2S-VSE."""

from torch import Tensor
from torch.nn.functional import cosine_similarity

from itr_study.checks import check_number
from itr_study.losses._batch import Output, part
from itr_study.losses.base import RankingLoss
from itr_study.losses.triplet_hardest import TripletHardestLoss


class DenseToSparseLoss(RankingLoss):
    """Draw the vector of a text (sparse) to that of all texts of its image, joined (dense).

        L = align x triplet_hardest(images, joined texts)  +  mean over texts of  1 - cos(t, d)
        t: vector of a text;  d: of the joined texts of its image, without gradient

    Use: with a ranking loss, and batches that hold several texts of an image
        (settings.texts_per_image): a text alone in its batch is joined with none. `fit` joins the
        texts, for models that read tokens and have one vector of a text.
    See: structure (draws texts of an image to each other), variance_weighted (several vectors of an
        image instead of one).

    Args:
        margin: of the triplet loss, in units of scores, >= 0.
        align: its weight, >= 0.
    Shape: output.joined_scores (I, T), column j of the joined texts of text j's image;
        output.text_vectors, output.joined_vectors (T, D), of any length; returns () >= 0.
    Source: Liu et al., D2S-VSE, ICCV 2025.
    Differs: there a language model writes the dense texts of an image, and training has two stages:
        images with dense texts first, then this distillation with the dense encoder frozen. Here
        the image's texts in the batch are joined, and one encoder learns to read both at once.

    Example:
        >>> import torch
        >>> from types import SimpleNamespace
        >>> output = SimpleNamespace(  # the second text is at right angles to both of its image
        ...     scores=torch.zeros(1, 2), joined_scores=torch.tensor([[0.8, 0.7]]),
        ...     text_vectors=torch.tensor([[3.0, 4.0], [0.0, 1.0]]), joined_vectors=torch.tensor(
        ...         [[1.0, 0.0], [1.0, 0.0]]))
        >>> match = torch.tensor([[1.0, 0.0]])
        >>> value = DenseToSparseLoss(align=2.0)(output, match)
        >>> round(value.item(), 4)  # 2 x (0.2 + 0.7 - 0.8) + (0.4 + 1) / 2
        0.9
    """

    name, display_name, version = "dense_to_sparse", "Dense to sparse", 1
    relevance_scale, takes, joins = "binary", "output", True

    def __init__(self, margin: float = 0.2, align: float = 1.0) -> None:
        super().__init__()
        check_number("align", align, least=0)
        self.margin, self.align = margin, align
        self.hardest = TripletHardestLoss(margin)

    def _loss(self, output: Output, relevance: Tensor, match: Tensor) -> Tensor:
        scores, texts, joined = (part(output, name, self.name) for name in (
            "joined_scores", "text_vectors", "joined_vectors"))
        apart = 1 - cosine_similarity(texts, joined.detach(), dim=1)  # (T,)
        return self.align * self.hardest(scores, relevance) + apart.mean()
