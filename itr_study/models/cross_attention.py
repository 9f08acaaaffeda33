"""SAF and SGR: similarity vectors of all pairs of words and regions, filtered or in a graph.

Source: SGRAF (Diao et al., AAAI 2021); the attention is that of SCAN (Lee et al., ECCV 2018),
text-to-image.
"""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu, normalize
from torch.utils.checkpoint import checkpoint

from itr_study.checks import check_count, check_number
from itr_study.data.batches import Batch, InputSpec
from itr_study.models.base import Code, ModelOutput, RetrievalModel, check_counts, fields
from itr_study.models.drop import check_shares, drop_regions
from itr_study.models.image import absent, check_regions, unit
from itr_study.models.text import build_recurrent

LEAK = 0.1  # slope of the attention's leaky ReLU below 0
# How many numbers (image, word, D) are made at a time, by device: on a CPU about what a cache
# holds, on others what keeps them busy.
CPU_CELLS, DEVICE_CELLS = 2**20, 2**26
KEPT_CELLS = 2**26  # in training, in all: more are not kept, but made again for the gradient
MOST_STEPS = 16
MOMENTUM, EPSILON = 0.1, 1e-5  # as of torch's batch norm


class Places(NamedTuple):
    """N items by their places, regions or words, and as a whole; all of length 1.

    vectors (N, P, D), 0 without a place; exists (N, P) bool; whole (N, D).
    """

    vectors: Tensor
    exists: Tensor
    whole: Tensor


def word_attention(cosines: Tensor, exists: Tensor, scale: float,
                   texts: Tensor | None = None) -> Tensor:
    """Return how much each word looks at each region; over existing regions the sum is 1.

    Args:
        cosines: (N, R, W) of regions and words, 0 if one of them does not exist.
        exists: (N, R) bool, of regions.
        scale: λ, the factor of the cosines.
        texts: (W, T), 1 if a word is of a text, for words of several in one row; None: of one text.
    Shape: (N, R, W), 0 at missing regions; an image without any region is looked at evenly.
    Source: SCAN Eqs. 1 and 8 to 10, SGRAF Eq. 2: softmax over regions of λ times the cosines, cut
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

    Shape: vectors (N, P, D), exists (N, P) -> (N, D) of length 1.
    Source: SGRAF, Sec. "Generic Representation Extraction": "self-attention ... adopting the
        average feature as the query" (Vaswani et al., 2017), without an equation.
    Differs: one head, no biases, no batch norm; values are the places themselves. As these have
        length 1, Vaswani's division by sqrt(D) becomes a product, else all weights would be equal.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.key = nn.Linear(size, size, bias=False)
        self.query = nn.Linear(size, size, bias=False)

    def forward(self, vectors: Tensor, exists: Tensor) -> Tensor:
        """Pool the places."""
        kept = exists.unsqueeze(-1).to(vectors.dtype)
        mean = (vectors * kept).sum(dim=1) / kept.sum(dim=1).clamp(min=1)
        asked = self.query(mean) @ self.key.weight  # (K v)·(Q m) = v·(K'Q m): no place is mapped
        logits = (vectors @ asked.unsqueeze(-1)).squeeze(-1) * vectors.shape[-1] ** 0.5
        weights = (logits + absent(exists, logits.dtype)).softmax(dim=1)
        return unit((weights.unsqueeze(1) @ vectors).squeeze(1))


class Similarities(nn.Module):
    """Similarity vectors of images and texts: of wholes, and of each word and what it sees.

        s(x, y) = W |x - y|² / ‖W |x - y|²‖,  squared entry by entry

    Shape: I images, T texts -> (I, T, 1 + W, S) of length 1, the wholes' first; of words that do
        not exist 0 on a CPU, anything elsewhere (`words_at`).
    Source: SGRAF Eqs. 1, 3 and 4; W of words and of wholes are not the same.
    Differs: what a word sees is brought to length 1, as the word is; the paper does not say.
    """

    def __init__(self, size: int, similarity: int, scale: float) -> None:
        super().__init__()
        self.scale = scale
        self.words = nn.Linear(size, similarity, bias=False)
        self.wholes = nn.Linear(size, similarity, bias=False)

    def forward(self, images: Places, texts: Places) -> Tensor:
        """Compare every image with every text."""
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
    """Return where the N words of texts (T, W) are to be read, in the T x W places.

    On a CPU those that exist alone: of a batch of 64 captions almost half of the places are
    padding. Another device would have to stop to count them, and is given all places.
    """
    if exists.device.type == "cpu":
        return exists.flatten().nonzero().squeeze(1)
    return torch.arange(exists.numel(), device=exists.device)


def placed(vectors: Tensor, exists: Tensor, pool: WholePool) -> Places:
    """Return vectors (N, P, D) of any length as places of items."""
    vectors = unit(vectors).masked_fill(~exists.unsqueeze(-1), 0)
    return Places(vectors, exists, pool(vectors, exists))


def spread(module: nn.Module) -> None:
    """Draw first weights of all linear maps in a module: uniform, keeping lengths about.

    (Glorot and Bengio, AISTATS 2010.) torch's own shorten vectors, step by step of a graph: the
    first scores of SGR then differ by 0.001, ten times less than with these, and it learns late.
    """
    for part in module.modules():
        if isinstance(part, nn.Linear):
            nn.init.xavier_uniform_(part.weight)


class CrossAttention(RetrievalModel):
    """A base of `saf` and `sgr`: a class of them reads a score off similarity vectors.

    Args:
        similarity: S, size of the similarity vectors.
        text: "bigru" or "gru", whose states are the words.
        scale: λ of the attention.
    Shape: scores (I, T) in (0, 1); `attend` gives the attention (P, W, R) of pairs, as papers draw
        it.
    Differs: the papers' regions are of a detector (36); these are any, a grid's too. Places have
        length 1. First weights of what compares pairs: see `spread`. The paper trains with the
        hinge of the hardest negatives at a margin of 0.2.
    """

    compares_pairs = True

    def __init__(self, inputs: InputSpec, size: int = 1024, similarity: int = 256,
                 text: str = "bigru", word_size: int = 300, scale: float = 9.0,
                 dropout: float = 0.0, image_dropout: float = 0.0, region_dropout: float = 0.0,
                 word_dropout: float = 0.0) -> None:
        super().__init__()
        check_regions(self.name, inputs)
        check_counts(size=size, similarity=similarity, word_size=word_size)
        check_number("scale", scale, above=0)
        check_shares(dropout=dropout, image_dropout=image_dropout, region_dropout=region_dropout,
                     word_dropout=word_dropout)
        self.region_dropout, self.image_dropout = region_dropout, image_dropout
        self.image: Any = nn.Module()
        self.pair: Any = nn.Module()
        self.image.regions = nn.Linear(inputs.region_size, size)
        self.image.whole = WholePool(size)
        self.text = build_recurrent(self.name, text, inputs, size, word_size, dropout=dropout,
                                    word_dropout=word_dropout)
        self.text.whole = WholePool(size)
        self.pair.similarities = Similarities(size, similarity, scale)

    @abstractmethod
    def read(self, nodes: Tensor, exists: Tensor) -> Tensor:
        """Return scores (I, T) in (0, 1) of similarity vectors (I, T, P, S) that exist (T, P)."""

    def encode_images(self, batch: Batch) -> Places:
        """Return regions, those that exist, and the whole of each image."""
        regions, exists = fields(batch, "regions", "region_mask")
        if self.training:
            regions, exists = drop_regions(regions, exists, self.region_dropout, self.image_dropout)
        return placed(self.image.regions(regions), exists, self.image.whole)

    def encode_texts(self, batch: Batch) -> Places:
        """Return words, those that exist, and the whole of each text."""
        states, _, exists = self.text.states(*fields(batch, "tokens", "lengths"))
        return placed(states, exists, self.text.whole)

    def score(self, images: Code, texts: Code) -> ModelOutput:
        """Return scores (I, T) in (0, 1).

        In training all similarity vectors are there at once, in evaluation those of some images and
        of some texts of similar length, without the padding of the others.
        """
        images, texts = Places(*images), Places(*texts)
        if self.training:
            return ModelOutput(self.read(self.compared(images, texts), with_whole(texts.exists)))
        lengths, order = texts.exists.sum(dim=1).sort(stable=True)
        columns = [torch.cat([
            self.read(self.pair.similarities(block, some), with_whole(some.exists))
            for block in image_blocks(images, some)])
            for some in text_blocks(taken(texts, order), lengths.tolist())]
        return ModelOutput(torch.cat(columns, dim=1)[:, order.argsort()])

    def compared(self, images: Places, texts: Places) -> Tensor:
        """Return similarity vectors (I, T, 1 + W, S), made for some images at a time.

        Of many pairs intermediate values are made again for the gradient: memory holds one block's.
        """
        cells = len(images.whole) * texts.vectors.numel()
        again = cells > KEPT_CELLS and torch.is_grad_enabled()
        similarities = self.pair.similarities
        return torch.cat([
            checkpoint(similarities, block, texts, use_reentrant=False, preserve_rng_state=False)
            if again else similarities(block, texts) for block in image_blocks(images, texts)])

    def attend(self, images: Code, texts: Code) -> Tensor:
        """Return how much each word looks at each region of an image: row p of both is a pair.

        Shape: codes of P images and P texts -> (P, W, R): of each existing word the weights of the
            existing regions, which sum to 1; else 0.
        """
        images, texts = Places(*images), Places(*texts)
        if len(images.whole) != len(texts.whole):
            raise ValueError(f"attend takes pairs, got {len(images.whole)} images and "
                             f"{len(texts.whole)} texts; repeat the one for each of the others")
        cosines = images.vectors @ texts.vectors.transpose(1, 2)  # (P, R, W)
        weights = word_attention(cosines, images.exists, self.pair.similarities.scale)
        exists = images.exists.unsqueeze(2) & texts.exists.unsqueeze(1)
        return weights.masked_fill(~exists, 0).transpose(1, 2)


def with_whole(exists: Tensor) -> Tensor:
    """Return which of 1 + W similarity vectors of a text exist (T, 1 + W); the whole's does."""
    return torch.cat([torch.ones_like(exists[:, :1]), exists], dim=1)


def taken(items: Places, rows: Tensor | slice, width: int | None = None) -> Places:
    """Return some of the items, with their first places."""
    return Places(items.vectors[rows, :width], items.exists[rows, :width], items.whole[rows])


def pairs_at_once(vectors: Tensor) -> int:
    """Return how many pairs of an image and a word of so many entries fit a block."""
    cells = CPU_CELLS if vectors.device.type == "cpu" else DEVICE_CELLS
    return cells // vectors.shape[-1]


def image_blocks(images: Places, texts: Places) -> Iterator[Places]:
    """Yield the images, as many at a time as fit with all of these texts; at least one."""
    step = max(1, pairs_at_once(texts.vectors) // max(1, texts.exists.numel()))
    for start in range(0, max(1, len(images.whole)), step):  # of no images a block of none
        yield taken(images, slice(start, start + step))


def text_blocks(texts: Places, lengths: list[int]) -> Iterator[Places]:
    """Yield the texts, sorted by length, some at a time, no wider than their longest.

    So few that eight images or more fit with them, unless one text is too much.
    """
    most, start = pairs_at_once(texts.vectors) // 8, 0
    if not lengths:
        yield texts
    for stop in range(1, len(lengths) + 1):
        if stop == len(lengths) or (stop + 1 - start) * lengths[stop] > most:
            yield taken(texts, slice(start, stop), lengths[stop - 1])
            start = stop


class NodeNorm(nn.Module):
    """Batch norm of one number of each existing node, then a learnt slope and shift.

    Shape: values (I, T, P), exists (T, P) -> (I, T, P). In training mean and variance are those of
        all existing nodes of all pairs of the batch; in evaluation the running ones, so that a
        pair's score depends on no other pair.
    """

    def __init__(self) -> None:
        super().__init__()
        self.slope, self.shift = nn.Parameter(torch.ones(())), nn.Parameter(torch.zeros(()))
        self.mean: Tensor
        self.variance: Tensor
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("variance", torch.ones(()))

    def forward(self, values: Tensor, exists: Tensor) -> Tensor:
        """Normalise the values."""
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
    """Words look at regions; similarity vectors are weighed by content, and their mean is read.

        b_p = sigmoid(BN(w s_p)) / sum of these,  score = sigmoid(u · sum of b_p s_p + c)

    Source: similarity attention filtration, SGRAF Eqs. 7 and 8; p: the words of a text and the
        wholes.
    Differs: BN, which the paper leaves open, is of the existing nodes of all pairs, see `NodeNorm`;
        and as `CrossAttention`.
    """

    name, display_name, source, version = "saf", "SAF", "SGRAF: Diao et al., AAAI 2021", 2

    def __init__(self, inputs: InputSpec, size: int = 1024, similarity: int = 256,
                 text: str = "bigru", word_size: int = 300, scale: float = 9.0,
                 dropout: float = 0.0, image_dropout: float = 0.0, region_dropout: float = 0.0,
                 word_dropout: float = 0.0) -> None:
        super().__init__(inputs, size, similarity, text, word_size, scale, dropout, image_dropout,
                         region_dropout, word_dropout)
        self.pair.weight = nn.Linear(similarity, 1, bias=False)
        self.pair.norm = NodeNorm()
        self.pair.score = nn.Linear(similarity, 1)
        spread(self.pair)

    def read(self, nodes: Tensor, exists: Tensor) -> Tensor:
        """Return scores (I, T)."""
        logits = self.pair.norm(self.pair.weight(nodes).squeeze(-1), exists)
        weights = logits.sigmoid() * exists  # (I, T, P)
        weights = weights / weights.sum(dim=2, keepdim=True)
        found = (weights.unsqueeze(2) @ nodes).squeeze(2)  # (I, T, S)
        return self.pair.score(found).squeeze(-1).sigmoid()


class Reasoning(nn.Module):
    """One step of the graph: every node becomes what it sees of all nodes, mapped.

        e_pq = softmax over q of (W_in s_p)·(W_out s_q),  s_p <- ReLU(sum over q of e_pq W_r s_q)

    Shape: nodes (N, P, S), bias (N, P, 1), see `absent`, asking (N, Q, S), the nodes that are
        renewed -> (N, Q, S).
    Source: SGRAF Eqs. 5 and 6.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.inward = nn.Linear(size, size, bias=False)
        self.outward = nn.Linear(size, size, bias=False)
        self.relation = nn.Linear(size, size, bias=False)

    def forward(self, nodes: Tensor, bias: Tensor, asking: Tensor) -> Tensor:
        """Renew the nodes that ask."""
        edge = self.inward.weight.T @ self.outward.weight  # both maps at once, of one side alone
        asked = (asking @ edge).transpose(1, 2)
        weights = torch.baddbmm(bias, nodes, asked).softmax(dim=1)  # (N, P, Q): faster than Q, P
        return self.relation(weights.transpose(1, 2) @ nodes).relu()  # W_r last: it is linear


class SGR(CrossAttention):
    """Words look at regions; similarity vectors go through a graph, and the wholes' is read.

    At first the graph hardly tells nodes apart: similarity vectors have length 1, so that logits of
    Eq. 5 spread by about 1 / sqrt(S) and a step makes every node nearly the mean of all; further
    steps are then layers with a ReLU on one mean. On 800 images of `scenes` that costs time at a
    rate of 1e-3 (dev RSUM after 3 epochs of triplet_sum: 212 with one step, 105 with three) and
    none at 4e-3 (484, 461, 458 at best of 5 epochs with one, two, three; one seed). The bases take
    one, the cheapest.

    Args: steps: N of the graph (the paper's 3), each with weights of its own.
    Source: similarity graph reasoning, SGRAF Eqs. 5 and 6; the score is sigmoid(u · s + c) of the
        last node.
    Differs: in the last step only the node that is read is made. Maps have no biases, which the
        paper leaves open; and as `CrossAttention`.
    """

    name, display_name, source, version = "sgr", "SGR", "SGRAF: Diao et al., AAAI 2021", 2

    def __init__(self, inputs: InputSpec, size: int = 1024, similarity: int = 256,
                 steps: int = 3, text: str = "bigru", word_size: int = 300, scale: float = 9.0,
                 dropout: float = 0.0, image_dropout: float = 0.0, region_dropout: float = 0.0,
                 word_dropout: float = 0.0) -> None:
        super().__init__(inputs, size, similarity, text, word_size, scale, dropout, image_dropout,
                         region_dropout, word_dropout)
        check_count("steps", steps, 1, MOST_STEPS)
        self.pair.steps = nn.ModuleList(Reasoning(similarity) for _ in range(steps))
        self.pair.score = nn.Linear(similarity, 1)
        spread(self.pair)

    def read(self, nodes: Tensor, exists: Tensor) -> Tensor:
        """Return scores (I, T)."""
        pairs = nodes.shape[:2]
        bias = absent(exists, nodes.dtype).repeat(len(nodes), 1).unsqueeze(2)  # (I T, P, 1)
        nodes = nodes.flatten(0, 1)
        *earlier, last = self.pair.steps
        for step in earlier:
            nodes = step(nodes, bias, nodes)
        whole = last(nodes, bias, nodes[:, :1]).squeeze(1)
        return self.pair.score(whole).view(pairs).sigmoid()
