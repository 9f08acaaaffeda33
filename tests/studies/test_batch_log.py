"""Numbers of every batch, against the history of the same run."""

import pytest

from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.run import execute
from itr_study.lab.studies.arms import ArmRun
from itr_study.lab.studies.nb05_listwise import batch_log
from tests.small_runs import SMALL


def test_batches_are_those_whose_means_a_run_keeps():
    """Logging changes nothing: the same losses as the run itself, batch by batch."""
    log = batch_log([ArmRun("k=1", SMALL)])
    history = execute(identify(SMALL)).history.table()
    assert list(log.step) == list(range(1, len(log) + 1)) and set(log.arm) == {"k=1"}
    per_epoch = len(log) // len(history)
    assert per_epoch > 1
    means = log.groupby((log.step - 1) // per_epoch).mean(numeric_only=True)
    assert list(means.loss) == pytest.approx(list(history.loss), rel=1e-5)
    assert list(means.topk) == pytest.approx(list(history.topk), rel=1e-5)
