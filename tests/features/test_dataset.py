"""encode_dataset: shapes, joins, tokens, keys, leakage, and what it refuses."""

import weakref
from dataclasses import replace

import numpy as np
import pytest
import torch

from itr_study.data.base import DataError, Judgements, Regions
from itr_study.data.caption_noise import with_caption_noise
from itr_study.encoders import IMAGE_ENCODERS, base
from itr_study.encoders.base import ImageNetwork
from itr_study.features.cache import cores
from itr_study.features.dataset import encode_dataset
from itr_study.models import MODELS
from tests.encoders.fakes import detector, fake_dataset, relevance


class CountingNetwork(ImageNetwork):
    """2 x 2 places: mean colour of each quarter."""

    calls = 0

    def forward(self, pixels):
        type(self).calls += len(pixels)
        quarters = torch.nn.functional.adaptive_avg_pool2d(pixels.float(), 2)
        return quarters.flatten(2).transpose(1, 2) / 255


class TrainableNetwork(CountingNetwork):
    """The same, each number times a weight that learns."""

    width = 3

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self, pixels):
        return super().forward(pixels) * self.weight


class Tiny:
    """An image encoder for tests: 8 x 8 pixels, 3 numbers a place."""

    name, version, size = "tiny", 1, 8

    def __init__(self, argument="", precision="float32"):
        self.settings = {"precision": precision}

    def network(self, device="cpu"):
        return CountingNetwork()

    def trainable(self):
        return TrainableNetwork()


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setitem(IMAGE_ENCODERS, "tiny", Tiny)
    monkeypatch.setattr(CountingNetwork, "calls", 0)


def test_shapes_and_inputs(tmp_path):
    dataset = fake_dataset(relevance=relevance)
    data = encode_dataset(dataset, "tiny:grid:flip", relevance=True, store=tmp_path)
    assert list(data.splits) == ["train", "dev", "test"]
    assert [s.regions.shape for s in data.splits.values()] == [
        (6, 2, 4, 3), (3, 2, 4, 3), (4, 2, 4, 3)]
    assert data.inputs.region_size == 3 and data.inputs.vocabulary == len(data.vocabulary)
    assert data.inputs.sentence_size == 0 and data.inputs.word_vectors is None
    assert data.splits["test"].relevance.shape == (4, 8)
    batch = data.splits["dev"].pair_batch(np.array([0, 5]), np.array([1, 0]))
    assert batch.regions.shape == (2, 4, 3) and batch.match.tolist() == [[True, False],
                                                                         [False, True]]


def test_captions_that_changed_images_are_not_encoded_again(tmp_path):
    """Who belongs to whom is no part of what is encoded: pictures, texts and label vectors."""
    dataset = fake_dataset()
    ask = {"images": "tiny:pooled:one", "sentences": "glove-mean", "store": tmp_path,
           "label_vectors": ("glove-mean", "cider")}
    clean, files = encode_dataset(dataset, **ask), set(tmp_path.glob("*.npy"))
    calls = CountingNetwork.calls
    noisy = encode_dataset(with_caption_noise(dataset, 0.5), **ask)
    assert CountingNetwork.calls == calls and set(tmp_path.glob("*.npy")) == files and files
    before, after = clean.splits["train"], noisy.splits["train"]
    np.testing.assert_array_equal(before.regions, after.regions)
    np.testing.assert_array_equal(before.sentences, after.sentences)
    np.testing.assert_array_equal(before.label_vectors["glove-mean"],
                                  after.label_vectors["glove-mean"])
    assert (before.image_of_text != after.image_of_text).sum() == 6
    assert clean.key != noisy.key


def test_pictures_are_opened_one_by_one(tmp_path):
    """Those of a block together, 64 of a camera, filled the memory."""
    dataset, opened, alive = fake_dataset(), [], []

    def open_image(image):
        alive.append(sum(picture() is not None for picture in opened))
        opened.append(weakref.ref(picture := dataset.open_image(image).copy()))
        return picture

    encode_dataset(replace(dataset, open_image=open_image), "tiny:grid:flip", store=tmp_path)
    assert len(alive) >= 13 and max(alive) <= cores()  # one a thread


def test_features_of_a_split_are_those_of_its_own_pictures(tmp_path):
    dataset = fake_dataset()
    data = encode_dataset(dataset, "tiny:grid:one", store=tmp_path)
    for name, split in dataset.splits.items():
        colours = np.stack([np.asarray(dataset.open_image(i), float) for i in split.image_ids])
        expected = colours.mean(axis=(1, 2)) / 255
        got = np.asarray(data.splits[name].regions, float).mean(axis=(1, 2))
        np.testing.assert_allclose(got, expected, atol=0.02)


def test_pooled_is_the_mean_of_the_grid_and_new_pictures_are_encoded_alike(tmp_path):
    dataset = fake_dataset()
    grid = encode_dataset(dataset, "tiny:grid:ten", store=tmp_path).splits["test"].regions
    data = encode_dataset(dataset, "tiny:pooled:ten", store=tmp_path)
    pooled = data.splits["test"].regions
    assert grid.shape == (4, 10, 4, 3) and pooled.shape == (4, 10, 1, 3)
    np.testing.assert_allclose(pooled, np.float32(grid).mean(axis=2, keepdims=True), atol=2e-3)
    new = data.encode_images([dataset.open_image("test2")])
    np.testing.assert_allclose(new[0], pooled[2], atol=1e-3)


def test_second_call_reads_the_cache(tmp_path):
    dataset = fake_dataset()
    first = encode_dataset(dataset, "tiny:pooled:flip", store=tmp_path)
    calls = CountingNetwork.calls
    second = encode_dataset(dataset, "tiny:pooled:flip", store=tmp_path)
    assert calls >= 26 and CountingNetwork.calls == calls and first.key == second.key
    np.testing.assert_array_equal(first.splits["dev"].regions, second.splits["dev"].regions)


def test_features_of_a_half_precision_lie_apart_by_the_dtype_in_effect(tmp_path, monkeypatch):
    keys = set()
    for fast, dtype in ((True, "float16"), (False, "float32")):
        monkeypatch.setattr(base, "is_fast", lambda _, fast=fast: fast)
        data = encode_dataset(fake_dataset(), "tiny:pooled:one:float16", store=tmp_path)
        assert data.features_dtype == dtype
        keys.add(data.key)
    names = sorted(path.stem.rpartition("-")[2] for path in tmp_path.glob("*.npy"))
    assert names == ["float16", "float32"] and len(keys) == 1


def test_features_asked_for_in_float32_have_one_file_everywhere(tmp_path):
    data = encode_dataset(fake_dataset(), "tiny:pooled:one", store=tmp_path)
    (path,) = tmp_path.glob("*.npy")
    assert data.features_dtype == "float32" and not path.stem.endswith("float32")


def test_a_failure_costs_at_most_one_block_of_pictures(tmp_path):
    dataset, opened = fake_dataset(train=130), []

    def fails_late(image_id):
        opened.append(image_id)
        if image_id == "test3":
            raise OSError("image file is truncated")
        return fake_dataset().open_image(image_id)

    with pytest.raises(DataError, match="test3"):
        encode_dataset(replace(dataset, open_image=fails_late), "tiny:pooled:one", store=tmp_path)
    opened.clear()
    sound = replace(dataset, open_image=lambda i: (opened.append(i), dataset.open_image(i))[1])
    encode_dataset(sound, "tiny:pooled:one", store=tmp_path)
    assert set(opened) == {"train128", "train129", *dataset.splits["dev"].image_ids,
                           *dataset.splits["test"].image_ids}


def test_key_changes_with_everything_the_arrays_depend_on(tmp_path):
    def key(dataset=None, **changes):
        chosen = {"images": "tiny:pooled:one", "tokens": "words"} | changes
        return encode_dataset(dataset or fake_dataset(), store=tmp_path, **chosen).key

    keys = [key(), key(tokens=None), key(images="tiny:pooled:flip"), key(images="tiny:grid:one"),
            key(images="tiny:pooled:one:float16"), key(fake_dataset(fingerprint="other"))]
    assert len(set(keys)) == len(keys) and key() == keys[0]
    assert all(len(k) == 16 and int(k, 16) >= 0 for k in keys)


def test_key_changes_with_the_version_of_an_encoder(tmp_path, monkeypatch):
    before = encode_dataset(fake_dataset(), "tiny:pooled:one", store=tmp_path)
    calls = CountingNetwork.calls
    monkeypatch.setattr(Tiny, "version", 2)
    after = encode_dataset(fake_dataset(), "tiny:pooled:one", store=tmp_path)
    assert before.key != after.key and CountingNetwork.calls > calls


def test_parts_are_joined_along_features(tmp_path):
    def thirds(split):
        features = np.ones((len(split.image_ids), 4, 2), np.float32)
        return Regions(features, np.ones(features.shape[:2], bool))

    dataset = fake_dataset(features={"given": thirds})
    regions = encode_dataset(dataset, "tiny:grid:one+given", store=tmp_path).splits["dev"].regions
    assert regions.shape == (3, 1, 4, 5) and (regions[..., 3:] == 1).all()
    alone = encode_dataset(dataset, "tiny:grid:one", store=tmp_path).splits["dev"].regions
    np.testing.assert_array_equal(regions[..., :3], alone)


def test_features_that_come_with_the_data(tmp_path):
    dataset = fake_dataset(features={"detector": detector})
    data = encode_dataset(dataset, "detector", store=tmp_path)
    split = data.splits["dev"]
    assert split.regions.shape == (3, 1, 3, 5) and not list(tmp_path.iterdir())
    assert split.region_mask.tolist() == [[True] * 3, [True, True, False], [True] * 3]
    assert not split.pair_batch(np.array([2])).region_mask[0, 2]
    with pytest.raises(ValueError, match="came with the data"):
        data.encode_images([dataset.open_image("dev0")])


def test_vocabulary_is_fitted_on_training_texts_only(tmp_path):
    dataset = fake_dataset()
    test = dataset.splits["test"]
    object.__setattr__(test, "texts", ("zebra zebra zebra",) * len(test.texts))
    data = encode_dataset(dataset, "tiny:pooled:one", store=tmp_path)
    assert "zebra" not in data.vocabulary.words
    assert data.splits["test"].tokens[0].tolist() == [1, 1, 1]
    assert data.encode_texts(["zebra dog"])[0][0][0] == 1


def test_seen_names_only_encoders_in_use(tmp_path):
    pytest.importorskip("all_minilm_l6_v2")
    dataset = fake_dataset(seen_by=("minilm", "other"))
    assert encode_dataset(dataset, "tiny:pooled:one", store=tmp_path).seen == ()
    data = encode_dataset(dataset, "tiny:pooled:one", sentences="minilm", store=tmp_path)
    assert data.seen == ("minilm",)
    fine = encode_dataset(dataset, "tiny:pooled:one", "wordpiece:minilm", store=tmp_path)
    assert fine.seen == ("minilm",)


@pytest.mark.parametrize("arguments, message", [
    ({"images": "resnet:pooled:one"}, "image encoder must be one of .*lite0.*'resnet'.*detector"),
    ({"images": "tiny:poled:one"}, "pooled.grid"),
    ({"images": "tiny"}, "should be tiny:"),
    ({"images": "tiny:pooled:two"}, "one.flip.ten"),
    ({"images": "tiny:pooled:one+tiny:pooled:one"}, "twice"),
    ({"images": "tiny:grid:one+detector"}, "same views and regions"),
    ({"images": ""}, "lite0:pooled:flip"),
    ({"tokens": "letters"}, "words, glove, wordpiece:minilm"),
    ({"sentences": "bert"}, "minilm, fisher, hglmm, glove-mean"),
    ({"relevance": True}, "no exact relevance"),
])
def test_wrong_specs_are_refused_with_the_choices(tmp_path, arguments, message):
    dataset = fake_dataset(features={"detector": detector})
    with pytest.raises(ValueError, match=message):
        encode_dataset(dataset, **({"images": "tiny:pooled:one", "store": tmp_path} | arguments))


@pytest.mark.parametrize("spoil, message", [
    (lambda r: r._replace(features=r.features[:-1]), r"expected \(6, R, D\)"),
    (lambda r: r._replace(features=r.features[:, 0]), r"expected \(6, R, D\)"),
    (lambda r: r._replace(features=np.where(r.features > 1, np.nan, r.features)), "NaN"),
    (lambda r: r._replace(mask=r.mask.astype(float)), "mask should be bool"),
    (lambda r: r._replace(mask=r.mask & False), "has no region"),
])
def test_broken_given_features_are_refused(tmp_path, spoil, message):
    dataset = fake_dataset(features={"detector": lambda split: spoil(detector(split))})
    with pytest.raises(DataError, match=message):
        encode_dataset(dataset, "detector", store=tmp_path)


@pytest.mark.parametrize("spoil", [lambda r: r[:-1], lambda r: r * 0.9, lambda r: r * np.nan,
                                   lambda r: np.ones_like(r)])
def test_broken_relevance_is_refused(tmp_path, spoil):
    dataset = fake_dataset(relevance=lambda split: spoil(relevance(split)))
    with pytest.raises(DataError, match="relevance of fake, split train"):
        encode_dataset(dataset, "tiny:pooled:one", relevance=True, store=tmp_path)


def test_a_network_that_gives_nan_is_refused_and_nothing_counts_as_done(tmp_path, monkeypatch):
    monkeypatch.setattr(CountingNetwork, "forward", lambda self, p: torch.full((len(p), 4, 3),
                                                                             torch.nan))
    with pytest.raises(DataError, match="row 0 holds NaN"):
        encode_dataset(fake_dataset(), "tiny:pooled:one", store=tmp_path)
    monkeypatch.undo()


def test_an_unreadable_picture_is_named(tmp_path):
    def broken(image_id):
        raise OSError("image file is truncated")

    with pytest.raises(DataError, match="picture train0 cannot be read.*truncated"):
        encode_dataset(fake_dataset(open_image=broken), "tiny:pooled:one", store=tmp_path)


@pytest.mark.parametrize("change", [{"image_of_text": np.array([0, 0, 1])},
                                    {"image_of_text": np.zeros(6, np.int64)}, {"image_ids": ()}])
def test_splits_that_do_not_fit_together_are_refused(tmp_path, change):
    dataset = fake_dataset()
    for name, value in change.items():
        object.__setattr__(dataset.splits["dev"], name, value)
    with pytest.raises(DataError, match="split dev"):
        encode_dataset(dataset, "tiny:pooled:one", store=tmp_path)


def test_no_train_split_is_refused(tmp_path):
    dataset = fake_dataset()
    del dataset.splits["train"]
    with pytest.raises(DataError, match="no train split, only dev, test"):
        encode_dataset(dataset, "tiny:pooled:one", store=tmp_path)


def test_pixels_reach_a_model_that_fine_tunes_its_network(tmp_path):
    """Fine-tuned without a step it gives what the frozen network gives; gradients reach it."""
    given = encode_dataset(fake_dataset(), "tiny:grid:one", store=tmp_path)
    tuned = encode_dataset(fake_dataset(), "pixels:tiny", store=tmp_path)
    assert tuned.inputs.pixels == "tiny" and tuned.inputs.region_size == 0
    assert given.key != tuned.key
    models = []
    for data in (given, tuned):
        torch.manual_seed(0)
        models.append(MODELS["vsepp"](data.inputs, size=4, word_size=5))
    texts = np.array([0, 3, 5])
    batches = [data.splits["train"].pair_batch(texts) for data in (given, tuned)]
    assert batches[0].pixels is None and batches[1].pixels.dtype == torch.uint8
    scores = [model(batch).scores for model, batch in zip(models, batches, strict=True)]
    torch.testing.assert_close(*scores, atol=2e-3, rtol=0)  # cached features are float16
    scores[1].sum().backward()
    assert models[1].network.weight.grad.abs().sum() > 0
    assert tuned.splits["train"].head(2).pixels(np.array([1])).shape == (1, 3, 8, 8)
    assert tuned.splits["train"].text_batch(texts).pixels is None


def test_pixels_stand_alone(tmp_path):
    with pytest.raises(ValueError, match="stand alone"):
        encode_dataset(fake_dataset(), "pixels:tiny+tiny:grid:one", store=tmp_path)
    with pytest.raises(ValueError, match="pixels:<one of these>"):
        encode_dataset(fake_dataset(), "pixels:huge", store=tmp_path)


def test_all_splits_have_label_vectors_and_train_none_that_only_evaluation_reads(tmp_path):
    data = encode_dataset(fake_dataset(), "tiny:pooled:one", store=tmp_path,
                          label_vectors=("texts",), evaluation_vectors=("cider",))
    assert {name: set(split.label_vectors) for name, split in data.splits.items()} == {
        "train": {"texts"}, "dev": {"texts", "cider"}, "test": {"texts", "cider"}}
    assert tuple(data.splits["test"].label_vectors["texts"]) == \
        tuple(fake_dataset().splits["test"].texts)
    assert len(data.splits["dev"].label_vectors["cider"]) == 6
    plain = encode_dataset(fake_dataset(), "tiny:pooled:one", store=tmp_path)
    assert plain.key == data.key and not plain.splits["test"].label_vectors
    with pytest.raises(ValueError, match="label_vectors must be one of"):
        encode_dataset(fake_dataset(), "tiny:pooled:one", store=tmp_path, label_vectors=("bleu",))


def test_judged_pairs_find_their_image_and_text(tmp_path):
    judged = Judgements("crowdflower", ("test1", "dev0", "test3"), ("test0#0", "dev1#2", "test3#7"),
                        np.array([[0.1], [0.5], [0.9]]), np.array([False, False, True]), "b")
    data = encode_dataset(fake_dataset(judgements={"crowdflower": judged}), "tiny:pooled:one",
                          store=tmp_path)
    pairs = data.splits["test"].judgements["crowdflower"]
    assert (pairs.images.tolist(), pairs.texts.tolist()) == ([1, 3], [0, 7])
    assert pairs.judgements.ratings.tolist() == [[0.1], [0.9]]
    assert not data.splits["train"].judgements
