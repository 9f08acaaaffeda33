"""The domain discrepancy term of PVSE."""

import torch
from torch import Tensor

from itr_study.checks import check_choice, check_number
from itr_study.losses._batch import Output, part
from itr_study.losses.base import RankingLoss

KERNELS = ("distance", "square")


class MMDLoss(RankingLoss):
    """Make the embeddings of images and of texts be spread alike: maximum mean discrepancy.

        L = mean k(v, v') - 2 mean k(v, t) + mean k(t, t'),   k(a, b) = exp(-gamma |a - b|)

    Over all embeddings v of the images and t of the texts of a batch.

    Use: with a ranking loss, for pvse; its weight is small (0.01 and less).
    See: diversity (PVSE's other term), orthogonality (DVSE's).

    Args:
        gamma: > 0, how fast the kernel falls.
        kernel: of the "distance", as the authors' code has it, or of its "square", a Gaussian.
    Shape: output.subembeddings (I, K, D), output.text_subembeddings (T, K', D), each of length 1;
        returns () >= 0.
    Source: Song and Soleymani, PVSE, CVPR 2019, §3.3, and the authors' code (gamma = 0.5).
    Differs: of two equal vectors the distance has no gradient; it is 0 here.

    Example:
        >>> import torch
        >>> from types import SimpleNamespace
        >>> image, text = torch.tensor([[[1.0, 0.0]]]), torch.tensor([[[0.0, 1.0]]])
        >>> output = SimpleNamespace(scores=torch.zeros(1, 1), subembeddings=image,
        ...                          text_subembeddings=text)
        >>> round(MMDLoss()(output, torch.eye(1)).item(), 4)  # 2 - 2 exp(-sqrt(2) / 2)
        1.0139
    """

    name, display_name, version, relevance_scale = "mmd", "MMD", 1, "binary"
    takes = "output"

    def __init__(self, gamma: float = 0.5, kernel: str = "distance") -> None:
        super().__init__()
        check_number("gamma", gamma, above=0)
        check_choice("kernel", kernel, KERNELS)
        self.gamma, self.kernel = gamma, kernel

    def _loss(self, output: Output, relevance: Tensor, match: Tensor) -> Tensor:
        images = part(output, "subembeddings", self.name).flatten(0, 1)
        texts = part(output, "text_subembeddings", self.name).flatten(0, 1)
        return (self.mean_kernel(images, images) - 2 * self.mean_kernel(images, texts)
                + self.mean_kernel(texts, texts))

    def mean_kernel(self, a: Tensor, b: Tensor) -> Tensor:
        """Return the mean () of k over all pairs of vectors (N, D) and (M, D)."""
        lengths = a.square().sum(dim=1)[:, None] + b.square().sum(dim=1)
        squares = (lengths - 2 * a @ b.T).clamp(min=0)
        if self.kernel == "square":
            return torch.exp(-self.gamma * squares).mean()
        same = squares <= 32 * torch.finfo(squares.dtype).eps  # but for rounding: no gradient there
        distances = squares.masked_fill(same, 1.0).sqrt().masked_fill(same, 0.0)
        return torch.exp(-self.gamma * distances).mean()
