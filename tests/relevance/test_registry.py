"""What every label source must do, on training batches, on rectangular ones, on whole splits."""

import shutil

import numpy as np
import pytest
import torch

from itr_study.data.batches import Batch, EncodedSplit
from itr_study.encoders.ngrams import Ngrams
from itr_study.relevance import RELEVANCE

FLOOR = {"binary": 0, "unit": 0, "cosine": -1}
TEXTS = ("a dog runs", "the dog runs on grass", "a red car", "a car", "a dog runs", "two men sit",
         "men sit on grass", "", "two old men")
JAVA = ("meteor", "spice")


def small_split(**parts):
    """Four images, nine texts, graded relevance that is 1 for some pairs that do not match."""
    rng = np.random.default_rng(0)
    owner = np.array([0, 0, 1, 1, 1, 2, 3, 3, 2])
    graded = rng.random((4, 9))
    graded[0, 6] = 1
    vectors = rng.normal(size=(9, 384)).astype(np.float32)
    vectors[4] = vectors[0]  # the same caption for two images
    label_vectors = {"minilm": vectors, "cider": Ngrams().fit(TEXTS, owner).encode(TEXTS),
                     "texts": np.array(TEXTS, object)}
    return EncodedSplit("train", owner, np.zeros((4, 1, 1, 2), np.float32), relevance=graded,
                        **{"label_vectors": label_vectors} | parts)


def batches(split):
    """A training batch with an image drawn twice, and one of pairs without repetition."""
    return [split.pair_batch(np.array([6, 0, 1, 8])), split.pair_batch(np.array([2, 5]))]


def rectangle(images, texts, split):
    """A batch of these images and texts that are no pairs."""
    texts = torch.as_tensor(texts)
    return Batch(image_ids=torch.as_tensor(images), text_ids=texts,
                 text_images=torch.as_tensor(split.image_of_text)[texts])


class OverlapTool:
    """Stands in for a Java scorer: the share of words in common, NaN for none at all."""

    def compute_score(self, gts, res):
        scores = []
        for number, (reference,) in gts.items():
            (candidate,) = res[number]
            a, b = set(reference.split()), set(candidate.split())
            scores.append(len(a & b) / len(a | b))
        return float(np.mean(scores)), [self.said(score) for score in scores]

    def said(self, score):
        return score


class OverlapSpice(OverlapTool):
    def said(self, score):
        return {"All": {"f": score or float("nan")}}


@pytest.fixture(params=RELEVANCE)
def made(request, tmp_path, monkeypatch):
    """A source of each name with what it needs, and the names of its variants."""
    name = request.param
    arguments = {}
    if name in ("clip", "features"):
        rng = np.random.default_rng(0)
        np.save(tmp_path / "train_images.npy", rng.normal(size=(4, 5)).astype(np.float16))
        np.save(tmp_path / "train_texts.npy", rng.normal(size=(9, 5)).astype(np.float32))
        arguments = {"folder": str(tmp_path)}
    source = RELEVANCE[name](**arguments)
    if name in JAVA:
        tool = OverlapSpice() if name == "spice" else OverlapTool()
        monkeypatch.setattr(type(source), "start", lambda self: tool)
        monkeypatch.setattr("itr_study.relevance.meteor.required_package", lambda *a: None)
        monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/java")
    return source


def test_source_tells_what_it_is(made):
    assert RELEVANCE[made.name] is type(made) and type(made.version) is int
    assert made.scale in FLOOR and isinstance(made.vectors_needed, tuple)


def test_one_for_matches_and_only_for_them(made):
    split = small_split()
    for batch in batches(split):
        relevance = made(batch, split)
        assert relevance.shape == batch.match.shape and relevance.dtype == torch.float32
        assert (relevance[batch.match] == 1).all()
        rest = relevance[~batch.match]
        assert (rest <= 1 - 1e-4).all() and (rest >= FLOOR[made.scale]).all()


def test_a_block_of_the_split_says_what_a_batch_says(made):
    split = small_split()
    whole = made.block(split, slice(0, 4))
    assert whole.dtype == np.float32 and whole.shape == (4, 9)
    np.testing.assert_array_equal(made.block(split, slice(1, 3)), whole[1:3])
    assert np.concatenate([made.block(split, slice(i, i + 1)) for i in range(4)]) == \
        pytest.approx(whole, abs=1e-6)
    images, texts = [3, 0, 3, 1], [8, 2, 2, 4, 0]
    batch = made(rectangle(images, texts, split), split).numpy()
    assert batch == pytest.approx(whole[np.ix_(images, texts)], abs=1e-6)
    for pairs in batches(split):
        expected = whole[np.ix_(pairs.image_ids.numpy(), pairs.text_ids.numpy())]
        assert made(pairs, split).numpy() == pytest.approx(expected, abs=1e-6)


def test_what_is_needed_and_absent_is_named(made):
    split = small_split(label_vectors={})
    for label in made.vectors_needed:
        with pytest.raises(ValueError, match=rf"label_vectors=\('{label}',\)"):
            made(batches(split)[0], split)
        with pytest.raises(ValueError, match=rf"label_vectors=\('{label}',\)"):
            made.block(split, slice(0, 1))


def test_labels_of_other_texts_are_refused(made):
    split = small_split()
    for label in made.vectors_needed:
        fewer = {label: split.label_vectors[label][np.arange(8)]}
        with pytest.raises(ValueError, match="row for each of the 9 texts.*got 8"):
            made(batches(split)[0], small_split(label_vectors=fewer))
        wrong = {label: list(range(9))}
        with pytest.raises(ValueError, match=f'split.label_vectors."{label}"'):
            made(batches(split)[0], small_split(label_vectors=wrong))
