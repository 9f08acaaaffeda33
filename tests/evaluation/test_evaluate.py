from contextlib import contextmanager

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import normalize

from itr_study.data.batches import EncodedSplit
from itr_study.evaluation import evaluate as evaluation
from itr_study.evaluation import measures
from itr_study.evaluation.evaluate import encode, evaluate, join, placed, score
from itr_study.metrics import Scores, ranks
from itr_study.metrics.entropy import score_entropy
from itr_study.models import MODELS as REGISTERED
from itr_study.models.base import ModelOutput
from tests.small import SIZE, WORDS, SmallData, small_model


class WordModel(nn.Module):
    """Scores every word against the image: its codes have a word axis and a mask."""

    def __init__(self):
        super().__init__()
        self.image, self.words = nn.Linear(6, SIZE), nn.Embedding(WORDS, SIZE)

    def encode_images(self, batch):
        return normalize(self.image(batch.regions.mean(dim=1)), dim=1)

    def encode_texts(self, batch):
        mask = torch.arange(batch.tokens.shape[1])[None, :] < batch.lengths[:, None]
        return self.words(batch.tokens), mask  # (T, W, D), (T, W)

    def score(self, images, texts):
        words, mask = texts
        each = torch.einsum("id,twd->itw", images, words).masked_fill(~mask, -torch.inf)
        return ModelOutput(scores=each.amax(dim=2))


MODELS = {"plain": small_model, "words": WordModel}


@pytest.mark.parametrize("name", MODELS)
def test_codes_and_scores_keep_the_order_of_the_split(name):
    torch.manual_seed(0)
    model, dev = MODELS[name]().eval(), SmallData().splits["dev"]
    found = score(model, *encode(model, dev))
    assert found.shape == (dev.n_images, dev.n_texts) and found.dtype == torch.float32
    for image, text in ((0, 0), (3, 17), (17, 53)):
        with torch.no_grad():
            one = model.score(model.encode_images(dev.image_batch(np.array([image]))),
                              model.encode_texts(dev.text_batch(np.array([text])))).scores
        assert found[image, text].item() == pytest.approx(one.item(), abs=1e-6)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_block_size_never_changes_a_result(monkeypatch, name, size):
    """Ranks are equal; scores to the last bits that a matrix product of another shape rounds: so
    ranks of rounded scores, for texts that share their best word tie, and the last bit parts them
    on some CPUs (AVX2)."""
    torch.manual_seed(0)
    model, dev = MODELS[name](), SmallData().splits["dev"]
    before = evaluate(model, dev)
    scores = score(model, before.images, before.texts)
    monkeypatch.setattr(evaluation, "BLOCK", size)
    monkeypatch.setattr(evaluation, "TEXT_BLOCK", size)
    after = evaluate(model, dev)
    again = score(model, after.images, after.texts)
    torch.testing.assert_close(again, scores, rtol=0, atol=1e-6)
    expected, found = (ranks(s.round(decimals=4), dev.image_of_text) for s in (scores, again))
    assert (found.i2t == expected.i2t).all() and (found.t2i == expected.t2i).all()
    assert after.table == pytest.approx(before.table, rel=0.02)


def test_scoring_says_how_many_pairs_are_done(monkeypatch):
    done = []

    @contextmanager
    def counted(label, total, unit):
        done.append((label, total, unit))
        yield done.append

    monkeypatch.setattr(evaluation, "counting_if_slow", counted)
    monkeypatch.setattr(evaluation, "BLOCK", 10)
    monkeypatch.setattr(evaluation, "TEXT_BLOCK", 50)
    model, dev = small_model(), SmallData().splits["dev"]  # 18 images, 54 texts
    score(model, *encode(model, dev))
    assert done == [("scoring", 972, "pairs"), 500, 900, 940, 972]


def test_padding_of_joined_codes_is_exact():
    """Tolerance 0: the longer word axis of another block adds nothing but masked zeros."""
    torch.manual_seed(0)
    model, dev = WordModel(), SmallData().splits["dev"]
    images, (words, mask) = encode(model, dev)
    wider = (torch.nn.functional.pad(words, [0, 0, 0, 5]), torch.nn.functional.pad(mask, [0, 5]))
    assert torch.equal(score(model, images, wider), score(model, images, (words, mask)))


def test_join_pads_the_axes_that_differ():
    joined = join([torch.ones(2, 3, 4), torch.ones(1, 5, 4)])
    assert joined.shape == (3, 5, 4)
    assert joined[:2, 3:].abs().sum() == 0 and joined.sum() == 2 * 12 + 20
    left, right = join([(torch.ones(1, 2), torch.ones(1, dtype=torch.bool))] * 2)
    assert left.shape == (2, 2) and right.dtype == torch.bool


def test_the_table_agrees_with_ranks_by_hand():
    dev = SmallData().splits["dev"]
    found = evaluate(small_model(), dev)
    scores = (found.images @ found.texts.T).numpy()
    best = [1 + sum(scores[i, t] >= scores[i, dev.image_of_text == i].max()
                    for t in range(dev.n_texts) if dev.image_of_text[t] != i)
            for i in range(dev.n_images)]
    assert list(np.asarray(found.ranks.i2t)) == best
    assert found.table["i2t_r5"] == pytest.approx(100 * np.mean(np.array(best) <= 5))
    assert found.table["rsum"] == pytest.approx(sum(
        v for k, v in found.table.items() if k[4:] in ("r1", "r5", "r10")))


def test_evaluation_leaves_mode_and_random_state_alone():
    model = small_model().train()
    state = torch.get_rng_state()
    first, second = (evaluate(model, SmallData().splits["dev"]).table for _ in range(2))
    assert model.training and torch.equal(state, torch.get_rng_state()) and first == second
    assert model.words.weight.grad is None


def test_every_module_has_its_own_mode_again():
    """A part may be frozen, or forgotten in training; what is asked may change modes, or raise."""
    for own, part in ((True, False), (False, True), (False, False), (True, True)):
        model = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.Dropout()).train(own)
        model[1].training = part
        with pytest.raises(RuntimeError, match="amid"), evaluation.evaluating(model):
            assert not any(module.training for module in model.modules())
            model.train()
            raise RuntimeError("amid")
        assert [module.training for module in model.modules()] == [own, own, part]


def test_measures_are_taken_only_when_asked():
    model, dev = small_model(), SmallData().splits["dev"]
    assert tuple(evaluate(model, dev).table) == evaluation.RETRIEVAL
    dev.relevance = measures.Truth(dev.image_of_text, dev.n_images).relevance(slice(None))
    assert tuple(evaluate(model, dev).table) == evaluation.RETRIEVAL
    table = evaluate(model, dev, measures_of="scenes").table
    assert tuple(table) == evaluation.columns("scenes", "dev")
    assert 0 < table["t2i_ndcg_exact"] < 100 and -100 <= table["i2t_tau_exact"] <= 100


def test_scores_that_are_not_finite_are_refused():
    model = small_model()
    with torch.no_grad():
        model.words.weight.fill_(torch.nan)
    with pytest.raises(ValueError):
        evaluate(model, SmallData().splits["dev"])


def test_of_two_matrices_each_direction_is_ranked_by_its_own():
    """Four images with a text each: images find theirs first, texts find theirs last."""
    split = EncodedSplit("test", np.arange(4), np.zeros((4, 1, 1, 2), np.float32))
    right, wrong = np.eye(4, dtype=np.float32), -np.eye(4, dtype=np.float32)
    for i2t, t2i, of_images, of_texts in ((right, wrong, 1, 4), (wrong, right, 4, 1)):
        table, best = evaluation.evaluate_scores(Scores(i2t, t2i), split)
        assert best.i2t.tolist() == [of_images] * 4 and best.t2i.tolist() == [of_texts] * 4
        assert (table["i2t_medr"], table["t2i_medr"]) == (of_images, of_texts)
        assert table["rsum"] == 100 * (3 + 1 + 1)  # R@5 and R@10 of four are full


@pytest.mark.parametrize("name", ["dvse", "pvse"])
def test_heads_are_scored_with_all_texts_however_they_are_cut(name, monkeypatch):
    """The entropy of a test split is that of the model's own scores of all pairs at once."""
    data = SmallData()
    torch.manual_seed(0)
    net = REGISTERED[name](data.inputs, size=8, heads=3, word_size=6, text="gru")
    monkeypatch.setattr(evaluation, "HEAD_BLOCK", 2)
    found = evaluate(net, data.splits["test"], measures_of="scenes")
    with evaluation.evaluating(net):
        heads = net.score(found.images, found.texts).head_scores
    owner = data.splits["test"].image_of_text
    each = [score_entropy(one, owner) for one in heads]
    assert found.table["entropy"] == pytest.approx(np.mean([one.nats for one in each]))
    assert found.table["entropy_noise"] == pytest.approx(100 * np.mean([one.noise for one in each]))
    assert "entropy" not in evaluate(net, data.splits["dev"], measures_of="scenes").table


def test_codes_are_put_in_place_however_wide():
    """As if joined and sorted: here the first block is not the widest."""
    blocks = {(2, 0): 2, (1, 3): 4, (4,): 3}
    codes = {rows: (torch.rand(len(rows), width), torch.ones(len(rows), dtype=torch.bool))
             for rows, width in blocks.items()}
    whole = None
    for rows, code in codes.items():
        whole = placed(whole, code, torch.tensor(rows), 5)
    order = torch.tensor([row for rows in blocks for row in rows]).argsort()
    assert all((one == other[order]).all()
               for one, other in zip(whole, join([*codes.values()]), strict=True))
    assert whole[0].shape == (5, 4) and whole[1].dtype == torch.bool
