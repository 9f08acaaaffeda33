"""Images and texts compared word by word: each word looks at the regions, then all are weighed up.

Source: SGRAF (Diao et al., AAAI 2021), Eqs. 1 to 4; the attention is that of SCAN (Lee et al., ECCV
2018), text-to-image.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu, normalize

LEAK = 0.1  # slope of the attention's leaky ReLU below 0


class Places(NamedTuple):
    """N items by their places, regions or words, and as a whole; all of length 1.

    vectors (N, P, D), 0 where no place is; exists (N, P) bool; whole (N, D).
    """

    vectors: Tensor
    exists: Tensor
    whole: Tensor


def unit(vectors: Tensor) -> Tensor:
    """Vectors (..., D) of length 1, in float32 at least."""
    return normalize(vectors.to(torch.promote_types(vectors.dtype, torch.float32)), dim=-1)


def absent(exists: Tensor, dtype: torch.dtype) -> Tensor:
    """What to add before a softmax over places (N, P): 0 where one exists, minus infinity
    elsewhere; 0 for an item without any, whose weights would be NaN."""
    some = exists | ~exists.any(dim=1, keepdim=True)
    return torch.zeros(some.shape, dtype=dtype, device=some.device).masked_fill(~some, -torch.inf)


def word_attention(cosines: Tensor, exists: Tensor, scale: float,
                   texts: Tensor | None = None) -> Tensor:
    """How much each word looks at each region; over the regions that exist the weights sum to 1.

    Args:    cosines: of regions and words, 0 where one of them does not exist; exists: (N, R)
             bool, of regions; scale: λ, what the cosines are multiplied by; texts: (W, T), 1 where
             a word is of a text, for words of several in one row; None: all W are of one text.
    Shape:   cosines (N, R, W) -> the same; 0 at missing regions. An image without any region is
             looked at everywhere alike.
    Source:  SCAN Eqs. 1 and 8 to 10, SGRAF Eq. 2: softmax over regions of λ times the cosines, cut
             off at 0 and of length 1 over the words of a text.
    Differs: a cosine below 0 keeps a tenth, so that its gradient is never 0 for all words.
    """
    bias = absent(exists, cosines.dtype).unsqueeze(2)
    kept = leaky_relu(cosines, LEAK)
    if texts is None:
        factor = scale / kept.norm(dim=-1, keepdim=True).clamp(min=1e-12)
    else:
        lengths = (kept.square() @ texts).clamp(min=1e-24).sqrt()  # (N, R, T)
        factor = (scale / lengths) @ texts.T
    return torch.addcmul(bias, kept, factor).softmax(dim=1)


class WholePool(nn.Module):
    """One vector of an item: its places, weighed by how much its mean looks at each.

        w = softmax over places of (K v)·(Q mean v) sqrt(D)

    Shape:   vectors (N, P, D), exists (N, P) -> (N, D) of length 1.
    Source:  SGRAF, Sec. "Generic Representation Extraction": "self-attention ... adopting the
             average feature as the query" (Vaswani et al., 2017), without an equation.
    Differs: one head, no biases, no batch norm; values are the places themselves. As these have
             length 1, Vaswani's division by sqrt(D), which is for entries of variance 1, becomes a
             product: else all weights would be alike.
    """

    def __init__(self, size: int):
        super().__init__()
        self.key = nn.Linear(size, size, bias=False)
        self.query = nn.Linear(size, size, bias=False)

    def forward(self, vectors: Tensor, exists: Tensor) -> Tensor:
        kept = exists.unsqueeze(-1).to(vectors.dtype)
        mean = (vectors * kept).sum(dim=1) / kept.sum(dim=1).clamp(min=1)
        asked = self.query(mean) @ self.key.weight  # (K v)·(Q m) = v·(K'Q m): no place is mapped
        logits = (vectors @ asked.unsqueeze(-1)).squeeze(-1) * vectors.shape[-1] ** 0.5
        weights = (logits + absent(exists, logits.dtype)).softmax(dim=1)
        return unit((weights.unsqueeze(1) @ vectors).squeeze(1))


class Similarities(nn.Module):
    """Similarity vectors of images and texts: one of the wholes, one of each word and what it sees.

        s(x, y) = W |x - y|² / ‖W |x - y|²‖,  squared entry by entry

    Args:    size: D; similarity: S of the vectors; scale: λ of the attention.
    Shape:   I images, T texts -> (I, T, 1 + W, S) of length 1, the wholes' first; of words that do
             not exist 0 on a CPU, anything elsewhere (`words_at`).
    Source:  SGRAF Eqs. 1, 3 and 4; W of words and of wholes are not the same.
    Differs: what a word sees is brought to length 1, as the word is; the paper does not say.
    """

    def __init__(self, size: int, similarity: int, scale: float):
        super().__init__()
        self.scale = scale
        self.words = nn.Linear(size, similarity, bias=False)
        self.wholes = nn.Linear(size, similarity, bias=False)

    def forward(self, images: Places, texts: Places) -> Tensor:
        (i, r, d), (t, w, _) = images.vectors.shape, texts.vectors.shape
        regions, places = images.vectors, words_at(texts.exists)
        words = texts.vectors.reshape(t * w, d)[places]
        owners = torch.eye(t, dtype=words.dtype, device=words.device)  # (T, T) -> (N, T)
        owners = owners.unsqueeze(1).expand(t, w, t).reshape(t * w, t)[places]
        cosines = (regions.reshape(i * r, d) @ words.T).view(i, r, len(places))
        weights = word_attention(cosines, images.exists, self.scale, owners)
        # ‖sum a v‖² = a'Ga, G = v'v of the regions: R x R numbers a word in the place of D
        squares = (regions @ regions.transpose(1, 2) @ weights * weights).sum(dim=1, keepdim=True)
        weights = weights * squares.clamp(min=1e-12).rsqrt()
        apart = torch.baddbmm(words, weights.transpose(1, 2), regions, beta=-1)  # (I, N, D)
        local = normalize(self.words(apart.square()), dim=-1)
        local = local.new_zeros(i, t * w, local.shape[-1]).index_copy(1, places, local)
        local = local.view(i, t, w, local.shape[-1])
        whole = self.wholes((images.whole.unsqueeze(1) - texts.whole).square())
        return torch.cat([normalize(whole, dim=-1).unsqueeze(2), local], dim=2)


def words_at(exists: Tensor) -> Tensor:
    """Where the N words of texts (T, W) are to be read, in the T x W places.

    On a CPU those that exist alone: of a batch of 64 captions almost half of the places are
    padding. Another device would have to stop to count them, and is given all places.
    """
    if exists.device.type == "cpu":
        return exists.flatten().nonzero().squeeze(1)
    return torch.arange(exists.numel(), device=exists.device)


def placed(vectors: Tensor, exists: Tensor, pool: WholePool) -> Places:
    """Vectors (N, P, D) of any length as places of items."""
    vectors = unit(vectors).masked_fill(~exists.unsqueeze(-1), 0)
    return Places(vectors, exists, pool(vectors, exists))


def spread(module: nn.Module) -> None:
    """First weights of all linear maps in it: uniform, so that a vector keeps about its length
    (Glorot and Bengio, AISTATS 2010). torch's own shorten it, step by step of a graph: the first
    scores of SGR then differ by 0.001, ten times less than with these, and it learns late."""
    for part in module.modules():
        if isinstance(part, nn.Linear):
            nn.init.xavier_uniform_(part.weight)
