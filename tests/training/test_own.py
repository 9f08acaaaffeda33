"""What a user brings to `fit`: a model that returns tensors, a loss that is a function, and data
that may not be encoded yet; every mistake on the way gets a sentence."""

import numpy as np
import pytest
import torch
from torch import nn

from itr_study.data import load_dataset
from itr_study.data.batches import EncodedSplit
from itr_study.evaluation.evaluate import evaluate
from itr_study.evaluation.search import Searcher
from itr_study.features.dataset import encode_dataset
from itr_study.models import MODELS
from itr_study.models.base import ModelOutput, RetrievalModel
from itr_study.models.two_branch import TwoBranch
from itr_study.training.loop import fit
from itr_study.training.objective import Objective, Term
from itr_study.training.settings import Settings
from tests.small import SmallData, SmallLoss, SmallModel, small_model

TWO = Settings(epochs=2, batch_size=16)


class TensorModel(SmallModel):
    """Scores as a plain tensor."""

    def score(self, images, texts):
        return images @ texts.T


class TransposedModel(SmallModel):
    """Scores with texts down and images across."""

    def score(self, images, texts):
        return texts @ images.T


class NumberModel(SmallModel):
    """No scores at all."""

    def score(self, images, texts):
        return [[0.0]]


def two_epochs(model: nn.Module) -> list[float]:
    torch.manual_seed(0)
    return [row["loss"] for row in fit(model, SmallLoss(), SmallData(), TWO).rows]


def of_the_same_weights(kind: type[SmallModel]) -> SmallModel:
    torch.manual_seed(0)
    return kind()


def test_a_tensor_is_scores_for_fit_and_evaluate():
    plain, full = of_the_same_weights(TensorModel), of_the_same_weights(SmallModel)
    assert two_epochs(plain) == two_epochs(full)
    split = SmallData().splits["test"]
    assert evaluate(plain, split).table == evaluate(full, split).table


def test_a_retrieval_model_may_return_a_tensor_too():
    class Own(RetrievalModel):
        def encode_images(self, batch):
            return batch.regions.mean(dim=1)

        def encode_texts(self, batch):
            return torch.ones(len(batch.text_ids), batch.regions.shape[2])

        def score(self, images, texts):
            return images @ texts.T

    batch = SmallData().splits["train"].pair_batch(np.arange(4))
    assert isinstance(Own()(batch), ModelOutput) and Own()(batch).scores.shape == (4, 4)


@pytest.mark.parametrize(("kind", "message"), [
    (TransposedModel, r"score of TransposedModel must give \(images, texts\) = \(18, 54\), got "
                      r"\(54, 18\)"),
    (NumberModel, "score of NumberModel must return a tensor .* or a ModelOutput, got a list"),
])
def test_scores_of_another_kind_or_shape_are_refused(kind, message):
    with pytest.raises(ValueError, match=message):
        evaluate(kind(), SmallData().splits["test"])


def test_a_model_without_the_three_methods_is_told_which():
    for use in (lambda model: fit(model, SmallLoss(), SmallData(), TWO),
                lambda model: evaluate(model, SmallData().splits["test"])):
        with pytest.raises(ValueError, match=r"Linear has no encode_images, encode_texts, score; "
                                             r"a model has encode_images\(batch\)"):
            use(nn.Linear(2, 2))


def test_a_function_is_a_loss():
    def hinge(scores, relevance):
        return SmallLoss()(scores, relevance)

    plain, full = of_the_same_weights(SmallModel), of_the_same_weights(SmallModel)
    history = fit(plain, hinge, SmallData(), TWO)
    assert [row["loss"] for row in history.rows] == two_epochs(full)
    assert "hinge" in history.rows[0]
    both = Objective([Term(hinge), Term("triplet_sum", 0.5)])
    assert both.names == ["hinge", "triplet_sum"]
    with pytest.raises(ValueError, match="an objective takes the name of one, .* list of Term, .* "
                                         "got 3"):
        fit(plain, 3, SmallData(), TWO)


@pytest.fixture(scope="module")
def scenes():
    return load_dataset("scenes", train=24, dev=10, test=10)


def test_data_that_is_not_encoded_gets_the_remedy(scenes):
    for data in (scenes, scenes.splits["train"], "scenes", None):
        with pytest.raises(ValueError, match=r"data must be encoded: .*encode_dataset\(dataset\)"):
            fit(small_model(), SmallLoss(), data, TWO)


def test_a_data_set_is_loaded_then_encoded_then_its_inputs_make_a_model(scenes):
    with pytest.raises(ValueError, match=r"takes load_dataset\(name\); got str"):
        encode_dataset("scenes")
    for name, model in MODELS.items():
        with pytest.raises(ValueError, match=rf'"{name}"\] takes data.inputs, of .* got Retriev'):
            model(scenes)


def test_evaluate_takes_one_encoded_split(scenes):
    for data in (scenes, scenes.splits["test"]):
        with pytest.raises(ValueError, match=r"split must be encoded: .*encode_dataset\(dataset\)"):
            evaluate(small_model(), data)
    with pytest.raises(ValueError, match=r'takes one split, such as data.splits\["test"\]'):
        evaluate(small_model(), SmallData())


def test_data_without_a_train_split_is_refused():
    data = SmallData()
    del data.splits["train"]
    with pytest.raises(ValueError, match="has no train split, only dev, test"):
        fit(small_model(), SmallLoss(), data, TWO)


def test_features_that_come_with_the_data_are_the_default(scenes, store):
    data, asked = encode_dataset(scenes), encode_dataset(scenes, images="detector")
    assert data.key == asked.key and isinstance(data.splits["train"], EncodedSplit)
    np.testing.assert_array_equal(data.splits["test"].regions, asked.splits["test"].regions)
    assert not (store / "features").exists()  # no network has run


def test_a_searcher_takes_a_model_that_returns_tensors(scenes, store):
    class TensorBranches(TwoBranch):
        def score(self, images, texts):
            return super().score(images, texts).scores

    data = encode_dataset(scenes, sentences="glove-mean", tokens=None)
    model = TensorBranches(data.inputs, size=8, hidden=16).eval()
    hits = Searcher(model, scenes, data).search_text("a red boat", top=3)
    assert [hit.rank for hit in hits] == [1, 2, 3]


class NamedLoss(nn.Module):
    """A loss of somebody who knows nothing of `RankingLoss`, but for its attributes."""

    name, relevance_scale, takes = "mine", "unit", "scores"

    def forward(self, scores, relevance):
        return SmallLoss()(scores, relevance)

    def diagnose(self, scores, relevance):
        return self(scores, relevance), {"largest": scores.detach().amax()}


def test_what_an_own_loss_declares_counts():
    history = fit(small_model(), NamedLoss(), SmallData(), TWO)
    assert {"mine", "mine.largest"} <= set(history.rows[0])
    of_cosines = NamedLoss()
    of_cosines.relevance_scale = "cosine"
    with pytest.raises(ValueError, match="mine compares graded labels, and this source gives bina"):
        Objective([Term(of_cosines, labels="binary")])


def test_hooks_of_an_own_loss_are_called():
    """As of any module: a hook may log, or change what the loss gives."""
    class Plain(nn.Module):
        def forward(self, scores, relevance):
            return SmallLoss()(scores, relevance)

    seen, doubled = [], Plain()
    doubled.register_forward_hook(lambda module, given, value: seen.append(value) or 2 * value)
    once, twice = (Objective([Term(loss)]) for loss in (Plain(), doubled))
    batch = SmallData().splits["train"].pair_batch(np.arange(4))
    output = ModelOutput(torch.rand(4, 4, generator=torch.Generator().manual_seed(0)))
    value = once(output, batch, None)[0].item()
    assert twice(output, batch, None)[0].item() == pytest.approx(2 * value) and value > 0
    assert len(seen) == 1
