"""A small pretrained transformer: sentence vectors, token ids, and itself for fine-tuning."""

import threading
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING
from unicodedata import normalize

import numpy as np
import torch
from torch import Tensor, nn

from itr_study.checks import check_choice
from itr_study.data.vocabulary import TextReader
from itr_study.encoders.base import TextEncoder
from itr_study.encoders.weights import minilm_folder, without_bar

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer

BATCH = 256  # texts a step; the library sorts them by length
LOADING = threading.Lock()  # libraries set switches of the whole process while they load
HEADS = 4  # of the small transformer
MAX_TOKENS = 64  # Flickr8k's longest caption has 44
LONGEST_WORD = 100  # letters: a longer one is one unknown piece
TRANSFORMERS = {"minilm": minilm_folder}


@cache
def _tokenizer(name: str) -> "Tokenizer":
    """Load the tokenizer of a transformer; it neither cuts nor pads."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(TRANSFORMERS[name]() / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


class PieceReader(TextReader):
    """What reads pieces of words, `settings["max_tokens"]` with those of start and end."""

    transformer = "minilm"
    settings: dict

    def _unknown(self, words: set[str]) -> set[str]:
        """Those of which more than half is unknown pieces; all ASCII letters are pieces."""
        return {word for word in words if not word.isascii() or len(word) > LONGEST_WORD
                if 2 * (pieces := self._pieces(word)).count("[UNK]") >= len(pieces) - 1}

    def _cuts(self, texts: Sequence[str]) -> list[int]:
        """The limit for each text of more pieces, none of which is less than a letter or a mark."""
        most = self.settings["max_tokens"]
        return [most * (len(normalize("NFD", text)) > most - 2 and len(self._pieces(text)) > most)
                for text in texts]

    def _pieces(self, text: str) -> list[str]:
        return _tokenizer(self.transformer).encode(text).tokens


class MiniLM(PieceReader, TextEncoder):
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
        self._model: SentenceTransformer | None = None  # loaded when the first text comes

    def encode(self, texts: list[str]) -> np.ndarray:
        """Encode texts, (T, 384) float32, each of length 1."""
        with LOADING:
            if self._model is None:
                from sentence_transformers import SentenceTransformer

                with without_bar():
                    self._model = SentenceTransformer(str(minilm_folder()), device=self.device,
                                                      local_files_only=True)
        vectors = self._model.encode(texts, batch_size=BATCH, normalize_embeddings=True,
                                     convert_to_numpy=True, show_progress_bar=False)
        return np.asarray(vectors, np.float32)


class WordPieces(PieceReader):
    """Texts to token ids of a transformer, its start and end tokens included; id 0 = padding.

    Args:    name: "minilm". A text longer than 64 tokens is cut.
    """

    version = 1

    def __init__(self, name: str = "minilm") -> None:
        check_choice("wordpiece", name, TRANSFORMERS)
        self.name, self.transformer = f"wordpiece:{name}", name
        self.settings = {"max_tokens": MAX_TOKENS}
        pieces = _tokenizer(name).get_vocab()
        self.words = tuple(sorted(pieces, key=pieces.get))  # by id

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, text: str) -> np.ndarray:
        """Read a text as token ids (W,) int64."""
        ids = _tokenizer(self.transformer).encode(text).ids
        return np.array([*ids[:MAX_TOKENS - 1], ids[-1]] if len(ids) > MAX_TOKENS else ids)


class TrainableText(nn.Module):
    """A transformer that gives one vector a token.

    Shape:   tokens (T, W) int64 padded with 0, lengths (T,) -> (T, W, D); rows past a text's
             length are 0.
    """

    def __init__(self, transformer: nn.Module) -> None:
        super().__init__()
        self.transformer = transformer
        self.width = transformer.config.hidden_size
        self.fixed: list[nn.Module] = []

    def learn(self, last: int) -> None:
        """Let only the last layers learn; what is below them has neither gradient nor dropout.

        Raises: ValueError: more layers than there are.
        """
        layers = self.transformer.encoder.layer
        if last > len(layers):
            raise ValueError(f"tuned must be at most {len(layers)}, the layers of this "
                             f"transformer, got {last}")
        self.fixed = [self.transformer.embeddings, *layers[:len(layers) - last]]
        for part in self.fixed:
            part.requires_grad_(False)

    def train(self, mode: bool = True) -> "TrainableText":
        """Set the mode of training; what stays as it is computes the same in both."""
        super().train(mode)
        for part in self.fixed:
            part.eval()
        return self

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Compute (T, W, D)."""
        most = self.transformer.config.max_position_embeddings
        tokens, lengths = tokens[:, :most], lengths.clamp(max=most)
        places = torch.arange(tokens.shape[1], device=tokens.device)
        mask = places < lengths[:, None]  # (T, W)
        states = self.transformer(input_ids=tokens, attention_mask=mask.long()).last_hidden_state
        return states * mask[:, :, None]


def trainable_text_encoder(name: str = "minilm") -> TrainableText:
    """Load a transformer with gradients, for tokens of `tokens="wordpiece:<name>"`.

    Shape:   (tokens (T, W), lengths (T,)) -> (T, W, 384) for "minilm".
    Raises:  ValueError for an unknown name; WeightsError where the package is missing.
    """
    from transformers import AutoModel

    check_choice("trainable text encoder", name, TRANSFORMERS)
    folder = str(TRANSFORMERS[name]())
    with without_bar():
        model = AutoModel.from_pretrained(folder, local_files_only=True, use_safetensors=True,
                                          add_pooling_layer=False)
    return TrainableText(model)


def small_transformer(words: int, width: int) -> TrainableText:
    """Make a transformer of two layers with random weights over word ids, 0 for padding.

    Args: words: ids that there are; width: numbers a word, a multiple of 4 (heads).
    Shape: (tokens (T, W), lengths (T,)) -> (T, W, width).
    """
    from transformers import BertConfig, BertModel

    if width % HEADS:
        raise ValueError(f"word_size must be a multiple of {HEADS}, the heads of text="
                         f"'transformer', got {width}")
    config = BertConfig(vocab_size=words, hidden_size=width, num_hidden_layers=2,
                        num_attention_heads=HEADS, intermediate_size=4 * width)
    return TrainableText(BertModel(config, add_pooling_layer=False))
