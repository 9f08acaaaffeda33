"""Where models look, by hand and against slow loops, whatever the padding."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from itr_study.data.base import Regions
from itr_study.data.batches import Batch
from itr_study.data.box_table import grid_boxes
from itr_study.data.vocabulary import tokenize
from itr_study.encoders import IMAGE_ENCODERS
from itr_study.encoders.sentences import WordPieces
from itr_study.evaluation.looks import EVEN, KINDS, MEANS, Looker, pool_of, region_gradient
from itr_study.evaluation.pointing import region_boxes
from itr_study.evaluation.search import ALL, Searcher
from itr_study.explorers.looking import Looking
from itr_study.features.dataset import encode_dataset
from itr_study.models import MODELS
from itr_study.models.base import ModelOutput
from tests.evaluation.looking import SCENES, data, searcher, searcher_of
from tests.features.fakes import Quarters, Tiny

SPLIT = SCENES.splits["test"]
THERE = {
    "saf": ("words", "gradient"), "sgr": ("words", "gradient"), "dvse": ("heads", "gradient"),
    "pvse": ("heads", "gradient"), "dan": ("heads", "gradient"),
    "vse_infinity": ("ranks", "wins", "gradient"), "vsepp": ("gradient",),
    "two_branch": ("gradient",)}
PAIRS = [(kind, name) for name, kinds in THERE.items() for kind in kinds]


def looker(name, **arguments) -> Looker:
    return Looker(searcher(name, **arguments))


class Linear(nn.Module):
    """v = the mean of w x over regions that exist, t the bag of words' first sentence numbers."""

    def __init__(self, pool="mean", path=True):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([[2.0, 0.0], [0.0, -1.0]]))
        self.pool, self.path = pool, path

    def encode_images(self, batch: Batch):
        mapped = batch.regions[..., :2] @ self.weight.T
        kept = batch.region_mask.unsqueeze(-1)
        found = mapped.masked_fill(~kept, -torch.inf).amax(dim=1) if self.pool == "max" else (
            (mapped * kept).sum(dim=1) / kept.sum(dim=1))
        return found if self.path else found.detach()

    def encode_texts(self, batch: Batch):
        return torch.ones(len(batch.text_ids), 2)

    def score(self, images, texts):
        return ModelOutput((images @ texts.T) if self.path else (images @ texts.T).detach())


def one_image(regions, exists) -> Batch:
    none = torch.zeros(0, dtype=torch.int64)
    return Batch(torch.tensor([0]), none, none, regions=torch.tensor([regions]),
                 region_mask=torch.tensor([exists]))


# What there is

@pytest.mark.parametrize("name", THERE)
def test_every_model_shows_what_it_has(name):
    assert looker(name).kinds == THERE[name] and set(THERE[name]) <= set(KINDS) == set(MEANS)


def test_a_text_without_any_word_is_looked_at_as_a_whole():
    """"?!" is read as one unknown word."""
    texts = ("?!", *SPLIT.texts[1:])
    odd = replace(SCENES, splits=SCENES.splits | {"test": replace(SPLIT, texts=texts)})
    one = Searcher(searcher("saf").model, odd, encode_dataset(
        odd, "detector", tokens="words", sentences="glove-mean"), "test")
    seen = Looker(one).look(0, 0, "words")
    assert seen.rows == ("the whole text",) and seen.weights.shape[0] == 1
    pane = Looking({"saf": one})
    assert "largest weight of “the whole text”" in pane.numbers()
    assert len(pane.table) == seen.weights.size


def test_pooling_by_size_is_shown_where_there_is_any():
    assert looker("vsepp", pool="max").kinds == ("wins", "gradient")
    assert looker("vsepp", pool="both").kinds == ("wins", "gradient")
    assert looker("vsepp", pool="gpo").kinds == ("ranks", "wins", "gradient")
    assert looker("dvse", heads=0).kinds == ("gradient",)


@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_weights_are_of_the_regions_that_exist_and_add_up_to_one(kind, name):
    one, given = looker(name), searcher(name)
    batch = given.encoded.image_batch(np.arange(12))
    for text in range(0, len(SPLIT.texts), 7):
        image = int(SPLIT.image_of_text[text])
        seen = one.look(image, text, kind)
        exists = batch.region_mask[image].numpy()
        assert seen.regions.tolist() == np.flatnonzero(exists).tolist()
        assert seen.weights.shape == (len(seen.rows), exists.sum()) and (seen.weights >= 0).all()
        assert seen.weights.sum(axis=1) == pytest.approx(np.ones(len(seen.rows)))
        assert seen.boxes.shape == (exists.sum(), 4)
        assert seen.score == pytest.approx(float(given.scores[image, text]), abs=1e-6)
    assert not batch.region_mask.all()


def test_boxes_are_those_of_the_objects_and_the_last_the_whole_picture():
    seen = looker("saf").look(0, 0)
    things = SCENES.boxes(SPLIT.image_ids[0])
    for place, box in zip(seen.regions, seen.boxes, strict=True):
        if place < len(things):
            assert box.tolist() == list(things[place][1:])
    assert seen.boxes[-1].tolist() == [0, 0, 1, 1]


def test_pieces_of_words_are_not_shown_as_words():
    """They are more than there are words, and the first stands for none."""
    given = searcher("saf")
    pieces = replace(given.data, vocabulary=object.__new__(WordPieces))
    assert Looker(Searcher(given.model, given.dataset, pieces)).kinds == ("gradient",)


# Each kind, by hand

def test_words_are_those_of_the_text_each_with_its_attention():
    given = searcher("saf")
    seen = looker("saf").look(2, 3)
    assert seen.rows == tuple(tokenize(SPLIT.texts[3])) and seen.kind == "words"
    with torch.no_grad():
        images = tuple(part[[2]] for part in given.images)
        texts = tuple(part[[3]] for part in given.texts)
        found = given.model.attend(images, texts)[0].numpy()
    assert seen.weights == pytest.approx(found[:len(seen.rows), seen.regions], abs=1e-6)
    assert len({tuple(row) for row in seen.weights.round(6)}) > 1  # words differ


def test_heads_are_those_of_the_model():
    seen = looker("dvse").look(1, 0)
    assert seen.rows == ("head 1", "head 2", "head 3") and "whatever the text" in seen.means
    found = searcher("dvse").images[3][1].numpy()
    assert seen.weights == pytest.approx(found[:, seen.regions], abs=1e-6)
    assert looker("dan").look(1, 0).rows == ("look 1", "look 2")


def test_ranks_and_winners_against_loops():
    given, image = searcher("vsepp", pool="gpo"), 4
    with torch.no_grad():
        batch = given.encoded.image_batch(np.array([image]))
        exists = batch.region_mask[0].numpy()
        mapped = given.model.image.linear(batch.regions)[0].numpy()[exists]
        learnt = given.model.image.pool.weights(len(mapped))[-1].numpy()
    share, wins = np.zeros(len(mapped)), np.zeros(len(mapped))
    for feature in mapped.T:
        for rank, region in enumerate(np.argsort(-feature)):
            share[region] += learnt[rank] / mapped.shape[1]
        wins[feature.argmax()] += 1 / mapped.shape[1]
    one = Looker(given)
    seen = one.look(image, 0, "ranks")
    assert seen.weights[0] == pytest.approx(share, abs=1e-6) and seen.rows == ("the picture",)
    assert seen.by_rank == pytest.approx(learnt, abs=1e-6)
    assert seen.by_rank.sum() == pytest.approx(1)
    assert one.look(image, 0, "wins").weights[0] == pytest.approx(wins)
    assert one.look(image, 0, "wins").by_rank is None


def test_a_region_that_does_not_exist_wins_nothing():
    """All others are below zero in every dimension, where padding is zero."""
    found = SCENES.features["detector"]
    below = replace(SCENES, features={"detector": lambda split: Regions(
        -np.abs(found(split).features), found(split).mask)})
    encoded = encode_dataset(below, "detector", tokens="words", sentences="glove-mean")
    model = MODELS["vsepp"](encoded.inputs, size=8, word_size=5, pool="max").eval()
    with torch.no_grad():
        model.image.linear.weight.abs_()
        model.image.linear.bias.zero_()
    one = Looker(Searcher(model, below, encoded, "test"))
    batch = encoded.splits["test"].image_batch(np.arange(12))
    image = int(batch.region_mask.sum(dim=1).argmin())
    mapped = (batch.regions[image] @ model.image.linear.weight.T).detach().numpy()
    exists = batch.region_mask[image].numpy()
    wins = np.bincount(mapped[exists].argmax(axis=0), minlength=exists.sum()) / 8
    assert one.look(image, 0, "wins").weights[0] == pytest.approx(wins)


def test_the_gradient_of_a_mean_by_hand():
    """v = mean of (2 x, -y), t = (1, 1): of two regions each adds (2 x - y) / 2; padding none."""
    batch = one_image([[1.0, 1.0], [0.0, 3.0], [9.0, 9.0]], [True, True, False])
    found = region_gradient(Linear(), batch, torch.ones(1, 2))
    assert found.tolist() == [0.5, -1.5, 0]


def test_the_gradient_of_a_maximum_stands_where_the_maximum_does():
    """2 x is largest in region 0, -y in region 1: 2 * 1 of the first, -1 * 1 of the second."""
    batch = one_image([[1.0, 2.0], [0.5, 1.0], [9.0, -9.0]], [True, True, False])
    assert region_gradient(Linear("max"), batch, torch.ones(1, 2)).tolist() == [2, -1, 0]


def test_a_score_that_no_region_raises_is_seen_evenly():
    class Against(Linear):
        def encode_images(self, batch):
            return -batch.regions[..., :2].square().sum(dim=1)

    seen = Looker(searcher_of(Against())).look(0, 0)
    assert seen.weights[0] == pytest.approx(np.full(len(seen.regions), 1 / len(seen.regions)))
    assert seen.means.endswith(EVEN) and seen.rows == ("the whole text",)


def test_a_look_changes_neither_the_model_nor_its_gradients():
    given = searcher("saf")
    given.model.train()
    looker("saf").look(0, 0, "gradient")
    assert given.model.training and all(p.grad is None for p in given.model.parameters())
    given.model.eval()


# Padding, one region, other features

def test_padding_changes_nothing():
    """Three more regions that do not exist, at the end of every picture."""
    wide = replace(SCENES, features={"detector": lambda split: Regions(*(
        np.concatenate([part, np.zeros((len(part), 3, *part.shape[2:]), part.dtype)], axis=1)
        for part in SCENES.features["detector"](split)))}, boxes=None)
    encoded = encode_dataset(wide, "detector", tokens="words", sentences="glove-mean")
    for kind, name in PAIRS:
        seen = looker(name).look(5, 9, kind)
        padded = Looker(Searcher(searcher(name).model, wide, encoded, "test")).look(5, 9, kind)
        within = 5e-4 if kind == "gradient" else 1e-5  # on one CPU with AMX 7e-5
        assert padded.weights == pytest.approx(seen.weights, abs=within), (kind, name)
        assert padded.regions.tolist() == seen.regions.tolist()
        assert np.isnan(padded.boxes).all()  # nobody says where they lie


def test_the_only_region_has_all():
    pooled = replace(SCENES, features={"detector": lambda split: Regions(
        SCENES.features["detector"](split).features.mean(axis=1, keepdims=True),
        np.ones((len(split.image_ids), 1), bool))})
    encoded = encode_dataset(pooled, "detector", tokens="words", sentences="glove-mean")
    for kind, name in PAIRS:
        seen = Looker(Searcher(searcher(name).model, pooled, encoded, "test")).look(0, 1, kind)
        assert (seen.weights == 1).all() and seen.boxes.tolist() == [[0, 0, 1, 1]], (kind, name)
        if kind == "ranks":
            assert seen.by_rank.tolist() == [1]


def test_where_cells_and_regions_of_a_detector_lie(monkeypatch):
    def boxes(encoders=(), pixels=""):
        made = SimpleNamespace(image_encoders=list(encoders),
                               inputs=SimpleNamespace(pixels=pixels))
        return region_boxes(SCENES, made, SPLIT)

    grid = SimpleNamespace(part=SimpleNamespace(views="one"))
    assert (boxes([grid])(0, 9) == grid_boxes(3)).all()
    assert (boxes(pixels="tiny")(0, 4) == grid_boxes(2)).all()
    crop = boxes([SimpleNamespace(part=SimpleNamespace(views="ten"))])(0, 4)
    assert crop.min() == pytest.approx(1 / 16) and crop.max() == pytest.approx(15 / 16)


@pytest.mark.parametrize("name, arguments, kinds", [
    ("vsepp", {"pool": "max"}, ("wins", "gradient")),
    ("vse_infinity", {"text": "gru"}, ("ranks", "wins", "gradient"))])
def test_a_network_that_is_fine_tuned_is_looked_at_through_its_map(name, arguments, kinds,
                                                                   monkeypatch, tmp_path):
    class Trainable(Tiny):
        def trainable(self):
            network = Quarters()
            network.width = 3
            return network

    monkeypatch.setitem(IMAGE_ENCODERS, "tiny", Trainable)
    encoded = encode_dataset(SCENES, "pixels:tiny", tokens="words", store=tmp_path)
    model = MODELS[name](encoded.inputs, size=4, word_size=5, **arguments).eval()
    one = Looker(Searcher(model, SCENES, encoded, "test"))
    assert one.kinds == kinds
    for kind in one.kinds:
        seen = one.look(0, 0, kind)
        assert (seen.boxes == grid_boxes(2)).all() and seen.weights.sum() == pytest.approx(1)
    assert not model.network._forward_hooks


# What cannot be looked at

def test_a_model_that_shows_nothing_is_refused():
    with pytest.raises(ValueError, match="Linear shows nothing of where it looks"):
        Looker(searcher_of(Linear(path=False)))
    with pytest.raises(ValueError, match="the score of Linear has no gradient at its regions"):
        region_gradient(Linear(path=False), one_image([[1.0, 1.0]], [True]), torch.ones(1, 2))


def test_a_model_that_has_diverged_is_named():
    broken = Linear()
    with torch.no_grad():
        broken.weight.fill_(torch.nan)
    with pytest.raises(ValueError, match="the gradient of the score of Linear is NaN"):
        Looker(searcher_of(broken)).look(0, 0)


def test_what_is_not_there_is_refused():
    one = looker("saf")
    with pytest.raises(ValueError, match="what SAF shows must be one of words, gradient; got 'hea"):
        one.look(0, 0, "heads")
    with pytest.raises(ValueError, match="image must be an integer >= 0 and <= 11, got 12"):
        one.look(12, 0)
    with pytest.raises(ValueError, match="text must be an integer"):
        one.look(0, -1)
    with pytest.raises(ValueError, match="one split; got scenes, all"):
        Looker(Searcher(searcher("saf").model, SCENES, data(), ALL))


def test_all_texts_are_seen_at_their_own_pictures():
    found = looker("two_branch").maps()
    assert len(found) == len(SPLIT.texts)
    again = looker("two_branch").look(int(SPLIT.image_of_text[8]), 8)
    assert (found[8].weights == again.weights).all()
    assert found[8].score is None and again.score is not None  # nobody asks for 5,000 of them
    assert pool_of(searcher("two_branch").model) is None
