"""What re-ranking a test split gives a run, against loops; the bank is dev's, never test's."""

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from itr_study.data.batches import EncodedSplit
from itr_study.evaluation import measures
from itr_study.evaluation.evaluate import encode, evaluate, score
from itr_study.evaluation.measures import Scored
from itr_study.evaluation.table import retrieval_table
from itr_study.metrics import Scores, hubness, ranks
from itr_study.rerank import RERANKERS, Bank
from tests.oracles import fast, multi, reciprocal
from tests.small import SmallData, small_model

ORACLES = {"fast": fast, "reciprocal": reciprocal, "multi": multi}


def cosines(images, texts, seed):
    """(images, texts) cosines in which some texts are near to all images: hubs."""
    random = torch.Generator().manual_seed(seed)
    codes = [normalize(torch.randn(count, 5, generator=random), dim=1) for count in (images, texts)]
    hubs = torch.linspace(-0.2, 0.2, texts)
    return (0.8 * codes[0] @ codes[1].T + hubs).numpy()


@pytest.fixture(scope="module")
def scored():
    owner = np.repeat(np.arange(12), 2)
    split = EncodedSplit("test", owner, np.zeros((12, 1, 1, 2), np.float32))
    return Scored(cosines(12, 24, 0), split, Bank(images=cosines(9, 24, 1),
                                                  texts=cosines(12, 18, 2)))


def expected(i2t, t2i, owner):
    """Recalls, RSUM and hubness by metrics that have oracles of their own."""
    after = Scores(np.array(i2t), np.array(t2i))
    table = retrieval_table(ranks(after, owner)) | hubness(after)
    return {name: table[name] for name in measures.RECALLS + measures.HUBNESS}


@pytest.mark.parametrize("method", ORACLES)
def test_each_method_is_measured_as_its_oracle_would_be(scored, method):
    """Two of the oracles give the order of every list: as scores, falling by place."""
    table = measures.reranked(scored)
    i2t, t2i = ORACLES[method].oracle(scored.scores.tolist())
    if method != "fast":
        i2t, t2i = -np.argsort(i2t, axis=1), -np.argsort(t2i, axis=1).T
    after = expected(i2t, t2i, scored.split.image_of_text)
    assert {name: table[f"{method}_{name}"] for name in after} == pytest.approx(after)


def test_scores_that_are_no_cosines_are_re_ranked_too(scored):
    """A run of a model with another score failed after its training, since MR takes cosines."""
    wide = scored._replace(scores=30 * scored.scores / abs(scored.scores).max())
    unit = scored._replace(scores=wide.scores / 30)
    after, expected = measures.reranked(wide), measures.reranked(unit)
    assert {name: value for name, value in after.items() if name.startswith("multi_")} == {
        name: value for name, value in expected.items() if name.startswith("multi_")}
    assert after["fast_rsum"] != expected["fast_rsum"]  # whose scales are per unit of score


def test_the_bank_stands_in_for_the_other_queries(scored):
    """Each score beside itself and the bank's of the same candidate, one by one."""
    scores, bank, table = scored.scores.tolist(), scored.bank, measures.reranked(scored)
    i2t = [[fast.alone(s, bank.images[:, j].tolist(), 25, 25) for j, s in enumerate(row)]
           for row in scores]
    t2i = [[fast.alone(s, bank.texts[i].tolist(), 20, 20) for s in row]
           for i, row in enumerate(scores)]
    after = expected(i2t, t2i, scored.split.image_of_text)
    assert {name: table[f"fast_bank_{name}"] for name in after} == pytest.approx(after)
    assert any(table[f"fast_{name}"] != table[f"fast_bank_{name}"] for name in after)


def test_hubness_is_that_of_the_scores_before_and_after(scored):
    table, before = measures.reranked(scored), hubness(scored.scores)
    assert {name: table[name] for name in before} == before
    assert table["i2t_hubness"] > table["fast_i2t_hubness"] + 0.1


def test_without_other_queries_nothing_is_re_ranked(scored):
    assert measures.reranked(scored._replace(bank=None)) == hubness(scored.scores)


def test_its_columns_are_those_of_the_test_split_and_it_costs_seconds(scored):
    table = measures.reranked(scored)
    columns = measures.reranked_columns("scenes", "test")
    assert set(table) == set(columns) | set(measures.SECONDS)
    assert columns[:2] == ("i2t_hubness", "t2i_hubness") and len(columns) == 2 + 4 * 9
    assert {"fast_rsum", "fast_bank_t2i_r10", "multi_t2i_hubness"} <= set(columns)
    assert measures.SECONDS == ("seconds_fast", "seconds_reciprocal", "seconds_multi")
    assert all(table[name] >= 0 for name in measures.SECONDS)
    for split in ("dev", "train"):
        assert measures.reranked_columns("scenes", split) == ()


def test_seconds_are_those_beyond_counting_ranks(scored, monkeypatch):
    """On a clock that only ranks (1 second) and fast (5) move."""
    now = [0.0]

    def taking(seconds, function):
        def call(*arguments, **named):
            now[0] += seconds
            return function(*arguments, **named)
        return call

    monkeypatch.setattr(measures, "process_time", lambda: now[0])
    monkeypatch.setattr(measures, "ranks", taking(1.0, ranks))
    monkeypatch.setitem(measures.RERANKERS, "fast", taking(5.0, RERANKERS["fast"]))
    table = measures.reranked(scored)
    assert [table[name] for name in measures.SECONDS] == [5.0, 0.0, 0.0]


def test_a_model_is_re_ranked_by_the_queries_of_another_split():
    """The scores of dev's images with test's texts and of test's images with dev's texts."""
    model, splits = small_model().eval(), SmallData().splits
    dev = evaluate(model, splits["dev"])
    given = evaluate(model, splits["test"], measures_of="scenes", bank=dev)
    images, texts = encode(model, splits["test"])
    others = encode(model, splits["dev"])
    bank = Bank(images=score(model, others[0], texts), texts=score(model, images, others[1]))
    scores = score(model, images, texts)
    table = measures.measure(Scored(scores, splits["test"], bank), "scenes")
    spent = {name for name in table if name.startswith("seconds_")}
    assert given.costs.keys() == spent == set(measures.SECONDS) and not spent & set(given.table)
    assert {name: given.table[name] for name in table.keys() - spent} == {
        name: table[name] for name in table.keys() - spent}
    own = Bank(images=scores, texts=scores)  # of test itself, each query twice: other numbers
    wrong = measures.reranked(Scored(scores, splits["test"], own))
    assert wrong["fast_bank_i2t_hubness"] != given.table["fast_bank_i2t_hubness"]
