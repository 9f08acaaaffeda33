"""Frozen sentence vectors of a small transformer."""

import numpy as np
import torch

from itr_study.encoders.weights import minilm_folder, without_bar

BATCH = 256  # texts a step; the library sorts them by length


class MiniLM:
    """all-MiniLM-L6-v2: unit vectors (T, 384) of whole texts.

    Raises:  WeightsError with the pip command where the package is missing.
    Source:  Reimers & Gurevych, Sentence-BERT, EMNLP 2019; the model's card.
    Differs: trained on caption pairs of COCO and Flickr30k, and Flickr30k contains Flickr8k, test
             captions included: results with it stand apart from results without (`seen`).
    """

    name, version = "minilm", 1

    def __init__(self, device: torch.device | str = "cpu") -> None:
        self.settings = {"precision": "float32", "max_tokens": 256}
        self.device, self._model = str(device), None

    def fit(self, texts: list[str]) -> dict[str, np.ndarray]:
        """Nothing is learnt from the training texts."""
        return {}

    def load(self, fitted: dict[str, np.ndarray]) -> None:
        """Nothing to take."""

    def unknown(self, words: list[str]) -> list[str]:
        """None: every word is read in pieces."""
        return []

    def encode(self, texts: list[str]) -> np.ndarray:
        """(T, 384) float32, each of length 1."""
        if self._model is None:
            from sentence_transformers import SentenceTransformer

            with without_bar():
                self._model = SentenceTransformer(str(minilm_folder()), device=self.device,
                                                  local_files_only=True)
        vectors = self._model.encode(texts, batch_size=BATCH, normalize_embeddings=True,
                                     convert_to_numpy=True, show_progress_bar=False)
        return np.asarray(vectors, np.float32)
