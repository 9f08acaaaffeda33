"""Made-up results that every test of a picture draws from."""

import numpy as np
import pandas as pd
from PIL import Image

RECALLS = [f"test_{way}_r{k}" for way in ("i2t", "t2i") for k in (1, 5, 10)]
CAPTION = ("Two people in a small race car driving by a green hill while a large crowd of "
           "spectators cheers loudly from behind the barrier")


def sweep_rows(seeds: int = 3) -> pd.DataFrame:
    """A sweep of k with the sum apart."""
    noise = np.random.default_rng(0)
    return pd.DataFrame([
        {"k": k, "seed": seed, **{column: 30 + 10 * place - (3 if k == "sum" else abs(k - 4) / 4)
                                  + noise.normal(scale=0.3)
                                  for place, column in enumerate(RECALLS)}}
        for k in (1, 2, 4, 6, "sum") for seed in range(seeds)])


def epochs() -> pd.DataFrame:
    """Two methods over epochs."""
    return pd.DataFrame([{"method": method, "seed": seed, "epoch": epoch,
                          "dev_rsum": 100 * (1 - 0.8 ** epoch) + lift + seed,
                          "loss": 0.5 ** epoch + 0.01}
                         for method, lift in (("topk", 2), ("triplet_sum", 0))
                         for seed in range(3) for epoch in range(1, 6)])


def picture(colour: tuple[int, int, int] = (200, 30, 30), size=(60, 40)) -> Image.Image:
    """A plain picture."""
    return Image.new("RGB", size, colour)
