"""Frozen sentence vectors of a small transformer."""

import threading
from typing import TYPE_CHECKING

import numpy as np
import torch

from itr_study.encoders.weights import minilm_folder, without_bar

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

BATCH = 256  # texts a step; the library sorts them by length
LOADING = threading.Lock()  # libraries set switches of the whole process while they load


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
        self.device = str(device)
        self.threaded = torch.device(device).type == "cpu"
        self._model: SentenceTransformer | None = None

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
        with LOADING:
            if self._model is None:
                self._model = self._load()
        vectors = self._model.encode(texts, batch_size=BATCH, normalize_embeddings=True,
                                     convert_to_numpy=True, show_progress_bar=False)
        return np.asarray(vectors, np.float32)

    def _load(self) -> "SentenceTransformer":
        from sentence_transformers import SentenceTransformer

        with without_bar():
            return SentenceTransformer(str(minilm_folder()), device=self.device,
                                       local_files_only=True)
