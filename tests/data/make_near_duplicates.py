"""Write the list of Flickr8k's near-duplicates again.

    python -m tests.data.make_near_duplicates DATA
"""

import csv
import sys
from collections.abc import Sequence

import numpy as np

from itr_study.data import load_dataset
from itr_study.data.caption_noise import LIST
from itr_study.features.dataset import encode_dataset

LOOKS, SAID = 0.6, 0.5  # cosines of the features of two images, and of their captions on average
HEAD = f"""\
# Training images of Flickr8k that show nearly what another training image shows. An image is left
# out if, for one that stands before it in Flickr_8k.trainImages.txt and stays, the cosine of their
# features (EfficientNet-lite0, pooled, mean over the picture and its mirror image) is at least
# {LOOKS}, and the mean cosine of their captions (MiniLM, all 25 pairs) at least {SAID}. Made by
# python -m tests.data.make_near_duplicates DATA
"""


def near_duplicates(images: Sequence[str], features: np.ndarray, captions: np.ndarray
                    ) -> dict[str, str]:
    """Image that is left out -> image that stays, the one that looks most alike.

    Two images are near-duplicates where they look alike, and their captions say alike. One after
    the other is left out if it is one of an image that stays before it, so that none are left.

    Args:    images: I names; features: (I, D) of unit length; captions: (I, E), of each image the
             mean of the sentence vectors of its captions, each of unit length: the product of two
             is the mean cosine of their captions.
    """
    alike = captions @ captions.T >= SAID
    stays, left_out = np.ones(len(images), bool), {}
    for i, name in enumerate(images):
        before = np.flatnonzero(alike[i, :i] & stays[:i])
        looks = features[before] @ features[i]
        if len(before) and looks.max() >= LOOKS:
            stays[i] = False
            left_out[name] = images[before[looks.argmax()]]
    return left_out


def write(left_out: dict[str, str]) -> None:
    """Put the list in its place."""
    with open(LIST, "w", encoding="utf-8", newline="\n") as file:
        file.write(HEAD)
        rows = csv.writer(file, lineterminator="\n")
        rows.writerows([("left_out", "stays"), *left_out.items()])


def vectors(features: np.ndarray, sentences: np.ndarray, image_of_text: np.ndarray
            ) -> tuple[np.ndarray, np.ndarray]:
    """Features (I, V, 1, D) and sentence vectors (T, E) as `near_duplicates` takes them."""
    looks = np.asarray(features, np.float32).mean(axis=(1, 2))
    said = np.zeros((len(looks), sentences.shape[1]), np.float32)
    unit = sentences / np.linalg.norm(sentences, axis=1, keepdims=True)
    np.add.at(said, image_of_text, unit)
    said /= np.bincount(image_of_text)[:, None]
    return looks / np.linalg.norm(looks, axis=1, keepdims=True), said


def main(arguments: Sequence[str]) -> None:
    """Encode, or read what is encoded; find; write."""
    dataset = load_dataset("flickr8k", *arguments)
    data = encode_dataset(dataset, "lite0:pooled:flip", tokens=None, label_vectors=("minilm",))
    train = data.splits["train"]
    found = near_duplicates(dataset.splits["train"].image_ids, *vectors(
        train.regions, train.label_vectors["minilm"], train.image_of_text))
    write(found)
    print(f"{len(found)} images left out")


if __name__ == "__main__":
    main(sys.argv[1:])
