"""Means of weights: by hand, chosen on dev as they are evaluated, resumed bit-equal."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from itr_study.evaluation.evaluate import evaluate
from itr_study.training.loop import fit
from itr_study.training.settings import Settings
from itr_study.training.state import Checkpoints, mean_weights
from tests.posix import posix_only
from tests.small import SmallData, SmallLoss, small_model

SETTINGS = Settings(epochs=6, batch_size=24, learning_rate=0.1, average=3, select="last")


class DiesAt(SmallLoss):
    """Raises at the n-th step."""

    def __init__(self, step):
        super().__init__()
        self.left = step

    def forward(self, scores, relevance):
        self.left -= 1
        if self.left == 0:
            raise RuntimeError("the machine is gone")
        return super().forward(scores, relevance)


def trained(settings=SETTINGS, folder=None, model=None, loss=None):
    model = model or small_model()
    history = fit(model, loss or SmallLoss(), SmallData(), settings, seed=1, folder=folder,
                  save_seconds=0)
    return model, history


def after_each_epoch(settings=SETTINGS):
    """The weights of a training without means after each epoch."""
    kept = []
    plain = settings.model_copy(update={"average": 1})
    model = small_model()
    fit(model, SmallLoss(), SmallData(), plain, seed=1, on_epoch=lambda history: kept.append(
        {name: value.clone() for name, value in model.state_dict().items()}))
    return kept


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert torch.equal(one[name], other[name]), name


def test_by_hand():
    states = [{"weight": torch.tensor([1.0, 2]), "steps": torch.tensor(3)},
              {"weight": torch.tensor([2.0, 6]), "steps": torch.tensor(5)}]
    found = mean_weights(states)
    assert found["weight"].tolist() == [1.5, 4] and found["steps"] == 5  # a count is no mean
    assert_same(mean_weights(states[:1]), states[0])


def test_a_run_ends_with_the_mean_of_its_last_epochs():
    """And trains on from its own weights: only what is evaluated differs from a run without."""
    kept = after_each_epoch()
    model, history = trained()
    expected = {name: sum(state[name] for state in kept[-3:]) / 3 for name in kept[-1]}
    for name, value in model.state_dict().items():
        if value.is_floating_point():
            torch.testing.assert_close(value, expected[name])
        else:
            assert value == kept[-1][name]
    plain = trained(SETTINGS.model_copy(update={"average": 1}))[1]
    assert [row["loss"] for row in history.rows] == [row["loss"] for row in plain.rows]
    assert [r["dev_rsum"] for r in history.rows[1:]] != [r["dev_rsum"] for r in plain.rows[1:]]


def test_an_epoch_is_measured_and_chosen_with_the_mean_that_it_gives():
    settings = SETTINGS.model_copy(update={"select": "rsum", "learning_rate": 0.2})
    kept, judge = after_each_epoch(settings), small_model()
    model, history = trained(settings)
    assert history.best_epoch < 6  # else this test shows little: 2, by 26 points
    for epoch, row in enumerate(history.rows, start=1):
        judge.load_state_dict(mean_weights(kept[max(0, epoch - 3):epoch]))
        assert row["dev_rsum"] == evaluate(judge, SmallData().splits["dev"]).table["rsum"]
    best = history.best_epoch
    assert_same(model.state_dict(), mean_weights(kept[max(0, best - 3):best]))


@pytest.mark.parametrize("step", [2, 4, 10, 16])  # 3 steps an epoch
def test_resume_is_bit_equal(tmp_path, step):
    whole, expected = trained(loss=DiesAt(-1))
    with pytest.raises(RuntimeError, match="the machine is gone"):
        trained(folder=tmp_path, loss=DiesAt(step))
    again, found = trained(folder=tmp_path, model=small_model(seed=99), loss=DiesAt(-1))
    assert_same(again.state_dict(), whole.state_dict())
    for one, other in zip(expected.rows, found.rows, strict=True):
        assert {**one, "seconds": 0} == {**other, "seconds": 0}


KILLED = """
import os, signal, sys
from tests.training.test_average import SmallLoss, trained
class Kill(SmallLoss):
    left = 11
    def forward(self, scores, relevance):
        self.left -= 1
        if not self.left:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().forward(scores, relevance)
trained(folder=sys.argv[1], loss=Kill())
"""


@pytest.mark.slow
@posix_only
def test_kill_9_gives_the_same_mean(tmp_path):
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)],
                          cwd=Path(__file__).parents[2], env=os.environ)
    assert done.returncode == -signal.SIGKILL
    assert_same(trained(folder=tmp_path, model=small_model(99))[0].state_dict(),
                trained()[0].state_dict())


def test_a_checkpoint_holds_what_the_next_mean_needs_and_no_more(tmp_path):
    trained(folder=tmp_path)
    tensors, _ = Checkpoints(tmp_path).latest()
    assert {name.split(".")[1] for name in tensors if name.startswith("earlier")} == {"0", "1"}
    trained(SETTINGS.model_copy(update={"average": 1}), folder=tmp_path / "plain")
    tensors, _ = Checkpoints(tmp_path / "plain").latest()
    assert not [name for name in tensors if name.startswith("earlier")]


def test_a_checkpoint_from_before_a_setting_was_there_goes_on(tmp_path, monkeypatch):
    """It stood at its default then; another value is another training."""
    plain, dump = SETTINGS.model_copy(update={"average": 1}), Settings.model_dump

    def before(self, **how):
        return {k: v for k, v in dump(self, **how).items() if k != "average"}

    monkeypatch.setattr(Settings, "model_dump", before)
    with pytest.raises(RuntimeError, match="the machine is gone"):
        trained(plain, folder=tmp_path, loss=DiesAt(10))
    monkeypatch.undo()
    with pytest.raises(ValueError, match="average was 1, is 3"):
        trained(folder=tmp_path)
    assert_same(trained(plain, folder=tmp_path)[0].state_dict(), trained(plain)[0].state_dict())


@pytest.mark.parametrize("average", [0, 1.5, True])
def test_a_mean_of_no_epoch_is_refused(average):
    with pytest.raises(ValueError, match="average"):
        Settings(average=average)
