"""SAF: similarity vectors are weighed by how much each says, and their mean is read.

Source: similarity attention filtration of SGRAF (Diao et al., AAAI 2021), Eqs. 7 and 8.
"""

import torch
from torch import Tensor, nn

from itr_study.data.batches import InputSpec
from itr_study.models.cross_attention import spread
from itr_study.models.sgraf import CrossAttention

MOMENTUM, EPSILON = 0.1, 1e-5  # as of torch's batch norm


class NodeNorm(nn.Module):
    """Batch norm of one number of each existing node: mean 0 and variance 1, then a slope and a
    shift that are learnt.

    Shape:   values (I, T, P), exists (T, P) -> (I, T, P). In training mean and variance are those
             of all existing nodes of all pairs of the batch, padding left out; in evaluation the
             running ones, so that a pair's score depends on no other pair.
    """

    def __init__(self) -> None:
        super().__init__()
        self.slope, self.shift = nn.Parameter(torch.ones(())), nn.Parameter(torch.zeros(()))
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("variance", torch.ones(()))

    def forward(self, values: Tensor, exists: Tensor) -> Tensor:
        mean, variance = self.mean, self.variance
        if self.training and values.numel():
            kept, count = exists.to(values.dtype), exists.sum() * len(values)
            mean = (values * kept).sum() / count
            variance = ((values - mean).square() * kept).sum() / count
            with torch.no_grad():
                self.mean.lerp_(mean.to(self.mean.dtype), MOMENTUM)
                unbiased = variance * count / (count - 1).clamp(min=1)
                self.variance.lerp_(unbiased.to(self.variance.dtype), MOMENTUM)
        return (values - mean) * (variance + EPSILON).rsqrt() * self.slope + self.shift


class SAF(CrossAttention):
    """Words look at regions; what each pair of them is alike in is weighed, and the mean is read.

        b_p = sigmoid(BN(w s_p)) / sum of these,  score = sigmoid(u · sum of b_p s_p + c)

    Args:    as `CrossAttention`.
    Shape:   scores (I, T) in (0, 1); `attend` gives the attention (P, W, R) of pairs.
    Source:  SGRAF Eqs. 7 and 8; p: the words of a text and the wholes.
    Differs: what the paper leaves open: BN is of the existing nodes of all pairs, see `NodeNorm`;
             and see `CrossAttention`. The paper trains with the hinge of the hardest negatives, at
             a margin of 0.2.
    """

    name, display_name, source, version = "saf", "SAF", "SGRAF: Diao et al., AAAI 2021", 2

    def __init__(self, inputs: InputSpec, size: int = 1024, similarity: int = 256,
                 text: str = "bigru", word_size: int = 300, scale: float = 9.0,
                 dropout: float = 0.0, image_dropout: float = 0.0, region_dropout: float = 0.0,
                 word_dropout: float = 0.0):
        super().__init__(inputs, size, similarity, text, word_size, scale, dropout, image_dropout,
                         region_dropout, word_dropout)
        self.pair.weight = nn.Linear(similarity, 1, bias=False)
        self.pair.norm = NodeNorm()
        self.pair.score = nn.Linear(similarity, 1)
        spread(self.pair)

    def read(self, nodes: Tensor, exists: Tensor) -> Tensor:
        logits = self.pair.norm(self.pair.weight(nodes).squeeze(-1), exists)
        weights = logits.sigmoid() * exists  # (I, T, P)
        weights = weights / weights.sum(dim=2, keepdim=True)
        found = (weights.unsqueeze(2) @ nodes).squeeze(2)  # (I, T, S)
        return self.pair.score(found).squeeze(-1).sigmoid()
