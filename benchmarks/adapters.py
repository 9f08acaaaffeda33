"""What `RankingLoss` costs in a step of sentence-transformers, against their own contrastive loss.

    python benchmarks/adapters.py [--steps 20 --batch 128]

A CLIP of 4 + 4 layers from a config; embeddings, loss, gradient and AdamW; CPU time of one thread.
The losses take turns, step by step. Memory is the peak of a process that trains with one of them.
Goal: at most 5 % of a step and no more memory than MultipleNegativesRankingLoss in both directions.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from statistics import median

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before torch is imported

import torch  # noqa: E402
from _memory import peak_mb  # noqa: E402
from sentence_transformers.sentence_transformer.losses import (  # noqa: E402
    CachedMultipleNegativesRankingLoss,
    MultipleNegativesRankingLoss,
)
from torch import nn  # noqa: E402
from transformers import CLIPConfig, CLIPModel  # noqa: E402

from itr_study.adapters import RankingLoss  # noqa: E402

THEIRS, TOKENS, PART = "MultipleNegativesRankingLoss", 16, 32
LAYERS = {"hidden_size": 192, "intermediate_size": 768, "num_hidden_layers": 4,
          "num_attention_heads": 4}
BOTH = {"directions": ("query_to_doc", "doc_to_query"), "partition_mode": "per_direction"}
LOSSES = {
    THEIRS: lambda model: MultipleNegativesRankingLoss(model, **BOTH),
    "info_nce": lambda model: RankingLoss(model, "info_nce"),
    "triplet_hardest": lambda model: RankingLoss(model, "triplet_hardest"),
    "topk": lambda model: RankingLoss(model, "topk"),
    "smooth_ndcg": lambda model: RankingLoss(model, "smooth_ndcg"),
    f"Cached{THEIRS}": lambda model: CachedMultipleNegativesRankingLoss(
        model, mini_batch_size=PART, **BOTH),
    "info_nce in parts": lambda model: RankingLoss(model, "info_nce", mini_batch_size=PART)}


class Clip(nn.Module):
    """A CLIPModel as a module of sentence-transformers."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.clip = CLIPModel(CLIPConfig(
            text_config=LAYERS | {"vocab_size": 5000, "bos_token_id": 4998, "eos_token_id": 4999},
            vision_config=LAYERS | {"image_size": 64, "patch_size": 16}, projection_dim=128))

    def __getitem__(self, place: int) -> nn.Module:  # what the cached loss asks of a model
        return self.clip

    def forward(self, features: dict) -> dict:
        found = (self.clip.get_image_features(pixel_values=features["pixel_values"])
                 if "pixel_values" in features else
                 self.clip.get_text_features(input_ids=features["input_ids"],
                                             attention_mask=features["attention_mask"]))
        return features | {"sentence_embedding": found.pooler_output}


def steps(loss: nn.Module, optimizer: torch.optim.Optimizer, rows: int) -> Iterator[float]:
    """CPU milliseconds of one step after another, of one batch, each picture with two texts."""
    draw = torch.Generator().manual_seed(0)
    tokens = torch.randint(4999, (rows, TOKENS), generator=draw)
    tokens[:, -1] = 4999
    columns = [{"pixel_values": torch.rand(rows, 3, 64, 64, generator=draw)},
               {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}]
    labels = torch.arange(rows) // 2
    while True:
        start = time.process_time()
        optimizer.zero_grad()
        value = loss([dict(column) for column in columns], labels)
        value.backward()
        optimizer.step()
        yield 1000 * (time.process_time() - start)


def turns(names: list[str], rows: int) -> dict[str, Iterator[float]]:
    """Make the steps of some losses, of one model."""
    model = Clip().train()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-5, fused=True)
    return {name: steps(LOSSES[name](model), optimizer, rows) for name in names}


def main() -> None:
    """Print a line a loss: milliseconds, more than theirs, and the peak of memory."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--memory", choices=LOSSES)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if asked.memory:
        (one,) = turns([asked.memory], asked.batch).values()
        for _ in range(3):
            next(one)
        print(peak_mb())
        return
    every, taken = turns(list(LOSSES), asked.batch), {name: [] for name in LOSSES}
    for number in range(-2, asked.steps):  # the first warm up
        for name, one in every.items():
            spent = next(one)
            taken[name] += [spent] if number >= 0 else []
    for name, spent in taken.items():
        theirs = taken[f"Cached{THEIRS}" if "parts" in name else THEIRS]
        more = median(100 * (mine / other - 1) for mine, other in zip(spent, theirs, strict=True))
        memory = subprocess.run([sys.executable, __file__, "--memory", name, "--batch",
                                 str(asked.batch)], capture_output=True, text=True,
                                check=True).stdout
        print(f"{name}: {median(spent):.0f} ms a step, {more:+.1f} %, {float(memory):.0f} MB")


if __name__ == "__main__":
    main()
