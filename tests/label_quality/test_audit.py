"""The audit of captions: no picture is judged by a model that saw it, exchanged captions are first,
and what words and pictures alone tell is told."""

from functools import partial

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

import itr_study.lab.label_quality.audit as audit
from itr_study.data.base import Split
from itr_study.data.batches import EncodedSplit, InputSpec
from itr_study.data.caption_noise import shuffled_owners
from itr_study.features.texts import EncodedData

NO_TWINS = np.zeros((0, 2), np.int64)


def linear_data(images: int = 80, captions: int = 3, seed: int = 0):
    """Pictures and captions of a common meaning, each seen through another matrix, with noise."""
    random = np.random.default_rng(seed)
    meaning, owner = random.normal(size=(images, 8)), np.repeat(np.arange(images), captions)
    looks = meaning @ random.normal(size=(8, 20)) + 0.5 * random.normal(size=(images, 20))
    said = meaning[owner] @ random.normal(size=(8, 12)) + random.normal(size=(len(owner), 12))
    looks, said = torch.tensor(looks).float(), torch.tensor(said).float()
    return looks - looks.mean(0), normalize(said - said.mean(0), dim=1), owner


def exchanged(owner: np.ndarray, share: float = 0.1, seed: int = 0) -> np.ndarray:
    return shuffled_owners([f"caption {t}" for t in range(len(owner))], owner, share, seed)


@pytest.mark.parametrize("captions", [1, 3])
def test_exchanged_captions_have_the_lowest_scores(captions):
    looks, said, owner = linear_data(captions=captions)
    given = exchanged(owner)
    wrong = given != owner
    judged = audit.judge(looks, said, given, NO_TWINS)
    first = np.argsort(-judged.doubt)[:wrong.sum()]
    assert wrong[first].mean() >= 0.8 and wrong.mean() < 0.15
    assert wrong.sum() / 2 <= judged.wrong <= 2 * wrong.sum()
    sound = audit.judge(looks, said, owner, NO_TWINS)
    assert sound.wrong < judged.wrong
    # of what was exchanged, the other picture is mostly the one that it was written about
    assert (judged.other[wrong] == owner[wrong]).mean() > 0.2


def test_no_picture_is_judged_by_a_model_that_saw_it_or_its_twin():
    looks, said, owner = linear_data(60)
    looks = torch.cat((looks, torch.arange(60.0)[:, None]), dim=1)  # which picture it is
    twins = np.array([[3, 40], [40, 41], [10, 11]])
    judged_pictures = []

    def fit(images, texts):
        trained = set(images[:, -1].int().tolist())

        def scores(some, others):
            asked = set(some[:, -1].int().tolist())
            assert not asked & trained and asked | trained == set(range(60))
            for group in ({3, 40, 41}, {10, 11}):
                assert group <= asked or not group & asked
            judged_pictures.extend(asked)
            return torch.zeros(len(some), len(others))
        return scores

    audit.judge(looks, said, owner, twins, seeds=2, fits=[fit])
    assert sorted(judged_pictures) == sorted([*range(60)] * 2)


def test_pictures_that_are_all_alike_are_still_in_several_folds():
    chain = np.array([[i, i + 1] for i in range(59)])
    groups, group = audit.together(chain, 60)
    assert groups >= 2 * audit.FOLDS and group[0] == group[1]
    looks, said, owner = linear_data(60)
    assert np.isfinite(audit.judge(looks, said, owner, chain, seeds=1).doubt).all()


def test_standard_is_that_of_the_slow_sum():
    random = np.random.default_rng(1)
    evidence, own = random.normal(size=(2, 7, 9)), (np.arange(9) % 7, np.arange(9))
    evidence[0][own] += 2
    evidence[1][own] -= 9  # no evidence: it counts nothing
    mean = evidence[0].mean()
    flat = np.array([[evidence[0][i, t] - (evidence[0][:, t].mean() + evidence[0][i].mean()) / 2
                      for t in range(9)] for i in range(7)])
    null = [flat[i, t] for i in range(7) for t in range(9) if i != t % 7]
    found = audit.standard(list(evidence), own)
    np.testing.assert_allclose(found, (flat - np.mean(null)) / np.std(null), atol=1e-9)
    assert np.isfinite(mean) and np.isfinite(audit.standard([np.zeros((7, 9))], own)).all()


def test_near_pictures_are_all_pairs_above_the_cosine():
    looks = torch.tensor(np.random.default_rng(2).normal(size=(1500, 3))).float()
    pairs, alike = audit.near_pictures(looks, 0.9999)
    unit = (looks / looks.norm(dim=1, keepdim=True)).numpy()
    cosines = unit @ unit.T
    slow = {(i, j) for i in range(1500) for j in range(i + 1, 1500) if cosines[i, j] > 0.99991}
    found = {tuple(pair) for pair in pairs.tolist()}
    assert slow and slow <= found and all(i < j for i, j in found) and len(found) == len(pairs)
    np.testing.assert_allclose(alike, cosines[tuple(pairs.T)], atol=1e-5)
    assert (np.diff(alike) <= 0).all()


def test_pictures_that_are_all_equal_are_near_ones():
    encoded = EncodedSplit("train", np.arange(60), np.full((60, 1, 1, 90), 0.3, np.float32),
                           sentences=linear_data(60, 1)[1].numpy())
    looks, said = audit.arrays(EncodedData({"train": encoded}, InputSpec(90, 0, 12), "none"))
    twins, alike = audit.near_pictures(looks)
    assert len(twins) == 60 * 59 / 2 and (alike == 1).all()
    assert np.isfinite(audit.judge(looks, said, np.arange(60), twins, seeds=1).doubt).all()


def test_few_pictures_are_turned_and_keep_their_cosines():
    looks = np.random.default_rng(4).normal(size=(60, 1, 1, 90)).astype(np.float32)
    encoded = EncodedSplit("train", np.arange(60), looks,
                           sentences=linear_data(60, 1)[1].numpy())
    turned, _ = audit.arrays(EncodedData({"train": encoded}, InputSpec(90, 0, 12), "none"))
    plain = torch.from_numpy(looks[:, 0, 0] - looks[:, 0, 0].mean(axis=0))
    assert turned.shape == (60, 60)
    torch.testing.assert_close(turned @ turned.T, plain @ plain.T, atol=1e-3, rtol=1e-4)


def blind(images, texts):
    return lambda some, others: torch.randn(len(some), len(others),
                                            generator=torch.Generator().manual_seed(0))


def linear(regularisation):
    return partial(audit.fit_linear, regularisation=regularisation)


# The second would not be taken if the other captions of a picture, which need no model, counted.
@pytest.mark.parametrize(("data", "worse", "better"), [
    ({"images": 60}, blind, linear(0.3)),
    ({"images": 100, "captions": 5}, linear(1e-4), linear(0.03))])
def test_the_fit_is_taken_whose_pairs_are_furthest_above_others(data, worse, better):
    taken = []

    def counted(fit):
        return lambda images, texts: taken.append(fit) or fit(images, texts)

    judged = audit.judge(*linear_data(**data), NO_TWINS, seeds=2,
                         fits=[counted(worse), counted(better)])
    assert judged.taken == 1
    assert [taken.count(fit) for fit in (worse, better)] == [audit.FOLDS, 3 * audit.FOLDS]


@pytest.mark.parametrize(("text", "why"), [
    ("image", "says nothing"), ("A photo of the", "says nothing"), ("n/a", "says nothing"),
    ("DSC_0042", "of a file"), ("trips/rome.JPG", "of a file"),
    ("a dog &#39;s bone", "has '&#39;'"), ("<b>a dog</b>", "has '<b>'"),
    ("a cafÃ© at night", "perhaps 'a café at night'"), ("a caf\ufffd", "is damaged"),
    ("a café at night", ""), ("two dogs & a cat", ""), ("5 < 7 > 3", ""), ("собака", ""),
    ("a picture of a dog", ""), ("R2 & D2", "")])
def test_captions_without_content_are_told(text, why):
    found = audit.content_problem(text)
    assert why in found and bool(why) == bool(found)


def test_another_language_or_script_is_one_that_most_do_not_have():
    assert audit.language("Ein Hund und das Meer") == "German" and audit.language("a dog") == ""
    assert audit.language("the dog and der Hund das") == ""  # of two
    assert [audit.script(text) for text in ("a dog", "собака 2", "42")] == ["LATIN", "CYRILLIC", ""]
    texts = ["the dog is on the sand"] * 3 + ["a dog", "Ein Hund und das Meer", "собака"]
    split = Split("all", ("a.jpg",) * 6, tuple("123456"), tuple(texts), np.arange(6))
    found = [one for one in audit.by_words(split) if one.reason == audit.TONGUE]
    assert [(one.text, one.detail) for one in found] == [
        (4, "seems to be German, most are English"), (5, "seems to be Cyrillic, most are Latin")]


def test_findings_are_in_the_order_of_their_reasons_and_name_their_pictures():
    texts = ("image", "a dog", "a cat", "a cat", "the sea", "a boat")
    split = Split("all", tuple("abcdef"), tuple("123456"), texts, np.arange(6))
    own = np.array([5.0, 5.0, 5.0, 5.0, -1.0, 5.0])
    judged = audit.Judged(own, (own < 0) * 0.9, np.full(6, 1.0), np.full(6, 2),
                          np.array([0, 0, 0, 0, 0, 4.0]), 0)
    found = audit.findings(split, ["train"] * 5 + ["test"], judged, np.array([[0, 1], [4, 5]]),
                           np.array([0.99, 0.95]))
    assert [(one.reason, one.image, one.text, one.other) for one in found] == [
        (audit.EMPTY, 0, 0, -1), (audit.WRONG, 4, 4, 2), (audit.OVERLAP, 4, -1, 5),
        (audit.NEAR, 0, -1, 1), (audit.SHARED, 2, 2, 3), (audit.MANY, 5, 5, -1)]
    assert judged.wrong == 2
    twins = np.array([[0, 1]] * 60 + [[4, 5]])  # the least alike of all is one between splits
    found = [one.reason for one in audit.findings(split, ["train"] * 5 + ["test"], judged, twins,
                                                  np.linspace(0.99, 0.95, 61))]
    assert found.count(audit.OVERLAP) == 1 and found.count(audit.NEAR) == audit.MOST


def test_data_that_no_audit_can_judge_are_refused_in_a_sentence():
    few = Split("all", tuple(map(str, range(49))), (), (), np.zeros(0, int))
    with pytest.raises(ValueError, match="an audit needs 50 pictures or more, got 49"):
        audit.check_audit(few)
    ids = tuple(map(str, range(50)))
    with pytest.raises(ValueError, match="all captions say 'A dog'; give each"):
        audit.check_audit(Split("all", ids, ids, ("A dog",) * 49 + ("a dog!",), np.arange(50)))
    audit.check_audit(Split("all", ids, ids, ("A dog",) * 49 + ("a cat",), np.arange(50)))
