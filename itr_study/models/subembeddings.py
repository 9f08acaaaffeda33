"""PVSE and DVSE: several vectors of one item: heads look at its places, each adds what it saw.

Source: PVSE (Song and Soleymani, CVPR 2019), §3.1; the `dvse` paper, Sec. III-A, takes it over.
"""

from collections.abc import Callable
from functools import reduce
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, normalize

from itr_study.checks import check_choice, check_count
from itr_study.data.batches import Batch, InputSpec
from itr_study.models.base import ModelOutput, RetrievalModel, check_counts, fields
from itr_study.models.drop import check_shares, drop_features
from itr_study.models.image import check_regions
from itr_study.models.text import build_recurrent, existing

MOST_HEADS = 64
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh, "sigmoid": torch.sigmoid, "identity": lambda values: values}
MASKS = ("residual", "loss", "off")
AGGREGATES = {"max": lambda heads: heads.amax(dim=0), "mean": lambda heads: heads.mean(dim=0)}


class HeadAttention(nn.Module):
    """K weights for every place of an item: softmax over places of w_2 tanh(w_1 x).

    Shape: places (N, P, width), mask (N, P) -> (N, K, P); 0 without a place.
    Source: Lin et al., ICLR 2017, as PVSE §3.1 has it.
    """

    def __init__(self, width: int, hidden: int, heads: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(width, hidden, bias=False)
        self.heads = nn.Linear(hidden, heads, bias=False)

    def forward(self, places: Tensor, mask: Tensor, project: nn.Linear | None = None) -> Tensor:
        """Return the weights of places, of project(places) if given."""
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
    """K vectors of an item: LN(whole + m_k s(w att^k z)), z its places, att^k of head k.

    Of no heads there is one vector, LN(whole). Places (N, P, width) give vectors of `size`.

    Source: PVSE §3.1; dvse paper, the unnumbered equation before Eq. 3.
    """

    def __init__(self, width: int, size: int, heads: int, hidden: int | None,
                 activation: str) -> None:
        super().__init__()
        self.attention = HeadAttention(width, hidden or size // 2, heads) if heads else None
        self.residual = nn.Linear(width, size) if heads else None
        self.activation = ACTIVATIONS[activation]
        self.norm = nn.LayerNorm(size)

    def look(self, places: Tensor, mask: Tensor,
             project: nn.Linear | None = None) -> tuple[Tensor, Tensor]:
        """Return the mean of the places and what each head sees, (N, 1 + K, W), and weights.

        Shape: places (N, P, W), mask (N, P); the attention is (N, K, P), 0 without a place.

        With `project` heads look at project(places), and the means are still of the places: the
        caller maps these few. Weights sum to 1, so that this is the mean of what is mapped, and no
        place ever is.
        """
        if torch.is_autocast_enabled(places.device.type):  # once, not in each of two products
            places = places.to(torch.get_autocast_dtype(places.device.type))
        exists = mask.to(torch.promote_types(places.dtype, torch.float32))
        weights = (exists / exists.sum(dim=1, keepdim=True).clamp(min=1)).unsqueeze(1)
        if self.attention is not None:  # (N, 1 + K, P)
            weights = torch.cat([weights, self.attention(places, mask, project)], dim=1)
        return weights.to(places.dtype) @ places, weights[:, 1:]

    def forward(self, whole: Tensor, seen: Tensor,
                gate: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return vectors (N, K, D), not normalised, and residuals (N, K, D), what each head adds.

        Shape: whole (N, D), seen (N, K, width), gate (N, K): 0 leaves LN(whole); None: all 1.
        """
        if self.residual is None:
            return self.norm(whole).unsqueeze(1), whole.new_zeros(len(whole), 0, whole.shape[1])
        residuals = self.activation(self.residual(seen))
        added = residuals if gate is None else residuals * gate.unsqueeze(-1)
        return self.norm(whole.unsqueeze(1) + added), residuals


def closest(images: Tensor, texts: Tensor) -> Tensor:
    """Return (K, I, T), the largest product of each vector of an image with those of a text.

    Shape: images (I, K, D), texts (T, K', D).
    """
    # embedding by embedding of the text: K x K' of all pairs at once would be K' times as large
    return reduce(torch.maximum, (torch.einsum("ikd,td->kit", images, one)
                                  for one in texts.unbind(dim=1)))


class PVSE(RetrievalModel):
    """K embeddings of an image and K of a text, compared by the largest of their K x K cosines.

        v^k = LN(fc(mean x) + sigmoid(w att^k(x) x)),  t^k likewise over word vectors

    Args:
        heads: K.
        hidden: units of the attention; None: D / 2.
        image_dropout: of what the heads of an image see.
    Shape: scores (I, T) in [-1, 1]; head_scores (K, I, T), the largest over a text's embeddings for
        each of the image's; text_subembeddings, text_residuals (T, K, D).
    Source: Song and Soleymani, Polysemous visual-semantic embedding, CVPR 2019, §3.1 and §3.2
        (multiple instance learning: the best pair counts).
    Differs: the attention has D / 2 hidden units (the authors' code: half the width of what it
        reads); no dropout after the residuals. The other losses are `diversity` and `mmd`, weighted
        by the objective.
    """

    name, display_name, source, version = "pvse", "PVSE", "Song and Soleymani, CVPR 2019", 1
    has_heads = True

    def __init__(self, inputs: InputSpec, size: int = 1024, heads: int = 2, text: str = "bigru",
                 word_size: int = 300, hidden: int | None = None, dropout: float = 0.0,
                 image_dropout: float = 0.0) -> None:
        super().__init__()
        check_regions(self.name, inputs)
        check_count("size", size, least=2)  # the norm of a layer of one is 0
        check_counts(hidden=hidden, word_size=word_size)
        check_count("heads", heads, 1, MOST_HEADS)
        check_shares(image_dropout=image_dropout)
        self.image_dropout = image_dropout
        self.image: Any = nn.Module()
        self.image.whole = nn.Linear(inputs.region_size, size)
        self.image.heads = SubEmbeddings(inputs.region_size, size, heads, hidden, "sigmoid")
        self.text = build_recurrent(self.name, text, inputs, size, word_size, dropout=dropout)
        self.text.heads = SubEmbeddings(self.text.words.embedding_dim, size, heads, hidden,
                                        "sigmoid")

    def encode_images(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return vectors (I, K, D) of length 1, residuals (I, K, D), a mask of ones, attention."""
        seen, attention = self.image.heads.look(*fields(batch, "regions", "region_mask"))
        if self.training and self.image_dropout:
            seen = drop_features(seen, self.image_dropout)
        vectors, residuals = self.image.heads(self.image.whole(seen[:, 0]), seen[:, 1:])
        ones = vectors.new_ones(vectors.shape[:2])
        return normalize(vectors.float(), dim=2), residuals, ones, attention

    def encode_texts(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return vectors (T, K, D) of length 1 and residuals (T, K, D)."""
        words, lengths = self.text.read(*fields(batch, "tokens", "lengths"))
        seen = self.text.heads.look(words, existing(words, lengths))[0][:, 1:]
        vectors, residuals = self.text.heads(self.text.last(words, lengths), seen)
        return normalize(vectors.float(), dim=2), residuals

    def score(self, images: tuple[Tensor, ...], texts: tuple[Tensor, Tensor]) -> ModelOutput:
        """Score by the closest two embeddings of a pair."""
        vectors, residuals, mask, attention = images
        heads = closest(vectors, texts[0])
        return ModelOutput(heads.amax(dim=0), head_scores=heads, subembeddings=vectors,
                           residuals=residuals, mask=mask, attention=attention,
                           text_subembeddings=texts[0], text_residuals=texts[1])


class DVSE(RetrievalModel):
    """K image sub-embeddings over regions and one text embedding over words, by cosine.

        v̂^k = s(w1 att^k(z) z),  v^k = LN(h(z) + m_k v̂^k),  t = LN(h(z_t) + s(w3 att(z_t) z_t))
        m = round(sigmoid(w2 h(z))),  w2 random and frozen;  z = g(regions), linear; h the mean

    Args:
        heads: K; 0 for a single embedding LN(h(z)).
        text: "gru" or "bigru", whose last state is h(z_t).
        hidden: units of the attention; None: D / 2.
        activation: s, "tanh", "sigmoid" or "identity".
        mask: what m switches: "residual", v̂^k in training and test; "loss", its part in the
            orthogonality alone; "off", nothing.
        aggregate: over heads, "max" or "mean".
        text_attention: whether w3's term is there.
        text_heads: embeddings of a text, each with an attention of its own; the closest counts.
            The paper has 1.
        image_dropout: of what the heads of an image see; what they look at is decided by all.
    Shape: scores (I, T) in [-1, 1]; the rest as in `ModelOutput`.
    Source: dynamic visual-semantic sub-embeddings (the `dvse` paper), Sec. III-A, Eq. 3.
    Differs: what the paper leaves open: s = tanh (a sigmoid makes all entries of v̂ positive, so
        that no two heads can be orthogonal); m has length K (a mask of length D would drop
        features, not sub-embeddings); it multiplies v̂ before the residual, else a mask without the
        orthogonality loss (Table V, row 6) would do nothing; a head that is off still scores, by
        LN(h(z)); a score is the largest over heads; vectors have length 1 after LN; padding has no
        weight. One region gives every head the same v̂. More heads than regions are allowed.
    """

    name, display_name, source, version = "dvse", "DVSE", "dvse paper, Sec. III-A", 1
    has_heads = True

    def __init__(self, inputs: InputSpec, size: int = 1024, heads: int = 6, text: str = "bigru",
                 word_size: int = 300, hidden: int | None = None, activation: str = "tanh",
                 mask: str = "residual", aggregate: str = "max", text_attention: bool = True,
                 dropout: float = 0.0, image_dropout: float = 0.0, text_heads: int = 1) -> None:
        super().__init__()
        check_regions(self.name, inputs)
        check_count("size", size, least=2)  # the norm of a layer of one is 0
        check_counts(hidden=hidden, word_size=word_size)
        check_count("heads", heads, 0, MOST_HEADS)
        check_choice("activation", activation, ACTIVATIONS)
        check_choice("mask", mask, MASKS)
        check_choice("aggregate", aggregate, AGGREGATES)
        if not isinstance(text_attention, bool):  # 1 would pass for True
            raise ValueError(f"text_attention must be True or False, got {text_attention!r}")
        check_count("text_heads", text_heads, 1, MOST_HEADS)
        if text_heads > 1 and not text_attention:
            raise ValueError(f"text_heads = {text_heads} needs text_attention = True: these heads "
                             "are what it adds to a text")
        check_shares(image_dropout=image_dropout)
        self.mask, self.aggregate, self.image_dropout = mask, aggregate, image_dropout
        self.image: Any = nn.Module()
        self.image.regions = nn.Linear(inputs.region_size, size)  # g
        self.image.heads = SubEmbeddings(size, size, heads, hidden, activation)
        self.image.register_buffer("w2", torch.randn(heads, size) / size ** 0.5)  # frozen: Eq. 3
        self.text = build_recurrent(self.name, text, inputs, size, word_size, dropout=dropout)
        self.text.heads = SubEmbeddings(size, size, text_heads * text_attention, hidden, activation)

    def encode_images(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return vectors (I, K, D) of length 1, residuals (I, K, D), mask (I, K), attention."""
        image = self.image
        seen, attention = image.heads.look(*fields(batch, "regions", "region_mask"), image.regions)
        if self.training and self.image_dropout:
            seen = drop_features(seen, self.image_dropout)
        seen = image.regions(seen)  # means of z = g(regions), since g is linear
        whole, mask = seen[:, 0], self.gate(seen[:, 0])
        vectors, residuals = image.heads(whole, seen[:, 1:],
                                         mask if self.mask == "residual" else None)
        return normalize(vectors.float(), dim=2), residuals, mask, attention

    def gate(self, whole: Tensor) -> Tensor:
        """Return (I, K) of 0 and 1: Eq. 3. No gradient passes through the rounding."""
        if self.mask == "off":
            return whole.new_ones(len(whole), len(self.image.w2))
        with torch.autocast(whole.device.type, enabled=False):  # else a head near 0.5 would flip
            return torch.sigmoid(whole.detach().to(self.image.w2.dtype) @ self.image.w2.T).round()

    def encode_texts(self, batch: Batch) -> Tensor | tuple[Tensor, Tensor]:
        """Return vectors (T, D) of length 1; of several heads (T, K, D), and residuals as well."""
        states, last, exists = self.text.states(*fields(batch, "tokens", "lengths"))
        seen = self.text.heads.look(states, exists)[0][:, 1:]
        vectors, residuals = self.text.heads(last, seen)
        vectors = normalize(vectors.float(), dim=2)
        return (vectors, residuals) if vectors.shape[1] > 1 else vectors.squeeze(1)

    def score(self, images: tuple[Tensor, ...], texts: Tensor | tuple[Tensor, ...]) -> ModelOutput:
        """Score by the cosines of heads, aggregated, with the closest embedding of a text."""
        vectors, residuals, mask, attention = images
        of_text, text_residuals = texts if isinstance(texts, tuple) else (texts[:, None], None)
        heads = closest(vectors, of_text)
        return ModelOutput(AGGREGATES[self.aggregate](heads), head_scores=heads,
                           subembeddings=vectors, residuals=residuals, mask=mask,
                           attention=attention,
                           text_subembeddings=None if text_residuals is None else of_text,
                           text_residuals=text_residuals)
