import os
import signal
import sys
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from itr_study.models.base import ModelOutput
from itr_study.training import loop
from itr_study.training.interrupts import Interrupted, OutOfMemory
from itr_study.training.loop import Diverged, fit, forward
from itr_study.training.objective import Objective, Term
from itr_study.training.sampling import epoch_samples
from itr_study.training.settings import Settings, build_optimizer, learning_rate
from itr_study.training.state import History
from tests.posix import posix_only
from tests.small import SmallData, SmallLoss, SmallModel, small_model

SETTINGS = Settings(epochs=4, batch_size=8, learning_rate=0.02)


def weights(model):
    return {k: v.clone() for k, v in model.state_dict().items()}


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert torch.equal(one[name], other[name]), name


class StopAt(SmallLoss):
    """Raises, or sends this process a signal, at the n-th step."""

    def __init__(self, step, action):
        super().__init__()
        self.left, self.action = step, action

    def forward(self, scores, relevance):
        self.left -= 1
        if self.left == 0:
            self.action()
        return super().forward(scores, relevance)


def fail():
    raise RuntimeError("the machine is gone")


def test_own_model_and_own_loss_learn_without_registration():
    model = small_model()
    epochs = []
    history = fit(model, SmallLoss(), SmallData(), SETTINGS.model_copy(update={"epochs": 15}),
                  seed=1, on_epoch=lambda history: epochs.append(len(history.rows)))
    table = history.table()
    assert epochs == list(range(1, 16)) and list(table["epoch"]) == epochs
    assert table["loss"].iloc[-1] < 0.7 * table["loss"].iloc[0]
    assert table["dev_rsum"].iloc[-1] > table["dev_rsum"].iloc[0] + 50
    assert (table["score_std"] > 0.01).all()
    assert history.best_epoch == 1 + table["dev_rsum"].to_numpy().argmax()


def test_the_best_epoch_is_what_the_model_ends_with():
    kept = []
    model = small_model()
    history = fit(model, SmallLoss(), SmallData(), SETTINGS, seed=1,
                  on_epoch=lambda history: kept.append(weights(model)))
    assert history.best_epoch < 4  # else this test shows nothing
    assert_same(weights(model), kept[history.best_epoch - 1])
    last = small_model()
    history = fit(last, SmallLoss(), SmallData(),
                  SETTINGS.model_copy(update={"select": "last"}), seed=1)
    assert history.best_epoch == 4
    assert_same(weights(last), kept[-1])


def test_of_equal_epochs_the_first_is_the_best():
    history = History()
    better = [history.add({"dev_rsum": rsum}, "rsum", warmup=0) for rsum in (5.0, 5.0, 6.0, 6.0)]
    assert better == [True, False, True, False] and history.best_epoch == 3


def test_patience_stops_early():
    settings = Settings(epochs=50, batch_size=8, learning_rate=1e-12, patience=3)
    history = fit(small_model(), SmallLoss(), SmallData(), settings)
    assert len(history.rows) == history.best_epoch + 3 < 50


def test_the_seed_decides_everything():
    def trained(seed):
        model = small_model()
        fit(model, SmallLoss(), SmallData(), SETTINGS, seed=seed)
        return weights(model)

    assert_same(trained(1), trained(1))
    assert not torch.equal(trained(1)["words.weight"], trained(2)["words.weight"])


def test_a_model_that_was_evaluated_before_is_trained_with_dropout():
    fresh, evaluated = small_model(), small_model().eval()
    for model in (fresh, evaluated):
        fit(model, SmallLoss(), SmallData(), SETTINGS)
    assert_same(weights(fresh), weights(evaluated))


@pytest.mark.parametrize("optimizer,save_seconds,step", [  # 9 steps an epoch
    ("adamw", 0.0, 2), ("adamw", 0.0, 9), ("adamw", 0.0, 10), ("adamw", 0.0, 31),
    ("adamw", 1e9, 11), ("sgd", 0.0, 11)])
def test_resume_is_bit_equal(tmp_path, optimizer, save_seconds, step):
    settings = SETTINGS.model_copy(update={"optimizer": optimizer})
    whole = small_model()
    expected = fit(whole, StopAt(-1, fail), SmallData(), settings, seed=1)
    if optimizer == "adamw":  # after 31 steps the best epoch is behind
        assert expected.best_epoch < 4
    with pytest.raises(RuntimeError, match="the machine is gone"):
        fit(small_model(), StopAt(step, fail), SmallData(), settings, seed=1, folder=tmp_path,
            save_seconds=save_seconds)
    # where there is a checkpoint its weights count, not those of the model
    again = small_model(seed=0 if save_seconds else 99)
    found = fit(again, StopAt(-1, fail), SmallData(), settings, seed=1, folder=tmp_path)
    assert_same(weights(whole), weights(again))
    for one, other in zip(expected.rows, found.rows, strict=True):
        assert {**one, "seconds": 0} == {**other, "seconds": 0}
    assert expected.best_epoch == found.best_epoch


def test_a_finished_training_is_not_trained_again(tmp_path):
    first, second = small_model(), small_model(seed=5)
    fit(first, SmallLoss(), SmallData(), SETTINGS, folder=tmp_path)
    fit(second, StopAt(1, fail), SmallData(), SETTINGS, folder=tmp_path)
    assert_same(weights(first), weights(second))


@posix_only
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_at_the_end_of_the_step(tmp_path, number):
    before = signal.getsignal(number)
    with pytest.raises(Interrupted, match="epoch 2 after 3 steps"):
        fit(small_model(), StopAt(12, lambda: os.kill(os.getpid(), number)), SmallData(),
            SETTINGS, seed=3, folder=tmp_path)
    assert signal.getsignal(number) is before
    counted = StopAt(-1, fail)
    whole, resumed = small_model(), small_model(seed=99)
    fit(whole, SmallLoss(), SmallData(), SETTINGS, seed=3)
    fit(resumed, counted, SmallData(), SETTINGS, seed=3, folder=tmp_path)
    assert -1 - counted.left == 4 * 9 - 12
    assert_same(weights(whole), weights(resumed))


def test_another_training_in_the_folder_is_refused(tmp_path):
    fit(small_model(), SmallLoss(), SmallData(), SETTINGS, folder=tmp_path)
    other = SETTINGS.model_copy(update={"learning_rate": 0.5})
    with pytest.raises(ValueError, match="learning_rate was 0.02, is 0.5"):
        fit(small_model(), SmallLoss(), SmallData(), other, folder=tmp_path)
    with pytest.raises(ValueError, match="seed was 0, is 1"):
        fit(small_model(), SmallLoss(), SmallData(), SETTINGS, seed=1, folder=tmp_path)
    with pytest.raises(ValueError, match="data was '0123456789abcdef', is 'altered'"):
        fit(small_model(), SmallLoss(), SmallData(key="altered"), SETTINGS, folder=tmp_path)


class NaNAt(StopAt):
    """Returns a loss that is not finite, or one whose gradient is not, at the n-th step."""

    def forward(self, scores, relevance):
        self.left -= 1
        loss = SmallLoss.forward(self, scores, relevance)
        if self.left == 0:
            return loss * torch.nan if self.action == "loss" else loss + (scores * 0).sqrt().sum()
        return loss


@pytest.mark.parametrize("kind", ["loss", "gradient"])
def test_the_first_non_finite_loss_ends_the_training(kind):
    model = small_model()
    data = SmallData()
    with pytest.raises(Diverged) as caught:
        fit(model, NaNAt(12, kind), data, SETTINGS, seed=3)
    texts = epoch_samples(data.splits["train"], SETTINGS, 3, 1)[2].texts
    first = ", ".join(map(str, texts[:3]))
    assert f"the {kind} is not finite" in str(caught.value)
    assert f"in epoch 2, step 3, texts {first} and {len(texts) - 3} more;" in str(caught.value)
    assert all(value.isfinite().all() for value in model.state_dict().values())


class TooLarge:
    """Labels that no loss takes."""

    scale = "binary"

    def __call__(self, batch, split):
        return 3 * batch.match.float()


@pytest.mark.parametrize(("term", "wrong"), [
    (Term("topk", arguments={"k": 9}), "k = 9, but a query has only"),
    (Term("triplet_sum", labels=TooLarge()), "exactly 1 for a match.*to 3.0")])
def test_what_a_loss_refuses_ends_the_training_before_a_weight_is_touched(term, wrong):
    """Its checks are read with all else that a step says, after backward."""
    model = small_model()
    before = weights(model)
    with pytest.raises(ValueError, match=wrong):
        fit(model, Objective([term]), SmallData(), SETTINGS)
    for name, value in model.named_parameters():
        assert torch.equal(before[name], value), name


def test_out_of_memory_is_a_clear_failure():
    def burst():
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

    with pytest.raises(OutOfMemory, match="batch_size=8. The batch is not made smaller"):
        fit(small_model(), StopAt(3, burst), SmallData(), SETTINGS)


class WatchPrecision(SmallModel):
    """Notes the type of what it scores and whether autocast is on there."""

    def encode_images(self, batch):
        self.encoded = self.image(batch.regions.mean(dim=1))
        return self.encoded

    def score(self, images, texts):
        self.seen = (images.dtype, texts.dtype, torch.is_autocast_enabled("cpu"))
        return ModelOutput(scores=images @ texts.T)


@pytest.mark.parametrize("precision,encoded", [("float32", torch.float32),
                                               ("bfloat16", torch.bfloat16)])
def test_only_encoders_run_in_bfloat16(precision, encoded):
    model = WatchPrecision()
    batch = SmallData().splits["train"].pair_batch(np.arange(4), np.zeros(4, np.int64))
    output = forward(model, batch, precision)
    assert model.encoded.dtype == encoded
    assert model.seen == (torch.float32, torch.float32, False)
    assert output.scores.dtype == torch.float32


class Constant(SmallLoss):
    """Another loss, to see which one is used when."""

    def forward(self, scores, relevance):
        return 7 + 0 * scores.sum()


class Joining(SmallLoss):
    """Sees what a loss that joins texts is given."""

    takes, joins = "output", True

    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, output, relevance):
        self.seen.append(output)
        return super().forward(output.joined_scores, relevance)


def test_a_loss_that_joins_texts_gets_those_of_the_image_of_each_text():
    split, model = SmallData().splits["train"], small_model().eval()
    batch = split.pair_batch(np.array([3, 0, 5, 1, 9]))  # of images 1, 0, 1, 0 and 3
    plain, output = forward(model, batch), forward(model, batch, joins=True)
    assert plain.joined_scores is plain.joined_vectors is plain.text_vectors is None
    assert torch.equal(plain.scores, output.scores)
    assert torch.equal(output.text_vectors, model.encode_texts(batch))
    for text, siblings in ((0, (3, 5)), (1, (0, 1)), (2, (3, 5)), (3, (0, 1)), (4, (9,))):
        words = torch.tensor(np.concatenate([split.tokens[other] for other in siblings]))
        vector = torch.nn.functional.normalize(model.words(words).mean(dim=0), dim=0)
        torch.testing.assert_close(output.joined_vectors[text], vector)
        torch.testing.assert_close(output.joined_scores[:, text],
                                   model.encode_images(batch) @ vector)


def test_texts_are_joined_in_a_training_whose_loss_says_so():
    for term, joins in ((Joining(), True), ("triplet_sum", False)):
        objective = Objective([Term(term)])
        assert objective.joins == joins
        history = fit(small_model(), objective, SmallData(), SETTINGS, seed=1)
        assert history.rows[-1]["loss"] < history.rows[0]["loss"]
        assert not joins or all(output.joined_scores.shape == output.scores.shape
                                for output in term.seen)


def test_texts_are_joined_for_models_with_one_vector_of_a_text_alone():
    class Several(SmallModel):
        def encode_texts(self, batch):
            return super().encode_texts(batch)[:, None]

        def score(self, images, texts):
            return super().score(images, texts[:, 0])

    with pytest.raises(ValueError, match="one vector of a text, such as vsepp or dvse.* got Seve"):
        fit(Several(), Joining(), SmallData(), SETTINGS)


def test_warm_up_uses_its_own_objective():
    settings = SETTINGS.model_copy(update={"warmup_epochs": 2})
    history = fit(small_model(), SmallLoss(), SmallData(), settings, warmup_objective=Constant())
    assert [row["loss"] == 7 for row in history.rows] == [True, True, False, False]
    with pytest.raises(ValueError, match="warmup_epochs=2 needs a warmup_objective"):
        fit(small_model(), SmallLoss(), SmallData(), settings)
    with pytest.raises(ValueError, match="warmup_objective needs warmup_epochs, got 0"):
        fit(small_model(), SmallLoss(), SmallData(), SETTINGS, warmup_objective=Constant())


def test_labels_of_the_objective_are_asked_before_its_warm_up():
    """Else a program that is not installed was missed after hours."""
    def absent(batch, split):
        raise ValueError("no `java` is on the PATH")
    absent.scale = "unit"
    told, settings = [], SETTINGS.model_copy(update={"warmup_epochs": 2})
    with pytest.raises(ValueError, match="no `java`"):
        fit(small_model(), [Term(SmallLoss(), labels=absent)], SmallData(), settings,
            warmup_objective=Constant(), on_epoch=told.append)
    assert not told


class Opposite(SmallLoss):
    """Unlearns what the loss teaches."""

    def forward(self, scores, relevance):
        return -super().forward(scores, relevance)


def test_the_best_epoch_is_one_of_the_objective_and_none_of_its_warm_up():
    """Else two losses that both spoil what their warm-up has learnt would get the same weights."""
    kept = []
    model, settings = small_model(), SETTINGS.model_copy(update={"warmup_epochs": 2})
    history = fit(model, Opposite(), SmallData(), settings, warmup_objective=SmallLoss(),
                  on_epoch=lambda history: kept.append(weights(model)))
    dev = history.table()["dev_rsum"]
    assert dev[:2].max() > dev[2:].max()  # else this test shows nothing
    assert history.best_epoch == 3 + dev[2:].to_numpy().argmax()
    assert_same(weights(model), kept[history.best_epoch - 1])


def test_patience_begins_after_the_warm_up():
    settings = Settings(epochs=50, batch_size=8, learning_rate=1e-12, patience=2, warmup_epochs=5)
    history = fit(small_model(), SmallLoss(), SmallData(), settings, warmup_objective=SmallLoss())
    assert history.best_epoch > 5 and len(history.rows) == history.best_epoch + 2


@pytest.mark.parametrize("seed", [-1, 2**63, 10**20, 1.5, True, "1"])
def test_a_seed_that_a_config_would_refuse_is_refused(seed):
    with pytest.raises(ValueError, match=rf"seed must be an integer >= 0 and <= {2**63 - 1}, got "):
        fit(small_model(), SmallLoss(), SmallData(), SETTINGS, seed=seed)


def test_without_dev_only_the_last_epoch_can_be_chosen():
    data = SmallData()
    del data.splits["dev"]
    with pytest.raises(ValueError, match="use Settings\\(select='last'\\)"):
        fit(small_model(), SmallLoss(), data, SETTINGS)
    history = fit(small_model(), SmallLoss(), data,
                  SETTINGS.model_copy(update={"select": "last"}))
    assert history.best_epoch == 4 and "dev_rsum" not in history.rows[0]
    with pytest.raises(ValueError, match="select must be one of .*, last; got 'mrr'"):
        fit(small_model(), SmallLoss(), SmallData(), SETTINGS.model_copy(update={"select": "mrr"}))


def test_one_thread_while_training():
    before = torch.get_num_threads()
    seen = []
    fit(small_model(), SmallLoss(), SmallData(), SETTINGS,
        on_epoch=lambda history: seen.append(torch.get_num_threads()))
    assert set(seen) == {1} and torch.get_num_threads() == before


@pytest.mark.parametrize("size,rest", [(8, 0), (16, 8), (13, 7), (50, 0), (100, 72)])
@pytest.mark.parametrize("bucket", [True, False])
def test_an_epoch_covers_all_texts_once(size, rest, bucket):
    """72 texts: a last batch of at least half the size is kept, a smaller one is left out."""
    train = SmallData().splits["train"]
    settings = Settings(batch_size=size, bucket=bucket)
    samples = epoch_samples(train, settings, seed=1, epoch=0)
    texts = np.concatenate([sample.texts for sample in samples])
    assert len(set(texts)) == len(texts) == 72 - (0 if rest else 72 % size)
    assert sorted({len(sample.texts) for sample in samples} - {size}) == ([rest] if rest else [])
    views = np.concatenate([sample.views for sample in samples])
    assert set(views) == {0, 1}
    again = epoch_samples(train, settings, seed=1, epoch=0)
    other = epoch_samples(train, settings, seed=1, epoch=1)
    assert all((a.texts == b.texts).all() for a, b in zip(samples, again, strict=True))
    assert any((a.texts != b.texts).any() for a, b in zip(samples, other, strict=True))


def test_buckets_hold_captions_of_like_length():
    train = SmallData().splits["train"]
    lengths = np.array([len(tokens) for tokens in train.tokens])

    def spread(bucket):
        samples = epoch_samples(train, Settings(batch_size=8, bucket=bucket), 1, 0)
        return np.mean([np.ptp(lengths[sample.texts]) for sample in samples])

    assert spread(True) < 0.5 * spread(False)
    assert spread(None) == spread(True)
    train.tokens = None
    assert spread(False) > 0
    with pytest.raises(ValueError, match="bucket=True sorts captions"):
        spread(True)


@pytest.mark.parametrize(("name", "told"), [
    ("bogus", "device must be one of auto, cpu, cuda; got 'bogus'"),
    ("meta", "device must be one of auto, cpu, cuda; got 'meta'"), ("cuda:99", "is not here"),
    ("mps" if sys.platform == "linux" else "cuda:98", "see why with: itr-study doctor")])
def test_a_device_that_is_not_here_is_refused(name, told):
    with pytest.raises(ValueError, match=told):
        fit(small_model(), SmallLoss(), SmallData(), Settings(epochs=1, batch_size=8), device=name)


def test_schedules_by_hand():
    at = {name: [learning_rate(Settings(schedule=name, epochs=4, learning_rate=1.0, decay=0.5,
                                        decay_epochs=2), epoch, 1, 2) for epoch in range(4)]
          for name in ("constant", "cosine", "exponential", "step")}
    assert at["constant"] == [1, 1, 1, 1]
    assert at["exponential"] == [1, 0.5, 0.25, 0.125]
    assert at["step"] == [1, 1, 0.5, 0.5]
    assert at["cosine"][1] == pytest.approx(0.5 * (1 + np.cos(np.pi * 1.5 / 4)))
    warm = Settings(warmup_steps=4, learning_rate=1.0)
    assert [learning_rate(warm, *place, 3) for place in ((0, 0), (0, 2), (1, 0), (1, 1))] == [
        0.25, 0.75, 1, 1]


def test_learning_rate_factors_follow_the_longest_prefix():
    factors = {"image": 0.5, "image.0": 0.0}
    groups = build_optimizer(small_model(), Settings(learning_rate_factors=factors)).param_groups
    assert {(group["factor"], len(group["params"])) for group in groups} == {
        (1.0, 1), (0.5, 4), (0.0, 2)}
    with pytest.raises(ValueError, match="no trainable parameter begins with bert"):
        build_optimizer(small_model(), Settings(learning_rate_factors={"bert": 0.1}))


@pytest.mark.parametrize("wrong,message", [
    ({"learing_rate": 0.1}, "did you mean 'learning_rate'"),
    ({"epochs": "7"}, "valid integer"),
    ({"learning_rate": -1.0}, "greater than 0"),
    ({"learning_rate": float("nan")}, "finite"),
    ({"optimizer": "adagrad"}, "adamw, adam, sgd"),
    ({"precision": "float16"}, "bfloat16"),
])
def test_wrong_settings_are_refused(wrong, message):
    with pytest.raises(ValidationError, match=message):
        Settings(**wrong)


def test_a_training_tells_how_far_it_is(monkeypatch):
    said = []

    @contextmanager
    def counting(label, total, unit):
        said.append((label, total, unit))
        yield lambda done, note: said.append((done, note))

    monkeypatch.setattr(loop, "counting", counting)
    history = fit(small_model(), SmallLoss(), SmallData(), Settings(epochs=2, batch_size=36))
    first = f"loss {history.rows[0]['loss']:.3f}, dev RSUM {history.rows[0]['dev_rsum']:.1f}"
    assert said == [("training", 2, "epochs"), (0.5, ""), (1.0, ""), (1.5, first), (2.0, first)]
