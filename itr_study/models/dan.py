"""DAN: image and text are looked at several times, each by what was seen of it before."""

import torch
from torch import Tensor, nn

from itr_study.checks import check_count
from itr_study.data.batches import Batch, InputSpec
from itr_study.models.base import ModelOutput, RetrievalModel, check_counts, fields
from itr_study.models.drop import check_shares, drop_regions
from itr_study.models.image import absent, check_regions, masked_mean, unit
from itr_study.models.text import build_recurrent

MOST_STEPS = 16


class MemoryAttention(nn.Module):
    """Weights of the places of an item, by what is remembered of it.

        a = softmax over places of w_h (tanh(W x) * tanh(W_m m))

    Shape: places (N, P, width), exists (N, P), memory (N, size) -> (N, P); 0 without a place.
    Source: DAN, §3.2: h and α of both sides.
    """

    def __init__(self, width: int, size: int) -> None:
        super().__init__()
        self.place = nn.Linear(width, size, bias=False)
        self.memory = nn.Linear(size, size, bias=False)
        self.weight = nn.Linear(size, 1, bias=False)

    def forward(self, places: Tensor, exists: Tensor, memory: Tensor) -> Tensor:
        """Return the weights."""
        # w_h (a * b) = (w_h * b) a: one product instead of one for each entry
        asked = self.weight.weight * torch.tanh(self.memory(memory))  # (N, size)
        logits = (torch.tanh(self.place(places)) @ asked.unsqueeze(2)).squeeze(2)
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        weights = (logits + absent(exists, logits.dtype)).softmax(dim=1)
        return weights.masked_fill(~exists, 0)


class Glimpses(nn.Module):
    """The mean of an item's places, then K = `steps` looks; the sum of all so far is remembered.

    What is seen is tanh(P_k x) if `mapped`, as of images, or x, as of texts (width = size).

    Shape: places (N, P, width), exists (N, P) -> (N, 1 + K, size), weights (N, K, P).
    Source: DAN, §3.2 and §3.4; each side of m-DAN has a memory of its own.
    """

    def __init__(self, width: int, size: int, steps: int, mapped: bool) -> None:
        super().__init__()
        self.maps = nn.ModuleList(nn.Sequential(nn.Linear(width, size), nn.Tanh())
                                  if mapped else nn.Identity() for _ in range(steps + 1))
        self.looks = nn.ModuleList(MemoryAttention(width, size) for _ in range(steps))

    def forward(self, places: Tensor, exists: Tensor) -> tuple[Tensor, Tensor]:
        """Return what is seen, and the weights of each look."""
        first, *maps = self.maps
        seen, weights = [first(masked_mean(places, exists))], []
        memory = seen[0]
        for look, project in zip(self.looks, maps, strict=True):
            weights.append(look(places, exists, memory))
            found = weights[-1].to(places.dtype).unsqueeze(1) @ places
            seen.append(project(found.squeeze(1)))
            memory = memory + seen[-1]
        none = exists.new_zeros(len(exists), 0, exists.shape[1], dtype=seen[0].dtype)
        return torch.stack(seen, dim=1), torch.stack(weights, dim=1) if weights else none


class DAN(RetrievalModel):
    """An image and a text, each seen K + 1 times; a pair's score is a sum over these.

        v_0 = tanh(P_0 mean x),  v_k = tanh(P_k sum of a_k x),  a_k by m = v_0 + ... + v_(k-1)
        u_0 = mean y,  u_k = sum of b_k y;  score = sum over k of v_k·u_k

    Args:
        steps: K.
        text: "bigru" or "gru", whose states are y.
    Shape: scores (I, T) in [-1, 1]; attention (I, K, R), a_k.
    Source: Nam et al., dual attention networks, CVPR 2017, §3.4, m-DAN; r-DAN, whose image and text
        share a memory, answers questions and has no code of an image alone.
    Differs: all K + 1 vectors of an item together are brought to length 1, so that a margin means
        the same for all models (the paper's is 100); states of a GRU, the mean of both directions
        (the paper: the sum of an LSTM's); maps of the attention without biases.
    """

    name, display_name, source, version = "dan", "DAN", "Nam et al., CVPR 2017, m-DAN", 2

    def __init__(self, inputs: InputSpec, size: int = 512, steps: int = 2, text: str = "bigru",
                 word_size: int = 300, dropout: float = 0.0, image_dropout: float = 0.0,
                 region_dropout: float = 0.0, word_dropout: float = 0.0) -> None:
        super().__init__()
        check_regions(self.name, inputs)
        check_counts(size=size, word_size=word_size)
        check_count("steps", steps, 0, MOST_STEPS)
        check_shares(dropout=dropout, image_dropout=image_dropout, region_dropout=region_dropout,
                     word_dropout=word_dropout)
        self.region_dropout, self.image_dropout = region_dropout, image_dropout
        self.image = Glimpses(inputs.region_size, size, steps, mapped=True)
        self.text = build_recurrent(self.name, text, inputs, size, word_size, dropout=dropout,
                                    word_dropout=word_dropout)
        self.text.glimpses = Glimpses(size, size, steps, mapped=False)

    def encode_images(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return vectors (I, (1 + K) D) of length 1 and attention (I, K, R)."""
        regions, exists = fields(batch, "regions", "region_mask")
        if self.training:
            regions, exists = drop_regions(regions, exists, self.region_dropout, self.image_dropout)
        seen, attention = self.image(regions, exists)
        return unit(seen.flatten(1)), attention

    def encode_texts(self, batch: Batch) -> Tensor:
        """Return vectors (T, (1 + K) D) of length 1."""
        states, _, exists = self.text.states(*fields(batch, "tokens", "lengths"))
        return unit(self.text.glimpses(states, exists)[0].flatten(1))

    def score(self, images: tuple[Tensor, Tensor], texts: Tensor) -> ModelOutput:
        """Score by the cosine."""
        vectors, attention = images
        return ModelOutput(vectors @ texts.T, attention=attention)
