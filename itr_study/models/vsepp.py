"""VSE++: a linear map of image features and a recurrent text encoder.

Source: Faghri et al., VSE++, BMVC 2018, §3.1 and §4.1.
"""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from itr_study.checks import check_count
from itr_study.data.batches import Batch, InputSpec
from itr_study.encoders.trainable import trainable_image_encoder
from itr_study.models.base import RetrievalModel
from itr_study.models.image import LinearRegions
from itr_study.models.text import build_text


class VSEPP(RetrievalModel):
    """Linear map of image regions and a text encoder over words, compared by cosine.

    Args:    inputs: sizes of regions and vocabulary; size: of the embedding (1024); text: "gru",
             "bigru" or "minilm" (fine-tuned, needs tokens="wordpiece:minilm"); word_size: of
             learnt word vectors; pool: over regions, "mean", "max" or "both"; dropout: on word
             vectors (or on the transformer's sentence); image_dropout: on image features.
             With images="pixels:<encoder>" in the run's config that network is fine-tuned too;
             its rate is set by learning_rate_factors, {"network": 0.1} or the like.
    Shape:   scores (I, T) in [-1, 1].
    Raises:  ValueError without regions or without tokens in the data.
    Source:  VSE++ §4.1: GRU 1024, word vectors 300, features l2-normalised after the map.
    Differs: regions are pooled here (the paper maps one pooled vector); no absolute value.
    """

    name, label, source, version = "vsepp", "VSE++", "Faghri et al., BMVC 2018", 1

    def __init__(self, inputs: InputSpec, size: int = 1024, text: str = "gru",
                 word_size: int = 300, pool: str = "mean", dropout: float = 0.0,
                 image_dropout: float = 0.0):
        super().__init__()
        check_count("size", size)
        check_count("word_size", word_size)
        if not (inputs.region_size or inputs.pixels):
            raise ValueError("vsepp needs region features; set images=... in the run's config")
        self.network = trainable_image_encoder(inputs.pixels) if inputs.pixels else None
        width = self.network.width if self.network else inputs.region_size
        self.image = LinearRegions(width, size, pool, image_dropout)
        self.text = build_text(text, inputs, size, word_size, dropout)

    def encode_images(self, batch: Batch) -> Tensor:
        regions, mask = batch.regions, batch.region_mask
        if self.network is not None:
            regions = self.network(batch.pixels)
            mask = torch.ones(regions.shape[:2], dtype=torch.bool, device=regions.device)
        return normalize(self.image(regions, mask).float(), dim=1)

    def encode_texts(self, batch: Batch) -> Tensor:
        return normalize(self.text(batch.tokens, batch.lengths).float(), dim=1)
