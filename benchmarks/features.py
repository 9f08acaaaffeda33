"""Time of frozen features: lite0, one crop and its flip, against the network as packaged.

    python benchmarks/features.py [--pictures 128 --repeats 3]

Pictures are of `scenes`, drawn before the clock starts. Prints the ratio on one core (CPU seconds)
and the minutes that all cores of this machine need for the 8,091 pictures of Flickr8k.
"""

import argparse
import os
import time
from concurrent.futures import ThreadPoolExecutor

for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import numpy as np  # noqa: E402
import torch  # noqa: E402
from PIL import Image  # noqa: E402

from itr_study.data import load_dataset  # noqa: E402
from itr_study.encoders.efficientnet import Lite0  # noqa: E402
from itr_study.features.cache import cores  # noqa: E402
from itr_study.features.images import FrozenImages  # noqa: E402
from itr_study.features.specs import image_parts  # noqa: E402

FLICKR8K = 8091
PARTS = image_parts("lite0:pooled:flip")


def straightforward(pictures: list[Image.Image]) -> np.ndarray:
    """One picture at a time, float32, batch norms in place: (N, 2, 1280)."""
    network = Lite0()._load()
    rows = []
    with torch.inference_mode():
        for picture in pictures:
            pixels = np.asarray(picture.resize((224, 224)), np.float32)
            both = np.stack([pixels, pixels[:, ::-1]])
            crops = (torch.from_numpy(both.copy()).permute(0, 3, 1, 2) - 127) / 128
            rows.append(network.extract_features(crops).mean((2, 3)).numpy())
    return np.stack(rows)


def least(function, repeats: int, clock) -> float:
    """The least seconds of several calls, after one to warm up."""
    function()
    seconds = []
    for _ in range(repeats):
        start = clock()
        function()
        seconds.append(clock() - start)
    return min(seconds)


def main() -> None:
    """Print the ratio and the minutes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = load_dataset("scenes", train=options.pictures, dev=2, test=2)
    pictures = [data.open_image(image) for image in data.splits["train"].image_ids]
    encoder = FrozenImages(PARTS[0])
    plain = least(lambda: straightforward(pictures), options.repeats, time.process_time)
    ours = least(lambda: encoder.encode(pictures), options.repeats, time.process_time)
    agreement = np.einsum("nvd,nvd->nv", *(
        rows / np.linalg.norm(rows, axis=-1, keepdims=True)
        for rows in (straightforward(pictures), encoder.encode(pictures)[:, :, 0])))
    with ThreadPoolExecutor(cores(), initializer=torch.set_num_threads, initargs=(1,)) as pool:
        parts = [pictures[start::cores()] for start in range(cores())]
        wall = least(lambda: list(pool.map(encoder.encode, parts)), options.repeats,
                     time.perf_counter)
    minutes = wall / options.pictures * FLICKR8K / 60
    print(f"features of {options.pictures} pictures and their flips, one core: "
          f"{plain:.2f} s as packaged, {ours:.2f} s here, ratio {plain / ours:.1f}; "
          f"least cosine {agreement.min():.5f}")
    print(f"Flickr8k's {FLICKR8K} pictures on {cores()} cores: {minutes:.1f} minutes (goal 6)")


if __name__ == "__main__":
    main()
