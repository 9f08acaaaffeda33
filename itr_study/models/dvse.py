"""DVSE: K sub-embeddings of an image, switched on and off by the image itself; one of a text.

Source: dynamic visual-semantic sub-embeddings (the `dvse` paper), Sec. III-A and Eq. 3.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from itr_study.checks import check_choice, check_count, check_number
from itr_study.data.batches import Batch, InputSpec
from itr_study.models.base import ModelOutput, RetrievalModel
from itr_study.models.drop import MOST_DROPPED, drop_features
from itr_study.models.image import check_regions
from itr_study.models.subembeddings import ACTIVATIONS, MOST_HEADS, SubEmbeddings
from itr_study.models.text import build_text

MASKS = ("residual", "loss", "off")
AGGREGATES = {"max": lambda heads: heads.amax(dim=0), "mean": lambda heads: heads.mean(dim=0)}


class DVSE(RetrievalModel):
    """K image sub-embeddings over regions and one text embedding over words, compared by cosine.

        v̂^k = s(w1 att^k(z) z),  v^k = LN(h(z) + m_k v̂^k),  t = LN(h(z_t) + s(w3 att(z_t) z_t))
        m = round(sigmoid(w2 h(z))),  w2 random and frozen;  z = g(regions), linear; h the mean

    Args:    inputs: sizes of regions and vocabulary; size: D (1024); heads: K (6), 0 for a single
             embedding LN(h(z)); text: "gru" or "bigru", whose last state is h(z_t);
             word_size: of learnt word vectors; hidden: of the attention, None = D / 2; activation:
             s, "tanh", "sigmoid" or "identity"; mask: what m switches: "residual", v̂^k in training
             and test, "loss", its part in the orthogonality alone, "off", nothing; aggregate: over
             heads, "max" or "mean"; text_attention: whether w3's term is there; dropout: on word
             vectors; image_dropout: share of features dropped in training from what the heads of an
             image see, for all of them alike; where they look is decided by all.
    Shape:   scores (I, T) in [-1, 1]; head_scores, subembeddings, residuals (v̂), mask, attention:
             see `ModelOutput`.
    Raises:  ValueError without regions or without tokens in the data, and for sizes that are none.
    Source:  dvse paper, Sec. III-A, Eq. 3.
    Differs: what the paper leaves open: s = tanh (a sigmoid makes all entries of v̂ positive, so
             that no two heads can be orthogonal); m has length K (a mask of length D would drop
             features, not sub-embeddings); it multiplies v̂ before the residual, else a mask without
             the orthogonality loss (Table V, row 6) would do nothing; a head that is off still
             scores, by LN(h(z)); a score is the largest over heads; vectors have length 1 after
             LN; padding has no weight. One region gives every head the same v̂. More heads than
             regions are allowed.
    """

    name, display_name, source, version = "dvse", "DVSE", "dvse paper, Sec. III-A", 1
    has_heads = True

    def __init__(self, inputs: InputSpec, size: int = 1024, heads: int = 6, text: str = "bigru",
                 word_size: int = 300, hidden: int | None = None, activation: str = "tanh",
                 mask: str = "residual", aggregate: str = "max", text_attention: bool = True,
                 dropout: float = 0.0, image_dropout: float = 0.0):
        super().__init__()
        check_regions(self.name, inputs)
        check_count("size", size, least=2)  # the norm of a layer of one is 0
        hidden = size // 2 if hidden is None else hidden
        check_count("hidden", hidden)
        check_count("word_size", word_size)
        check_count("heads", heads, 0, MOST_HEADS)
        check_choice("activation", activation, ACTIVATIONS)
        check_choice("mask", mask, MASKS)
        check_choice("aggregate", aggregate, AGGREGATES)
        if not isinstance(text_attention, bool):  # 1 would pass for True
            raise ValueError(f"text_attention must be True or False, got {text_attention!r}")
        check_choice("text of dvse", text, ("gru", "bigru"))
        check_number("image_dropout", image_dropout, least=0, most=MOST_DROPPED)
        self.mask, self.aggregate, self.image_dropout = mask, aggregate, image_dropout
        self.image = nn.Module()
        self.image.regions = nn.Linear(inputs.region_size, size)  # g
        self.image.heads = SubEmbeddings(size, size, heads, hidden, activation)
        self.image.register_buffer("w2", torch.randn(heads, size) / size ** 0.5)  # frozen: Eq. 3
        self.text = build_text(text, inputs, size, word_size, dropout)
        self.text.heads = SubEmbeddings(size, size, int(text_attention), hidden, activation)

    def encode_images(self, batch: Batch) -> tuple[Tensor, ...]:
        """(vectors (I, K, D) of length 1, residuals (I, K, D), mask (I, K), attention (I, K, R)).
        """
        image = self.image
        seen, attention = image.heads.look(batch.regions, batch.region_mask, image.regions)
        if self.training and self.image_dropout:
            seen = drop_features(seen, self.image_dropout)
        seen = image.regions(seen)  # means of z = g(regions), since g is linear
        whole, mask = seen[:, 0], self.gate(seen[:, 0])
        vectors, residuals = image.heads(whole, seen[:, 1:],
                                         mask if self.mask == "residual" else None)
        return normalize(vectors.float(), dim=2), residuals, mask, attention

    def gate(self, whole: Tensor) -> Tensor:
        """(I, K) of 0 and 1: Eq. 3. No gradient passes through the rounding."""
        if self.mask == "off":
            return whole.new_ones(len(whole), len(self.image.w2))
        with torch.autocast(whole.device.type, enabled=False):  # else a head near 0.5 would flip
            return torch.sigmoid(whole.detach().to(self.image.w2.dtype) @ self.image.w2.T).round()

    def encode_texts(self, batch: Batch) -> Tensor:
        states, last = self.text.states(batch.tokens, batch.lengths)
        words = torch.arange(states.shape[1], device=states.device) < batch.lengths[:, None]
        seen = self.text.heads.look(states, words)[0][:, 1:]
        vectors = self.text.heads(last, seen)[0]
        return normalize(vectors.squeeze(1).float(), dim=1)

    def score(self, images: tuple[Tensor, ...], texts: Tensor) -> ModelOutput:
        vectors, residuals, mask, attention = images
        heads = torch.einsum("ikd,td->kit", vectors, texts)
        return ModelOutput(AGGREGATES[self.aggregate](heads), head_scores=heads,
                           subembeddings=vectors, residuals=residuals, mask=mask,
                           attention=attention)
