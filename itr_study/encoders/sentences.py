"""A small pretrained transformer: sentence vectors, token ids, and itself for fine-tuning."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, NamedTuple
from unicodedata import normalize

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from itr_study.checks import check_choice
from itr_study.data.batches import pad
from itr_study.data.vocabulary import TextReader
from itr_study.encoders.base import TextEncoder, WeightsError
from itr_study.encoders.weights import (
    fingerprint_of_weights,
    loaded,
    loaded_model,
    minilm_folder,
    without_bar,
)

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

BATCH = 256  # texts a step; the library sorts them by length
LOADING = threading.Lock()  # libraries set switches of the whole process while they load
HEADS = 4  # of the small transformer
MAX_TOKENS = 64  # Flickr8k's longest caption has 44
KEPT = 2**28  # numbers, 1 GiB
LONGEST_WORD = 100  # letters: a longer one is one unknown piece
TRANSFORMERS = {"minilm": minilm_folder}
CLIP = "clip:"  # before the folder of a CLIP, SigLIP or the like


class Tokenizer(NamedTuple):
    """What reads a text as ids, neither cut nor padded, and `most`, those that a model takes."""

    ids: Callable[[str], list[int]]
    vocabulary: dict[str, int]
    unknown: int | None
    most: int = MAX_TOKENS
    padding: int = 0


@cache
def _tokenizer(name: str) -> Tokenizer:
    """Load the tokenizer of a transformer."""
    if name.startswith(CLIP):
        folder = name.removeprefix(CLIP)
        found = loaded(folder, lambda transformers: transformers.AutoTokenizer)
        model = loaded(folder, lambda transformers: transformers.AutoConfig)
        model, pieces = model.get_text_config(), found.get_vocab()
        if not model.vocab_size / 2 <= len(pieces) <= model.vocab_size:
            raise WeightsError(f"{name} has a tokenizer of {len(pieces)} pieces of words, a model "
                               f"of {model.vocab_size}; put the model's tokenizer files beside it")
        most = min(found.model_max_length, model.max_position_embeddings)
        return Tokenizer(lambda text: found(text, verbose=False).input_ids, pieces,
                         found.unk_token_id, most, found.pad_token_id or 0)
    from tokenizers import Tokenizer as Loaded

    found = Loaded.from_file(str(TRANSFORMERS[name]() / "tokenizer.json"))
    found.no_truncation()
    found.no_padding()
    return Tokenizer(lambda text: found.encode(text).ids, found.get_vocab(),
                     found.token_to_id("[UNK]"))


class PieceReader(TextReader):
    """What reads pieces of words, `settings["max_tokens"]` with those of start and end."""

    transformer = "minilm"
    settings: dict

    def _unknown(self, words: set[str]) -> set[str]:
        """Those of which more than half is unknown pieces; all ASCII letters are pieces."""
        return {word for word in words if not word.isascii() or len(word) > LONGEST_WORD
                if 2 * (ids := _tokenizer(self.transformer).ids(word)[:-1]).count(
                    _tokenizer(self.transformer).unknown) >= len(ids)}

    def _cuts(self, texts: Sequence[str]) -> list[int]:
        """The limit for each text of more pieces, none of which is less than a byte."""
        most = self.settings["max_tokens"]
        return [most * (len(normalize("NFD", text).encode()) > most - 2
                        and len(_tokenizer(self.transformer).ids(text)) > most) for text in texts]

    def read(self, text: str) -> np.ndarray:
        """Read a text as token ids (W,) int64; the last is the end, cut or not."""
        ids, most = _tokenizer(self.transformer).ids(text), self.settings["max_tokens"]
        return np.array([*ids[:most - 1], ids[-1]] if len(ids) > most else ids)


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

    Args:    name: "minilm", which cuts a text after 64 tokens, or "clip:<folder>", after
             the places that the model has.
    """

    version = 1

    def __init__(self, name: str = "minilm") -> None:
        if not name.startswith(CLIP):
            check_choice("wordpiece", name, [*TRANSFORMERS, f"{CLIP}<folder>"])
        self.name, self.transformer = f"wordpiece:{name}", name
        _, pieces, _, most, _ = _tokenizer(name)
        self.settings = {"max_tokens": most}
        self.words = tuple(sorted(pieces, key=pieces.get))  # by id

    def __len__(self) -> int:
        return len(self.words)

    encode = PieceReader.read


class TrainableText(nn.Module):
    """A transformer that gives one vector a token, or the text tower of a CLIP or the like.

    Args:    read: of a tower, which pools and projects as it was trained. SigLIP reads the last
             place, be it padding, so that its texts are padded to all places.
    Shape:   tokens (T, W) int64 padded with 0, lengths (T,) -> (T, W, D); rows past a text's
             length are 0. Of a tower (T, D), each of length 1.
    """

    def __init__(self, transformer: nn.Module, read: Tokenizer | None = None) -> None:
        super().__init__()
        self.transformer, self.tower = transformer, read is not None
        self.fixed: list[nn.Module] = []
        self.texts: Sequence[np.ndarray] = ()  # whose states, of the fixed parts, are kept
        self.states: tuple[dict[bytes, int], Tensor] | None = None  # first place of each, (N, D)
        config = transformer.config.get_text_config()
        self.padding, self.most = 0, config.max_position_embeddings
        self.width, self.to_the_end = config.hidden_size, "siglip" in config.model_type
        if read is not None:
            self.most, self.padding, self.words = read.most, read.padding, len(read.vocabulary)
            with torch.inference_mode():
                self.width = self(torch.ones(1, 1, dtype=torch.int64), torch.ones(1)).shape[1]

    @property
    def embeddings(self) -> nn.Module:
        """The vectors of words and of their places."""
        return next(part for name, part in self.transformer.named_modules()
                    if name.endswith("embeddings"))

    @property
    def layers(self) -> nn.ModuleList:
        """Its layers, the first first."""
        parts = self.transformer.modules()
        return next(part for part in parts if isinstance(part, nn.ModuleList))

    def learn(self, last: int) -> None:
        """Let only the last layers learn; what is below them has neither gradient nor dropout.

        Raises: ValueError: more layers than there are.
        """
        if last > len(self.layers):
            raise ValueError(f"tuned must be at most {len(self.layers)}, the layers of this "
                             f"transformer, got {last}")
        self.fixed = [self.embeddings, *self.layers[:len(self.layers) - last]]
        for part in self.fixed:
            part.requires_grad_(False)

    @contextmanager
    def keeping_fixed(self, texts: Sequence[np.ndarray]) -> Iterator[None]:
        """Compute what the fixed parts give once a text, not once an epoch, in training on a CPU.

        Not for a tower, and not for more than KEPT numbers. States of a text are those of one
        batch, whichever it is asked for in: a training that is resumed goes on with the same.
        """
        fits = self.fixed and not self.tower and self.width * sum(map(len, texts)) <= KEPT
        self.texts = texts if fits else ()
        try:
            yield
        finally:
            self.texts, self.states = (), None

    def _kept(self, tokens: Tensor, lengths: Tensor, mask: Tensor) -> Tensor | None:
        """Look up the states (T, W, D) of texts, None for others; the first call computes all."""
        if self.states is None:
            texts = sorted((np.asarray(one[:self.most], np.int64) for one in self.texts), key=len)
            places = np.cumsum([1, *map(len, texts)]).tolist()
            states = torch.zeros(places[-1], self.width)  # the first of padding
            with torch.no_grad(), passing([one for one in self.layers if one not in self.fixed]):
                for start in range(0, len(texts), BATCH):
                    ids, counts = pad(texts[start:start + BATCH])
                    here = torch.arange(ids.shape[1]) < counts[:, None]
                    found = self.transformer(input_ids=ids, attention_mask=here.long())
                    states[places[start]:][:here.sum()] = found.last_hidden_state[here]
            self.states = dict(zip([one.tobytes() for one in texts], places, strict=False)), states
        rows = zip(tokens.numpy(), lengths.tolist(), strict=True)
        places = [self.states[0].get(row[:length].tobytes(), 0) for row, length in rows]
        columns = torch.arange(tokens.shape[1])
        return self.states[1][(torch.tensor(places)[:, None] + columns) * mask] \
            if all(places) else None

    def train(self, mode: bool = True) -> "TrainableText":
        """Set the mode of training; what stays as it is computes the same in both."""
        super().train(mode)
        for part in self.fixed:
            part.eval()
        return self

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Compute (T, W, D), or (T, D)."""
        tokens, lengths = tokens[:, :self.most], lengths.clamp(max=self.most)
        if self.to_the_end:
            tokens = functional.pad(tokens, (0, self.most - tokens.shape[1]))
        places = torch.arange(tokens.shape[1], device=tokens.device)
        mask = places < lengths[:, None]  # (T, W)
        looked_up = self.training and len(self.texts) and tokens.device.type == "cpu"
        states = self._kept(tokens, lengths, mask) if looked_up else None
        with passing(self.fixed if states is not None else (), states):
            output = self.transformer(input_ids=tokens.where(mask, self.padding),
                                      attention_mask=None if self.to_the_end else mask.long())
        if self.tower:
            return functional.normalize(output.pooler_output.float(), dim=1)
        return output.last_hidden_state * mask[:, :, None]


@contextmanager
def passing(parts: Sequence[nn.Module] = (), states: Tensor | None = None) -> Iterator[None]:
    """Skip parts: each gives what it is given, or the states."""
    own = [vars(part).get("forward") for part in parts]  # a hook of others may have put one there
    for part in parts:
        part.forward = lambda given=None, *_, **__: given if states is None else states
    try:
        yield
    finally:
        for part, former in zip(parts, own, strict=True):
            del part.forward
            if former is not None:
                part.forward = former


class ClipSentences(PieceReader, TextEncoder):
    """Own vectors (T, D) of a CLIP, SigLIP or the like in a folder: projected, of length 1."""

    name, version = "clip", 1

    def __init__(self, device: torch.device | str = "cpu", folder: str = "") -> None:
        if not folder:
            raise ValueError('sentences="clip" needs the name of a folder: "clip:<folder>"')
        self.transformer, self.device, self._tower = CLIP + folder, device, None
        self.settings = {"max_tokens": _tokenizer(self.transformer).most,
                         "weights": fingerprint_of_weights(folder)}

    def encode(self, texts: list[str]) -> np.ndarray:
        """Encode texts, (T, D) float32, each of length 1."""
        with LOADING:
            tower = self._tower = self._tower or trainable_text_encoder(
                self.transformer).eval().to(self.device)
        parts = [pad([self.read(text) for text in texts[start:start + BATCH]])
                 for start in range(0, len(texts), BATCH)]
        with torch.inference_mode():
            return np.concatenate([tower(tokens.to(self.device), lengths.to(self.device)).cpu()
                                   for tokens, lengths in parts])


def trainable_text_encoder(name: str = "minilm") -> TrainableText:
    """Load a transformer with gradients, for tokens of `tokens="wordpiece:<name>"`.

    Shape:   (tokens (T, W), lengths (T,)) -> (T, W, 384) for "minilm", (T, D) for "clip:<folder>".
    Raises:  ValueError for an unknown name; WeightsError where the package is missing.
    """
    if name.startswith(CLIP):
        return TrainableText(loaded_model(name.removeprefix(CLIP), "text"), _tokenizer(name))
    check_choice("trainable text encoder", name, [*TRANSFORMERS, f"{CLIP}<folder>"])
    return TrainableText(loaded_model(str(TRANSFORMERS[name]()), add_pooling_layer=False))


def small_transformer(words: int, width: int) -> TrainableText:
    """Make a transformer of two layers with random weights over word ids, 0 for padding.

    It reads the first 512 words of a text.

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
