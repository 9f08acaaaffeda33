"""The mean of scores of several models: by hand, measured like a model, and of one split alone."""

import numpy as np
import pytest

from itr_study.evaluation.ensemble import bank_of, ensemble, mean
from itr_study.evaluation.evaluate import columns, encode, evaluate, score
from itr_study.evaluation.search import ALL, Searcher
from itr_study.lab.runs.data import dataset_of, encoded_data
from itr_study.lab.runs.run import build_model
from tests.small_runs import SMALL

VSEPP = SMALL.with_(model="vsepp", tokens="words", sentences=None,
                    model_arguments={"size": 8, "word_size": 5, "text": "bigru"})


def searcher(config=SMALL, seed=0, split="test"):
    data = encoded_data(config)
    return Searcher(build_model(config.with_(seed=seed), data.inputs).eval(), dataset_of(config),
                    data, split)


@pytest.fixture(scope="module")
def members():
    return {"a": searcher(), "b": searcher(seed=1), "c": searcher(VSEPP)}


def test_by_hand():
    assert mean([np.array([[0.5, 1]], np.float32), np.array([[0, 0.5]], np.float32),
                 np.array([[1, 0]], np.float32)]).tolist() == [[0.5, 0.5]]


def test_it_is_measured_like_one_model_and_records_its_members(members):
    both = ensemble(members)
    stacked = np.stack([one.scores for one in members.values()])
    np.testing.assert_allclose(both.scores, stacked.mean(axis=0, dtype=np.float64), atol=1e-6)
    assert both.scores.dtype == np.float32 and both.members == ("a", "b", "c")
    assert both.row["members"] == "a + b + c" and list(both.row)[1:] == list(both.table)
    assert set(both.table) == set(columns("scenes", "test")) and both.costs
    places = [1 + (np.delete(both.scores[:, t], i) >= both.scores[i, t]).sum()
              for t, i in enumerate(members["a"].split.image_of_text)]
    assert both.ranks.t2i.tolist() == places
    assert both.table["t2i_r5"] == pytest.approx(100 * np.mean(np.array(places) <= 5))


def test_other_queries_are_scored_by_all_members_too(members):
    """Of dev: its images with test's texts, and test's images with its texts."""
    found, expected = bank_of(list(members.values())), []
    for one in members.values():
        images, texts = encode(one.model, one.data.splits["dev"])
        expected.append((score(one.model, images, one.texts), score(one.model, one.images, texts)))
    for ours, parts in zip((found.images, found.texts), zip(*expected, strict=True), strict=True):
        np.testing.assert_allclose(ours, np.mean([part.numpy() for part in parts], axis=0),
                                   atol=1e-6)


@pytest.mark.parametrize("split", ["test", "dev"])
def test_of_a_model_with_itself_is_the_model(split):
    one = searcher(split=split)
    bank = evaluate(one.model, one.data.splits["dev"]) if split == "test" else None
    alone = evaluate(one.model, one.encoded, measures_of="scenes", bank=bank)
    twice = ensemble({"one": one, "other": searcher(split=split)})
    assert twice.table == pytest.approx(alone.table, abs=1e-9)
    assert set(twice.costs) == set(alone.costs)


def test_the_order_of_members_changes_nothing(members):
    turned = ensemble(dict(reversed(members.items())))
    assert turned.table == pytest.approx(ensemble(members).table)
    assert turned.row["members"] == "c + b + a"


def test_without_measures_it_is_the_retrieval_table(members):
    short = ensemble(members, measures=False)
    assert set(short.table) < set(columns("scenes", "test")) and not short.costs
    assert short.table["rsum"] == ensemble(members).table["rsum"]


def test_the_scores_of_members_stay_as_they_are(members):
    before = {name: one.scores.copy() for name, one in members.items()}
    ensemble(members)
    assert all(np.array_equal(one.scores, before[name]) for name, one in members.items())


def test_different_data_is_refused_by_its_name(members):
    other = searcher(SMALL.with_(data_options={"train": 24, "dev": 10, "test": 12}))
    with pytest.raises(ValueError, match=r"a searches test of scenes \(10 images.*x searches test "
                                         r"of scenes \(12 images.*same dataset and data_options"):
        ensemble({"a": members["a"], "x": other})
    with pytest.raises(ValueError, match="a searches test of .*x searches dev of "):
        ensemble({"a": members["a"], "x": searcher(split="dev")})
    with pytest.raises(ValueError, match="x searches all of scenes"):
        ensemble({"a": members["a"], "x": searcher(split=ALL)})


def test_one_member_and_members_that_are_none_are_refused(members):
    with pytest.raises(ValueError, match="at least two members, got 1: a"):
        ensemble({"a": members["a"]})
    with pytest.raises(ValueError, match="at least two members, got 0: none"):
        ensemble({})
    with pytest.raises(ValueError, match="members must be Searchers.*'x': a ndarray"):
        ensemble({"a": members["a"], "x": members["b"].scores})
    with pytest.raises(ValueError, match="'a . b'"):
        ensemble({"a + b": members["a"], "x": members["b"]})


def test_a_score_that_is_no_number_is_refused(members):
    broken = searcher()
    vars(broken)["scores"] = np.where(np.arange(broken.scores.size).reshape(
        broken.scores.shape) == 7, np.nan, broken.scores)
    with pytest.raises(ValueError, match="NaN|nan"):
        ensemble({"a": members["a"], "x": broken})
