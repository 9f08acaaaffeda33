"""PVSE: K embeddings of an image and K of a text; a pair scores as its closest two.

Source: Song and Soleymani, Polysemous visual-semantic embedding, CVPR 2019.
"""

from functools import reduce

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from itr_study.checks import check_choice, check_count, check_number
from itr_study.data.batches import Batch, InputSpec
from itr_study.models.base import ModelOutput, RetrievalModel
from itr_study.models.drop import MOST_DROPPED, drop_features
from itr_study.models.image import check_regions
from itr_study.models.subembeddings import MOST_HEADS, SubEmbeddings
from itr_study.models.text import build_text


class PVSE(RetrievalModel):
    """K embeddings of an image over its regions and K of a text over its words, compared by the
    largest of the K x K cosines.

        v^k = LN(fc(mean x) + sigmoid(w att^k(x) x)),  t^k alike over word vectors

    Args:    inputs: sizes of regions and vocabulary; size: D (1024); heads: K; text: "gru" or
             "bigru"; word_size: of learnt word vectors; hidden: of the attention, None = D / 2;
             dropout: on word vectors; image_dropout: share of features dropped in training
             from what the heads of an image see, for all of them alike.
    Shape:   scores (I, T) in [-1, 1]; head_scores (K, I, T), the largest over a text's embeddings
             for each of the image's; text_subembeddings, text_residuals (T, K, D).
    Raises:  ValueError without regions or without tokens in the data, and for sizes that are none.
    Source:  PVSE §3.1 and §3.2 (multiple instance learning: the best pair counts).
    Differs: the attention has D / 2 hidden units (the authors' code: half the width of what it
             reads); no dropout after the residuals. Losses beside the ranking loss are `diversity`
             and `mmd`, weighted by the objective.
    """

    name, display_name, source, version = "pvse", "PVSE", "Song and Soleymani, CVPR 2019", 1
    has_heads = True

    def __init__(self, inputs: InputSpec, size: int = 1024, heads: int = 2, text: str = "bigru",
                 word_size: int = 300, hidden: int | None = None, dropout: float = 0.0,
                 image_dropout: float = 0.0):
        super().__init__()
        check_regions(self.name, inputs)
        check_count("size", size, least=2)  # the norm of a layer of one is 0
        hidden = size // 2 if hidden is None else hidden
        check_count("hidden", hidden)
        check_count("word_size", word_size)
        check_count("heads", heads, 1, MOST_HEADS)
        check_choice("text of pvse", text, ("gru", "bigru"))
        check_number("image_dropout", image_dropout, least=0, most=MOST_DROPPED)
        self.image_dropout = image_dropout
        self.image = nn.Module()
        self.image.whole = nn.Linear(inputs.region_size, size)
        self.image.heads = SubEmbeddings(inputs.region_size, size, heads, hidden, "sigmoid")
        self.text = build_text(text, inputs, size, word_size, dropout)
        self.text.heads = SubEmbeddings(self.text.words.embedding_dim, size, heads, hidden,
                                        "sigmoid")

    def encode_images(self, batch: Batch) -> tuple[Tensor, ...]:
        """(vectors (I, K, D) of length 1, residuals (I, K, D), mask (I, K) of ones, attention)."""
        seen, attention = self.image.heads.look(batch.regions, batch.region_mask)
        if self.training and self.image_dropout:
            seen = drop_features(seen, self.image_dropout)
        vectors, residuals = self.image.heads(self.image.whole(seen[:, 0]), seen[:, 1:])
        ones = vectors.new_ones(vectors.shape[:2])
        return normalize(vectors.float(), dim=2), residuals, ones, attention

    def encode_texts(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """(vectors (T, K, D) of length 1, residuals (T, K, D))."""
        words = self.text.word_vectors(batch.tokens)
        exists = torch.arange(words.shape[1], device=words.device) < batch.lengths[:, None]
        seen = self.text.heads.look(words, exists)[0][:, 1:]
        vectors, residuals = self.text.heads(self.text.state_of(words, batch.lengths), seen)
        return normalize(vectors.float(), dim=2), residuals

    def score(self, images: tuple[Tensor, ...], texts: tuple[Tensor, Tensor]) -> ModelOutput:
        vectors, residuals, mask, attention = images
        # embedding by embedding of the text: K x K of all pairs at once would be K times as large
        heads = reduce(torch.maximum, (torch.einsum("ikd,td->kit", vectors, one)
                                       for one in texts[0].unbind(dim=1)))
        return ModelOutput(heads.amax(dim=0), head_scores=heads, subembeddings=vectors,
                           residuals=residuals, mask=mask, attention=attention,
                           text_subembeddings=texts[0], text_residuals=texts[1])
