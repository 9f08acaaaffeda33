"""The trainable text encoders that models share: token ids to one vector per text."""

import torch
from torch import Tensor, nn

from itr_study.checks import check_choice
from itr_study.data.batches import InputSpec


def word_embedding(inputs: InputSpec, size: int) -> nn.Embedding:
    """Word vectors that learn: from the given ones where there are any, else uniform in ±0.1."""
    if not inputs.vocabulary:
        raise ValueError("this text encoder reads tokens, but the data has none; "
                         "set tokens='words' (or 'glove') in the run's config")
    if inputs.word_vectors is not None:
        return nn.Embedding.from_pretrained(inputs.word_vectors.clone(), freeze=False,
                                            padding_idx=0)
    words = nn.Embedding(inputs.vocabulary, size, padding_idx=0)
    with torch.no_grad():
        words.weight[1:].uniform_(-0.1, 0.1)
    return words


class RecurrentText(nn.Module):
    """GRU over word vectors; the text is its last state.

    Args:    inputs: vocabulary and given word vectors; size: of the state; word_size: of learnt
             word vectors (given ones keep their own size); bidirectional: mean of the last
             states of both directions; dropout: on the word vectors, in training.
    Shape:   tokens (T, W) padded with 0, lengths (T,) -> (T, size), not normalised. The result
             does not depend on the padding: the state is read at the last word.
    Source:  VSE++ (Faghri et al., BMVC 2018), §4.1: word vectors 300, GRU 1024.
    """

    def __init__(self, inputs: InputSpec, size: int, word_size: int = 300,
                 bidirectional: bool = False, dropout: float = 0.0):
        super().__init__()
        self.words = word_embedding(inputs, word_size)
        self.dropout = nn.Dropout(dropout)
        self.gru = nn.GRU(self.words.embedding_dim, size, batch_first=True,
                          bidirectional=bidirectional)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        # Padded, not packed: batches hold captions of like length, so that padding costs little.
        # Packing costs a third of a small GRU's step, and stops the device, which must tell the
        # host the lengths. Rows say which: arithmetic.SEQUENCES.
        words = self.dropout(self.words(tokens))  # (T, W, D)
        if not self.gru.bidirectional:
            return at(lengths - 1, self.gru(words)[0])
        onward, back = self.gru.all_weights
        turned = at(from_the_end(lengths, words.shape[1]), words)
        return (at(lengths - 1, run_gru(words, onward, self.gru.hidden_size))
                + at(lengths - 1, run_gru(turned, back, self.gru.hidden_size))) / 2


def run_gru(words: Tensor, weights: list[Tensor], size: int) -> Tensor:
    """(T, W, size) states of one direction from left to right, from a first state of 0."""
    first = words.new_zeros(1, len(words), size)
    return torch.gru(words, first, weights, has_biases=True, num_layers=1, dropout=0.0,
                     train=False, bidirectional=False, batch_first=True)[0]


def from_the_end(lengths: Tensor, width: int) -> Tensor:
    """(T, W) places that read each text from its last word to its first; 0 beyond."""
    return (lengths[:, None] - 1 - torch.arange(width, device=lengths.device)).clamp(min=0)


def at(places: Tensor, states: Tensor) -> Tensor:
    """States (T, W, D) at places (T,) or (T, P) of each text: (T, D) or (T, P, D)."""
    rows = torch.arange(len(states), device=states.device)
    return states[rows.view(-1, *[1] * (places.ndim - 1)), places]


def gru(inputs: InputSpec, size: int, word_size: int, dropout: float) -> nn.Module:
    """One direction, last state."""
    return RecurrentText(inputs, size, word_size, bidirectional=False, dropout=dropout)


def bigru(inputs: InputSpec, size: int, word_size: int, dropout: float) -> nn.Module:
    """Both directions, mean of the last states."""
    return RecurrentText(inputs, size, word_size, bidirectional=True, dropout=dropout)


class WordPieceText(nn.Module):
    """A pretrained transformer, fine-tuned: mean of its word-piece states, then a linear map.

    Shape:   tokens (T, W) word-piece ids padded with 0, lengths (T,) -> (T, size).
    Source:  Sentence-BERT (Reimers and Gurevych, EMNLP 2019) pools by the mean.
    """

    def __init__(self, transformer: nn.Module, transformer_size: int, size: int, dropout: float):
        super().__init__()
        self.transformer = transformer
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(transformer_size, size)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        states = self.transformer(tokens, lengths)  # (T, W, D)
        kept = torch.arange(tokens.shape[1], device=tokens.device)[None, :] < lengths[:, None]
        kept = kept.unsqueeze(-1).to(states.dtype)  # (T, W, 1)
        return self.linear(self.dropout((states * kept).sum(dim=1) / kept.sum(dim=1)))


def minilm(inputs: InputSpec, size: int, word_size: int, dropout: float) -> nn.Module:
    """all-MiniLM-L6-v2 fine-tuned; its captions-trained start is a leak the tables name.

    Its word vectors stay as they are: half of its parameters, most of them of rare words.
    """
    from itr_study.encoders.wordpiece import trainable_text_encoder

    text = trainable_text_encoder("minilm")
    text.transformer.embeddings.requires_grad_(False)
    return WordPieceText(text, text.width, size, dropout)


TEXTS = {"gru": gru, "bigru": bigru, "minilm": minilm}


def build_text(kind: str, inputs: InputSpec, size: int, word_size: int,
               dropout: float) -> nn.Module:
    """The text encoder of that name, (tokens (T, W), lengths (T,)) -> (T, size)."""
    check_choice("text", kind, TEXTS)
    return TEXTS[kind](inputs, size, word_size, dropout)
