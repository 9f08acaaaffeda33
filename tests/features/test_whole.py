"""A part of a data set: what is encoded is taken from the whole, what is fitted is fitted anew."""

from dataclasses import replace

import numpy as np
import pytest

from itr_study.data.base import Split
from itr_study.encoders import IMAGE_ENCODERS, TEXT_ENCODERS
from itr_study.features.dataset import encode_dataset
from tests.encoders.fakes import fake_dataset
from tests.features.fakes import Quarters, Tiny


class Lengths:
    """One number a text: how long it is."""

    name, version, settings, encoded = "lengths", 1, {}, 0
    threaded = False

    def __init__(self, device="cpu"):
        self.fitted = {}

    def fit(self, texts):
        return {}

    def load(self, fitted):
        self.fitted = fitted

    def encode(self, texts):
        type(self).encoded += len(texts)
        return np.array([[len(text)] for text in texts], np.float32)


class Fitted(Lengths):
    """One number a text: how many texts there are to train on."""

    name, encoded = "fitted", 0

    def fit(self, texts):
        self.fitted = {"count": np.array([len(texts)], np.float32)}
        return self.fitted

    def encode(self, texts):
        type(self).encoded += len(texts)
        return np.repeat(self.fitted["count"][None], len(texts), axis=0)


@pytest.fixture(autouse=True)
def encoders(monkeypatch):
    monkeypatch.setitem(IMAGE_ENCODERS, "tiny", Tiny)
    for encoder in (Lengths, Fitted):
        monkeypatch.setitem(TEXT_ENCODERS, encoder.name, encoder)
        monkeypatch.setattr(encoder, "encoded", 0)
    monkeypatch.setattr(Quarters, "calls", 0)


def without_second(dataset):
    """The data set without its second training picture and the texts of it."""
    train = dataset.splits["train"]
    stay = train.image_of_text != 1
    owners = train.image_of_text[stay]
    fewer = Split("train", (train.image_ids[0], *train.image_ids[2:]), *(
        tuple(np.array(of)[stay]) for of in (train.text_ids, train.texts)), owners - (owners > 1))
    return replace(dataset, splits=dataset.splits | {"train": fewer}, part_of=dataset,
                   fingerprint="fewer", content="fewer")


def test_no_picture_and_no_text_is_encoded_twice(tmp_path):
    ask, dataset = {"images": "tiny:grid:flip", "sentences": "lengths",
                    "store": tmp_path}, fake_dataset()
    whole, calls = encode_dataset(dataset, **ask), (Quarters.calls, Lengths.encoded)
    part = encode_dataset(without_second(dataset), **ask)
    assert (Quarters.calls, Lengths.encoded) == calls and calls[0] and calls[1]
    assert part.key != whole.key
    stay = whole.splits["train"].image_of_text != 1
    np.testing.assert_array_equal(part.splits["train"].regions,
                                  np.delete(whole.splits["train"].regions, 1, axis=0))
    np.testing.assert_array_equal(part.splits["train"].sentences,
                                  whole.splits["train"].sentences[stay])
    for name in ("dev", "test"):
        np.testing.assert_array_equal(part.splits[name].regions, whole.splits[name].regions)
        np.testing.assert_array_equal(part.splits[name].sentences, whole.splits[name].sentences)


def test_what_is_fitted_on_fewer_texts_is_encoded_again(tmp_path):
    ask, dataset = {"sentences": "fitted", "images": "tiny:pooled:one", "store": tmp_path}, \
        fake_dataset()
    whole = encode_dataset(dataset, **ask)
    for _ in range(2):  # fitted now, and loaded from its file
        part = encode_dataset(without_second(dataset), **ask)
        fewer, more = (len(data.splits["train"].texts) for data in (
            without_second(dataset), dataset))
        assert fewer < more
        for name in ("train", "dev", "test"):
            assert (part.splits[name].sentences == fewer).all()
            assert (whole.splits[name].sentences == more).all()


def test_a_part_that_is_asked_for_alone_has_its_whole_encoded_once(tmp_path):
    ask, dataset = {"images": "tiny:pooled:one", "store": tmp_path}, fake_dataset()
    encode_dataset(without_second(dataset), **ask)
    calls = Quarters.calls
    encode_dataset(dataset, **ask)
    encode_dataset(without_second(dataset), **ask)
    assert Quarters.calls == calls > 0


def test_a_finished_cache_needs_no_whole(tmp_path):
    part, store = without_second(fake_dataset()), tmp_path / "store"
    encode_dataset(part, "tiny:pooled:one", store=store)
    encode_dataset(part.part_of, "tiny:pooled:one", store=tmp_path / "whole")
    for path in (tmp_path / "whole").iterdir():
        (store / path.name).unlink()
    calls = Quarters.calls
    encode_dataset(part, "tiny:pooled:one", store=store)
    assert Quarters.calls == calls > 0
