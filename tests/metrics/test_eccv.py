"""ECCV Caption, CxC and COCO: against loops, and against the package where it is installed."""

import dataclasses
import warnings
from importlib.util import find_spec

import numpy as np
import pytest
import torch

import itr_study.metrics.eccv as module
from itr_study.metrics.eccv import (
    ABSENT,
    Judged,
    TruthSets,
    coco_numbers,
    eccv_table,
    read_eccv,
)
from tests.metrics.coco_sets import cut, small_sets
from tests.oracles.eccv import oracle

needs_package = pytest.mark.skipif(find_spec("eccv_caption") is None,
                                   reason="needs the package eccv-caption")


def small_scores(seed, ties):
    image_ids, text_ids, sets = small_sets(seed)
    scores = np.random.default_rng(seed).standard_normal((len(image_ids), len(text_ids)))
    return np.round(scores) if ties else scores.astype(np.float32), image_ids, text_ids, sets


@pytest.mark.parametrize("ties", [False, True])
def test_equals_slow_oracle(ties):
    for seed in range(6):
        scores, image_ids, text_ids, sets = small_scores(seed, ties)
        table = eccv_table(scores, image_ids, text_ids, sets)
        assert table == pytest.approx(oracle(scores.tolist(), image_ids, text_ids, sets), abs=1e-12)
        assert len(table) == 24 and all(0 <= value <= 1 for value in table.values())


def test_hand_worked():
    """Five images of one caption each; ECCV knows two matches of image 10, one of them absent."""
    own = {10 * i: [i] for i in range(1, 6)}
    coco = Judged(own, {i: [10 * i] for i in range(1, 6)})
    eccv = Judged({10: [1, 2, 144675]}, {2: [10, 20]})
    scores = np.eye(5)
    scores[0, 1], scores[0, 2] = 0.8, 0.9  # image 10: captions 1, 3, 2; caption 2: images 20, 10
    table = eccv_table(scores, [10, 20, 30, 40, 50], [1, 2, 3, 4, 5],
                       TruthSets(coco, coco, eccv, np.arange(1, 6)), ks=(1,))
    expected = dict.fromkeys(table, 1.0) | {
        "i2t_eccv_map_at_r": (1 + 0 + 2 / 3) / 3, "i2t_eccv_r_precision": 2 / 3}
    assert table == pytest.approx(expected)


def test_order_of_rows_and_columns_does_not_matter():
    scores, image_ids, text_ids, sets = small_scores(1, ties=True)
    rng = np.random.default_rng(0)
    rows, columns = (rng.permutation(n) for n in scores.shape)
    moved = eccv_table(scores[rows][:, columns], np.array(image_ids)[rows],
                       np.array(text_ids)[columns], sets)
    assert moved == pytest.approx(eccv_table(scores, image_ids, text_ids, sets))


def test_ids_of_a_split_become_numbers_of_coco_if_it_is_the_whole_test_set():
    image_ids, text_ids, sets = small_sets()
    owner, names = np.repeat(np.arange(15), 3), [str(i) for i in image_ids]
    shuffled = np.random.default_rng(0).permutation(45)
    by_id = [str(text_ids[t]) for t in shuffled]
    by_order = [f"test#{t}" for t in range(45)]
    found = coco_numbers(names, by_id, owner[shuffled], sets)
    assert found[:2] == (image_ids, [text_ids[t] for t in shuffled])
    assert found.columns.tolist() == [*range(45)]
    assert coco_numbers(names, by_order, owner, sets)[:2] == (image_ids, text_ids)
    sixth = coco_numbers(names, [*by_id[:7], "99999999", *by_id[7:]],
                         np.insert(owner[shuffled], 7, 3), sets)  # Karpathy's JSON has ten such
    assert sixth[:2] == found[:2] and sixth.columns.tolist() == [*range(7), *range(8, 46)]
    moved = owner[::-1]  # the captions are others, or in another order
    for images, texts, of in ((names, by_order, moved), (names, by_id, owner), ((), (), owner[:0]),
                              (names[:14], by_order[:42], owner[:42]),
                              (names[:14], by_id[:42], owner[shuffled][:42] % 14),
                              (["²", *names[1:]], by_order, owner),
                              ([f"{n}.jpg" for n in names], by_order, owner),
                              (["1", *names[1:]], by_order, owner)):
        assert coco_numbers(images, texts, of, sets) is None


def test_tensor_and_array_agree():
    scores, image_ids, text_ids, sets = small_scores(2, ties=True)
    for dtype in (torch.float32, torch.bfloat16):
        tensor = torch.from_numpy(scores).to(dtype)
        assert eccv_table(tensor, torch.tensor(image_ids), text_ids, sets) == pytest.approx(
            eccv_table(scores, image_ids, text_ids, sets))


def test_ids_that_do_not_fit_are_named():
    scores, image_ids, text_ids, sets = small_scores(3, ties=False)
    for change, message in [
            (dict(image_ids=[7, *image_ids[1:]]), "images 7 are not in the ground truth; images "
             f"{image_ids[0]} of coco are not in the gallery"),
            (dict(text_ids=[*text_ids[:-1], 5]), f"captions {text_ids[-1]} of coco are not in"),
            (dict(image_ids=image_ids[:-1]), "image_ids must be 15 different ids, .* got 14, 14"),
            (dict(text_ids=[text_ids[1], *text_ids[1:]]), "text_ids must be 45 .* got 45, 44"),
            (dict(absent=()), f"captions {min(ABSENT)} of eccv are not in the gallery"),
            (dict(scores=scores * np.nan), "NaN"), (dict(ks=(0,)), "k must be an integer >= 1")]:
        with pytest.raises(ValueError, match=message):
            eccv_table(**dict(scores=scores, image_ids=image_ids, text_ids=text_ids,
                              truth_sets=sets) | change)


def test_a_match_outside_the_gallery_is_an_error_unless_it_is_known_to_be_absent():
    scores, image_ids, text_ids, sets = small_scores(4, ties=False)
    sets.eccv.i2t[image_ids[3]].append(123456)
    with pytest.raises(ValueError, match="captions 123456 of eccv are not in the gallery"):
        eccv_table(scores, image_ids, text_ids, sets)
    table = eccv_table(scores, image_ids, text_ids, sets, absent=ABSENT | {123456})
    assert table == pytest.approx(oracle(scores.tolist(), image_ids, text_ids, sets), abs=1e-12)


def test_ground_truth_that_contradicts_itself_is_refused():
    image_ids, text_ids, sets = small_sets()
    two = sets.coco.t2i | {text_ids[0]: image_ids[:2]}
    with pytest.raises(ValueError, match=f"one image; {text_ids[0]} have not"):
        dataclasses.replace(sets, coco=Judged(sets.coco.i2t, two))
    with pytest.raises(ValueError, match="each caption of `coco` once; it has 44"):
        dataclasses.replace(sets, order=sets.order[:-1])
    torn = dataclasses.replace(sets, order=np.roll(sets.order, 1))
    with pytest.raises(ValueError, match="are in two folds"):
        eccv_table(np.zeros((15, 45)), image_ids, text_ids, torn)


def test_a_match_listed_twice_counts_once_in_r():
    assert module.sizes({7: [1, 1, 2], 8: [3]}, {8: 0, 9: 1, 7: 2}).tolist() == [1, 0, 2]


def test_without_the_package_one_is_told_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "PACKAGE", "eccv_caption_that_is_not_there")
    with pytest.raises(ValueError, match="pip install eccv-caption"):
        read_eccv()
    with pytest.raises(ValueError, match="missing .*original_image_to_caption.json.*coco_test_ids"):
        read_eccv(tmp_path)


@needs_package
def test_two_eccv_positives_are_outside_the_real_gallery():
    sets = read_eccv()
    outside = {t for x in sets.eccv.i2t.values() for t in x} - set(sets.order.tolist())
    assert outside == ABSENT and len(sets.coco.i2t) == 5000 and len(sets.order) == 25000


@needs_package
def test_the_real_ground_truth_on_a_matrix_of_its_size():
    """ECCV's own matches score highest: everything is found but the two that are not there."""
    sets = read_eccv()
    text_ids = sets.order.tolist()
    image_ids = list(dict.fromkeys(sets.coco.t2i[t][0] for t in text_ids))
    row, column = ({one: a for a, one in enumerate(ids)} for ids in (image_ids, text_ids))
    scores = np.zeros((5000, 25000), np.float32)
    for t, images in sets.coco.t2i.items():
        scores[row[images[0]], column[t]] = 1
    table = eccv_table(scores, image_ids, text_ids, sets)
    assert all(v == 1 for k, v in table.items() if "coco" in k)
    for image, texts in sets.eccv.i2t.items():
        scores[row[image], [column[t] for t in texts if t in column]] = 2
    for text, images in sets.eccv.t2i.items():
        scores[[row[i] for i in images], column[text]] = 3
    table = eccv_table(scores, image_ids, text_ids, sets)
    lost = sum(1 / len(sets.eccv.i2t[image]) for image in (575916, 421999)) / 1261
    assert table["t2i_eccv_map_at_r"] == table["t2i_eccv_r_precision"] == 1
    assert table["i2t_eccv_r1"] == 1
    assert table["i2t_eccv_r_precision"] == pytest.approx(1 - lost, abs=1e-12)


@needs_package
def test_equals_the_package_on_full_rankings():
    """Of 100 images a fold, with their captions: the package needs minutes for all 5,000."""
    sets = read_eccv()
    image_ids = list(dict.fromkeys(sets.coco.t2i[t][0] for t in sets.order.tolist()))
    special = {575916, 421999}  # whose lists hold the absent captions
    keep = [image for a in range(0, 5000, 1000)
            for image in sorted(image_ids[a:a + 1000], key=lambda i: i not in special)[:100]]
    small = cut(sets, set(keep))
    text_ids = small.order.tolist()
    rng = np.random.default_rng(0)
    scores = rng.permutation(len(keep) * len(text_ids)).reshape(len(keep), -1).astype(np.float32)
    for a, image in enumerate(keep):  # a model that knows something
        scores[a, np.isin(text_ids, small.cxc.i2t[image])] *= 4
    ours = eccv_table(scores, keep, text_ids, small)
    assert ours == pytest.approx(of_package(scores, keep, text_ids, small), abs=1e-12)
    assert {575916, 421999} <= small.eccv.i2t.keys()


def of_package(scores, image_ids, text_ids, sets):
    """What the package `eccv-caption` makes of the rankings, under our keys."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of optional packages that are absent
        from eccv_caption import Metrics
    package = Metrics()
    package.coco_ids = sets.order
    package.coco_gts, package.cxc_gts, package.eccv_gts = (
        judged._asdict() for judged in (sets.coco, sets.cxc, sets.eccv))
    i2t, t2i = ({q: [items[j] for j in order] for q, order in zip(
        queries, np.argsort(-matrix, axis=1), strict=True)} for queries, items, matrix in (
            (image_ids, text_ids, scores), (text_ids, image_ids, scores.T)))
    found = package.compute_all_metrics(
        i2t, t2i, target_metrics=("coco_1k_recalls", "coco_5k_recalls", "cxc_recalls", "eccv_r1",
                                  "eccv_map_at_r", "eccv_rprecision"))
    ours = {key.replace("coco_1k", "coco1k").replace("coco_5k", "coco5k").replace(
        "rprecision", "r_precision"): value for key, value in found.items()}
    return {f"{d}_{key}": value[d] for key, value in ours.items() for d in ("i2t", "t2i")}
