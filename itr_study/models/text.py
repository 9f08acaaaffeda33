"""Trainable text encoders that models share: token ids to one vector per text."""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from itr_study.checks import check_choice
from itr_study.data.batches import InputSpec
from itr_study.models.drop import drop_words


class GRU(nn.GRU):
    """torch's GRU of one layer over (N, P, width), read one direction at a time.

    One call for both would begin the second at the padding, and packed sequences, which would not,
    stop a card to tell the host their lengths.
    """

    def __init__(self, width: int, size: int, bidirectional: bool = False) -> None:
        super().__init__(width, size, batch_first=True, bidirectional=bidirectional)

    def flatten_parameters(self) -> None:
        """Lay the weights of each direction into one piece of memory.

        cuDNN would copy them there at every call. torch calls this when the net is made or moved.
        """
        all_of_them = self._flat_weights, self._flat_weights_names, self.bidirectional
        weights, names, both = all_of_them
        for start in range(0, len(weights), len(weights) // (1 + both)):
            part = slice(start, start + len(weights) // (1 + both))
            self._flat_weights, self._flat_weights_names = weights[part], names[part]
            self.bidirectional = False
            super().flatten_parameters()
        self._flat_weights, self._flat_weights_names, self.bidirectional = all_of_them

    def onward(self, steps: Tensor) -> Tensor:
        """Return states (N, P, D) from left to right, from a first state of 0."""
        return self._states(steps, self.all_weights[0])

    def back(self, steps: Tensor, lengths: Tensor) -> Tensor:
        """Return states (N, P, D) from each end: at place p that after the p + 1 last steps."""
        turned = at(from_the_end(lengths, steps.shape[1]), steps)
        return self._states(turned, self.all_weights[1])

    def _states(self, steps: Tensor, weights: Sequence[Tensor]) -> Tensor:
        """States of one direction, in float32 if bfloat16 is asked for on a card.

        cuDNN's autocast knows float16 alone, in which small gradients are 0. Not `self.training`:
        cuDNN keeps what a gradient needs only of a call that trains, and in evaluation one may be
        asked for, too.
        """
        kind = steps.device.type
        in_full = nullcontext() if kind == "cpu" else torch.autocast(kind, enabled=False)
        with in_full:
            steps = steps if kind == "cpu" else steps.to(weights[0].dtype)
            first = steps.new_zeros(1, len(steps), self.hidden_size)
            return torch.gru(steps, first, list(weights), has_biases=True, num_layers=1,
                             dropout=0.0, train=torch.is_grad_enabled(), bidirectional=False,
                             batch_first=True)[0]


def from_the_end(lengths: Tensor, width: int) -> Tensor:
    """Return places (N, P) that read each sequence from its last step to its first; 0 beyond."""
    return (lengths[:, None] - 1 - torch.arange(width, device=lengths.device)).clamp(min=0)


def existing(words: Tensor, lengths: Tensor) -> Tensor:
    """Return which of the places of words (T, W, ...) hold one, (T, W) bool."""
    return torch.arange(words.shape[1], device=words.device) < lengths[:, None]


def at(places: Tensor, states: Tensor) -> Tensor:
    """Return states (N, P, D) at places (N,) or (N, Q) of each sequence: (N, D) or (N, Q, D)."""
    rows = torch.arange(len(states), device=states.device)
    return states[rows.view(-1, *[1] * (places.ndim - 1)), places]


def check_tokens(inputs: InputSpec) -> None:
    """Raise ValueError for data without tokens."""
    if not inputs.vocabulary:
        raise ValueError("this text encoder reads tokens, but the data has none; "
                         "set tokens='words' (or 'glove') in the run's config")


def word_embedding(inputs: InputSpec, size: int) -> nn.Embedding:
    """Return word vectors that learn, from given ones if there are any, else random."""
    check_tokens(inputs)
    if inputs.word_vectors is not None:
        return nn.Embedding.from_pretrained(inputs.word_vectors.clone(), freeze=False,
                                            padding_idx=0)
    words = nn.Embedding(inputs.vocabulary, size, padding_idx=0)
    with torch.no_grad():
        words.weight[1:].uniform_(-0.1, 0.1)
    return words


class RecurrentText(nn.Module):
    """GRU over word vectors; the text is its last state, or a linear map of it.

    `state_size` is that of the state if a linear map follows it, with `hidden_dropout` on the
    state; None: the state is the result.

    Shape: tokens (T, W) padded with 0, lengths (T,) -> (T, size), not normalised, whatever the
        padding: the state is read at the last word.
    Source: VSE++ (Faghri et al., BMVC 2018), §4.1: word vectors 300, GRU 1024.
    """

    def __init__(self, inputs: InputSpec, size: int, word_size: int = 300,
                 bidirectional: bool = False, dropout: float = 0.0, word_dropout: float = 0.0,
                 state_size: int | None = None, hidden_dropout: float = 0.0) -> None:
        super().__init__()
        self.words = word_embedding(inputs, word_size)
        self.dropout = nn.Dropout(dropout)
        self.gru = GRU(self.words.embedding_dim, state_size or size, bidirectional)
        self.word_dropout = word_dropout
        self.head = nn.Identity() if state_size is None else nn.Sequential(
            nn.Dropout(hidden_dropout), nn.Linear(state_size, size))

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return the mapped last state."""
        return self.head(self.last(*self.read(tokens, lengths)))

    def read(self, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return word vectors (T, W, D) after dropout, and lengths; of words that are left."""
        if self.training and self.word_dropout:
            tokens, lengths = drop_words(tokens, lengths, self.word_dropout)
        return self.dropout(self.words(tokens)), lengths

    def last(self, words: Tensor, lengths: Tensor) -> Tensor:
        """Return the last state (T, state size), or the mean of those of both directions.

        Padded, not packed: batches hold captions of like length, so that padding costs little.
        Packing costs a third of a small GRU's step, and stops the device, which must tell the host
        the lengths. Rows say which: arithmetic.SEQUENCES.
        """
        last = at(lengths - 1, self.gru.onward(words))
        if not self.gru.bidirectional:
            return last
        return (last + at(lengths - 1, self.gru.back(words, lengths))) / 2

    def states(self, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return states at all words (T, W, D), the last (T, D), and which exist (T, W).

        Of both directions the means.
        """
        words, lengths = self.read(tokens, lengths)
        states, exists = self.gru.onward(words), existing(words, lengths)
        last = at(lengths - 1, states)
        if self.gru.bidirectional:
            back = self.gru.back(words, lengths)
            states = (states + at(from_the_end(lengths, words.shape[1]), back)) / 2
            last = (last + at(lengths - 1, back)) / 2
        return states, last, exists


class TransformerText(nn.Module):
    """A transformer: mean of its states, or its own pooling, then a linear map.

    Shape: tokens (T, W) ids padded with 0, lengths (T,) -> (T, size).
    Source: Sentence-BERT (Reimers and Gurevych, EMNLP 2019) pools by the mean.
    """

    def __init__(self, transformer: nn.Module, transformer_size: int, size: int,
                 dropout: float) -> None:
        super().__init__()
        self.transformer = transformer
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(transformer_size, size)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return the mapped mean state."""
        return self.linear(self.dropout(self.pooled(tokens, lengths)))

    def pooled(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return one vector of each text, (T, D)."""
        states = self.transformer(tokens, lengths)  # (T, W, D)
        if states.ndim == 2:  # it pools by itself
            return states
        kept = existing(states, lengths).unsqueeze(-1).to(states.dtype)  # (T, W, 1)
        return (states * kept).sum(dim=1) / kept.sum(dim=1)


RECURRENT = {"gru": False, "bigru": True}  # whether it reads both ways
TRANSFORMERS = ("minilm", "transformer", "clip:<folder>")


def build_recurrent(model: str, kind: str, inputs: InputSpec, size: int, word_size: int,
                    **more: Any) -> Any:
    """Build the recurrent text encoder of a model, which may add parts to it."""
    check_choice(f"text of {model}", kind, RECURRENT)
    return RecurrentText(inputs, size, word_size, RECURRENT[kind], **more)


def build_text(kind: str, inputs: InputSpec, size: int, word_size: int, dropout: float = 0.0,
               tuned: int | None = None, **more: Any) -> nn.Module:
    """Build the text encoder of that name, (tokens (T, W), lengths (T,)) -> (T, size).

    "minilm" is all-MiniLM-L6-v2 fine-tuned; it was trained on captions, which the tables say. Its
    word vectors stay as they are: half of its parameters, most of them of rare words.
    "transformer" has two layers with random weights. "clip:<folder>" is the text tower of a CLIP or
    the like; its word vectors stay, too. All have a `dropout` on the sentence, and no word_dropout
    or state_size. `tuned`: how many of their layers learn, from the last; None: all.
    """
    clip = str(kind).startswith("clip:")
    check_choice("text", "clip:<folder>" if clip else kind, [*RECURRENT, *TRANSFORMERS])
    if kind in RECURRENT:
        if tuned is not None:
            raise ValueError(f"tuned is for text = {', '.join(TRANSFORMERS)}; leave it out, or "
                             "choose one of these")
        return RecurrentText(inputs, size, word_size, RECURRENT[kind], dropout, **more)
    if more.get("word_dropout") or more.get("state_size") is not None:
        raise ValueError("word_dropout and text_size are for recurrent text encoders; leave them "
                         "out, or choose text='gru' or 'bigru'")
    from itr_study.encoders.sentences import small_transformer, trainable_text_encoder

    if clip or kind == "minilm":
        text: Any = trainable_text_encoder(kind)
        text.embeddings.requires_grad_(False)
        if clip and inputs.vocabulary != text.words:
            raise ValueError(f"text={kind!r} needs tokens='wordpiece:{kind}' in the run's config; "
                             "the data has other tokens, or none")
    else:
        check_tokens(inputs)
        text = small_transformer(inputs.vocabulary, word_size)
    if tuned is not None:
        text.learn(tuned)
    return TransformerText(text, text.width, size, dropout)
