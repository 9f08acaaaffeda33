"""Vectors of loose captions: computed once, and anew where texts or the fit differ."""

import time

import numpy as np
import pytest

from itr_study.features.texts import caption_key, caption_vectors

TEXTS = ["a dog runs", "two cats", "a dog runs", "nobody"]


class Lengths:
    """Numbers that tell texts apart; learns one number from the training texts."""

    name, version, threaded = "lengths", 1, False

    def __init__(self):
        self.settings, self.encoded, self.fits, self.shift = {"kind": "none"}, [], 0, 0.0

    def fit(self, texts):
        self.fits += 1
        self.shift = float(len(texts))
        return {"shift": np.array([self.shift])} if texts else {}

    def load(self, fitted):
        self.shift = float(fitted["shift"][0])

    def encode(self, texts):
        self.encoded += texts
        return np.array([[len(text) + self.shift, text.count("a")] for text in texts], np.float32)


def test_vectors_are_computed_once_and_then_read(tmp_path):
    encoder = Lengths()
    first = caption_vectors(TEXTS, encoder, "some captions", folder=tmp_path)
    assert first.dtype == np.float32
    np.testing.assert_array_equal(first, Lengths().encode(TEXTS))
    again = Lengths()
    np.testing.assert_array_equal(caption_vectors(tuple(TEXTS), again, "some captions",
                                                  folder=tmp_path), first)
    assert not again.encoded
    assert [path.name for path in tmp_path.glob("some-captions-lengths-*.npy")]


def test_other_texts_another_order_and_another_fit_are_computed_anew(tmp_path):
    known = caption_key(TEXTS, Lengths(), "x").digest
    for texts, train in ((TEXTS[:3], ()), (TEXTS[::-1], ()), (TEXTS, ("fitted",))):
        assert caption_key(texts, Lengths(), "x", train).digest != known
    fitted = caption_vectors(TEXTS, Lengths(), "x", ["one", "two"], tmp_path)
    np.testing.assert_array_equal(fitted[:, 0], [len(text) + 2 for text in TEXTS])
    again = Lengths()
    caption_vectors(TEXTS, again, "x", ["one", "two"], tmp_path)
    assert not again.fits and not again.encoded and again.shift == 2


class Waits(Lengths):
    """Counts how many threads encode at once; each waits a little for another one to come."""

    def __init__(self, threaded):
        super().__init__()
        self.threaded, self.inside, self.most = threaded, 0, 0

    def encode(self, texts):
        self.inside += 1
        self.most = max(self.most, self.inside)
        time.sleep(0.2)
        self.inside -= 1
        return super().encode(texts)


@pytest.mark.parametrize("threaded", [True, False])
def test_blocks_are_encoded_side_by_side_where_the_encoder_bears_it(tmp_path, monkeypatch,
                                                                    threaded):
    encoder = Waits(threaded)
    monkeypatch.setattr("itr_study.features.texts.cores", lambda: 2)
    monkeypatch.setattr("itr_study.features.texts.BLOCK", 2)
    vectors = caption_vectors(TEXTS, encoder, "x", folder=tmp_path)
    np.testing.assert_array_equal(vectors, Lengths().encode(TEXTS))
    assert encoder.most == (2 if threaded else 1)


def test_no_texts_are_refused(tmp_path):
    with pytest.raises(ValueError, match="nothing to encode"):
        caption_vectors([], Lengths(), "none", folder=tmp_path)
