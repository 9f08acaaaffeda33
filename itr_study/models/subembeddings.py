"""Several vectors of one item: heads look at its places (regions, words), each adds what it saw.

Source: PVSE (Song and Soleymani, CVPR 2019), §3.1; the `dvse` paper, Sec. III-A, takes it over.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

MOST_HEADS = 64
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh, "sigmoid": torch.sigmoid, "identity": lambda values: values}


class HeadAttention(nn.Module):
    """K weights for every place of an item: softmax over places of w_2 tanh(w_1 x).

    Args:    width: of the places; hidden: rows of w_1; heads: K.
    Shape:   places (N, P, width), mask (N, P) -> (N, K, P); 0 where no place is.
    Source:  Lin et al., ICLR 2017, as PVSE §3.1 has it.
    """

    def __init__(self, width: int, hidden: int, heads: int):
        super().__init__()
        self.hidden = nn.Linear(width, hidden, bias=False)
        self.heads = nn.Linear(hidden, heads, bias=False)

    def forward(self, places: Tensor, mask: Tensor, project: nn.Linear | None = None) -> Tensor:
        weight, bias = self.hidden.weight, None
        if project is not None:  # w_1 (W x + b) = (w_1 W) x + w_1 b: no place is mapped to `size`
            weight, bias = weight @ project.weight, weight @ project.bias
        logits = self.heads(torch.tanh(linear(places, weight, bias)))  # (N, P, K)
        logits = logits if logits.dtype == torch.float64 else logits.float()
        absent = ~mask.unsqueeze(-1)
        weights = logits.masked_fill(absent, -torch.inf).softmax(dim=1)
        # NaN for an item without any place, which would reach all of a batch; its gradient ends
        # at the first of the two
        return weights.masked_fill(absent, 0.0).transpose(1, 2)


class SubEmbeddings(nn.Module):
    """K vectors of an item: LN(whole + m_k s(w att^k z)), z its places, att^k weights of head k.

    Args:    width: of the places z; size: D of the vectors; heads: K, 0 leaves one vector,
             LN(whole); hidden: of the attention; activation: s, a name of ACTIVATIONS.
    Source:  PVSE §3.1; dvse paper, the unnumbered equation before Eq. 3.
    """

    def __init__(self, width: int, size: int, heads: int, hidden: int, activation: str):
        super().__init__()
        self.attention = HeadAttention(width, hidden, heads) if heads else None
        self.residual = nn.Linear(width, size) if heads else None
        self.activation = ACTIVATIONS[activation]
        self.norm = nn.LayerNorm(size)

    def look(self, places: Tensor, mask: Tensor,
             project: nn.Linear | None = None) -> tuple[Tensor, Tensor]:
        """The plain mean of the places, what each head sees of them, (N, 1 + K, W) in all, and the
        attention (N, K, P), 0 where there is no place.

        Shape:   places (N, P, W), mask (N, P). With `project` heads look at project(places), and
                 the means are still of the places themselves: the caller maps these few. Weights
                 sum to 1, so that this is the mean of what is mapped, and no place ever is.
        """
        if torch.is_autocast_enabled(places.device.type):  # once, not in each of two products
            places = places.to(torch.get_autocast_dtype(places.device.type))
        exists = mask.to(torch.promote_types(places.dtype, torch.float32))
        weights = [(exists / exists.sum(dim=1, keepdim=True).clamp(min=1)).unsqueeze(1)]
        if self.attention is not None:
            weights.append(self.attention(places, mask, project))
        weights = torch.cat(weights, dim=1)  # (N, 1 + K, P)
        return weights.to(places.dtype) @ places, weights[:, 1:]

    def forward(self, whole: Tensor, seen: Tensor,
                gate: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Vectors (N, K, D), not normalised, and residuals (N, K, D), what each head adds.

        Shape:   whole (N, D), seen (N, K, width), gate (N, K): 0 leaves LN(whole); None: all 1.
        """
        if self.residual is None:
            return self.norm(whole).unsqueeze(1), whole.new_zeros(len(whole), 0, whole.shape[1])
        residuals = self.activation(self.residual(seen))
        added = residuals if gate is None else residuals * gate.unsqueeze(-1)
        return self.norm(whole.unsqueeze(1) + added), residuals
