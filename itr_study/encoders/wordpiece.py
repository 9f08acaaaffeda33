"""Token ids of a pretrained transformer, and the transformer itself for fine-tuning."""

import numpy as np
import torch
from torch import Tensor, nn

from itr_study.checks import check_choice
from itr_study.encoders.weights import minilm_folder, without_bar

MAX_TOKENS = 64  # Flickr8k's longest caption has 44
TRANSFORMERS = {"minilm": minilm_folder}


class WordPieces:
    """Texts to token ids of a transformer, its start and end tokens included; id 0 = padding.

    Args:    name: "minilm". A text longer than 64 tokens is cut.
    """

    version = 1

    def __init__(self, name: str = "minilm") -> None:
        from transformers import AutoTokenizer

        check_choice("wordpiece", name, TRANSFORMERS)
        self.name, self.settings = f"wordpiece:{name}", {"max_tokens": MAX_TOKENS}
        folder = str(TRANSFORMERS[name]())
        self._tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        pieces = self._tokenizer.get_vocab()
        self.words = tuple(sorted(pieces, key=pieces.get))  # by id

    def __len__(self) -> int:
        return len(self.words)

    def unknown(self, words: list[str]) -> list[str]:
        """None: every word is read in pieces."""
        return []

    def encode(self, text: str) -> np.ndarray:
        """(W,) int64 token ids."""
        ids = self._tokenizer(text, truncation=True, max_length=MAX_TOKENS)["input_ids"]
        return np.asarray(ids, np.int64)


class TrainableText(nn.Module):
    """A transformer that gives one vector a token.

    Shape:   tokens (T, W) int64 padded with 0, lengths (T,) -> (T, W, D); rows past a text's
             length are 0.
    """

    def __init__(self, transformer: nn.Module) -> None:
        super().__init__()
        self.transformer = transformer
        self.width = transformer.config.hidden_size

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        mask = places < lengths[:, None]  # (T, W)
        states = self.transformer(input_ids=tokens, attention_mask=mask.long()).last_hidden_state
        return states * mask[:, :, None]


def trainable_text_encoder(name: str = "minilm") -> TrainableText:
    """The pretrained transformer with gradients, for tokens of `tokens="wordpiece:<name>"`.

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
