"""A pane that waits, without a browser: what it says of runs that are not here, and what opens."""

import json
import subprocess
import sys
import threading
import time

import pytest

from itr_study import explorers
from itr_study.explorers.models import of_models
from itr_study.explorers.pane import Pane
from itr_study.explorers.push_pull import PushPull
from itr_study.explorers.skin import module_of, skin_of
from itr_study.runs.background import BackgroundRun, Look
from itr_study.runs.identity import identify
from itr_study.runs.run import execute
from itr_study.studies import panes
from itr_study.studies.arms import ArmRun
from itr_study.studies.panes import pane_of
from itr_study.studies.study import Study
from tests.explorers.searchers import two_searchers
from tests.explorers.test_skin import message
from tests.explorers.test_training import ROWS, Said
from tests.small_runs import SMALL

NOTHING = Said("new", rows=[])
SECONDS = 120  # on a busy machine


def made(*runs, build=PushPull, **named) -> Pane:
    return Pane(PushPull, dict(zip(("one", "two", "three"), runs, strict=False)), build, **named)


def on(pane) -> list[str]:
    return [control["name"] for control in pane.controls() if not control["off"]]


def opened(pane) -> Pane:
    """Once it was built, and the page has asked."""
    pane.waiting.beside.wait(SECONDS)
    pane.hear("poll")
    return pane


@pytest.mark.parametrize(("run", "said", "can"), [
    (NOTHING, "one is not trained on this machine. It can be trained here", ["train"]),
    (Said("starting", rows=[]), "one is about to be trained. About 5 minutes left.",
     ["stop"]),
    (Said("running"), "one is being trained here, 2 of 4 epochs done. About 2 minutes left.",
     ["stop"]),
    (Said("stopping"), "one is being saved, 2 of 4 epochs done.", []),
    (Said("elsewhere", "process 7 on host"),
     "one is being trained by process 7 on host, 2 of 4 epochs done.", []),
    (Said("interrupted", checkpoint=True), "was stopped, 2 of 4 epochs done, and goes on from "
     "there. It can be trained here, in the background, in about 2 minutes.", ["train"]),
    (Said("interrupted", rows=[]), "was stopped, 0 of 4 epochs done. It can be", ["train"]),
    (Said("diverged", "the loss is not finite"), "has diverged (the loss is not finite); training "
     "it again would give the same. Training does not help: choose other runs.", []),
    (Said("oom", "no memory"), "could not be trained (oom: no memory). It can be", ["train"]),
    ("needs data that is not here", "one needs data that is not here. Training does not help: "
     "choose other runs, or bring the data.", [])],
    ids=lambda value: value.now.state if isinstance(value, Said) else "")
def test_each_reason_is_a_sentence_and_offers_what_can_be_done(run, said, can):
    pane = made(run, Said("done"))
    assert pane.sentence().startswith("“Push and pull” waits for 1 of 2 models: one ")
    assert said in pane.sentence() and "two" not in pane.sentence() and on(pane) == can
    state = pane.waiting.states()["one"]
    assert pane.stage()["poll"] == (
        1000 if state in ("starting", "running", "stopping", "elsewhere") else
        0 if state in ("diverged", "lost") else 5000)  # another may train it
    assert json.loads(json.dumps(pane.view(), allow_nan=False)) == pane.view()
    assert pane.drawings == ("waiting", "push_pull") and pane.drawing == "waiting"
    bars = pane.picture().axes[0].patches
    assert [bar.get_width() for bar in bars[:2]] == [1 if isinstance(run, str) else 4,
                                                     pane.stage()["runs"][0]["done"]]


def test_what_is_here_opens_at_once():
    pane = made(Said("done"))
    assert isinstance(pane.shown, PushPull) and pane.view() == pane.shown.view()
    pane.hear("loss", "topk")
    assert pane.sentence().startswith("Top-k is") and pane.selected is not None
    assert pane.drawing == "push_pull" and pane.title == "Push and pull"


def test_it_trains_what_is_missing_and_then_opens():
    first, second = Said("new", rows=[]), Said("failed", "killed", rows=[])
    pane = made(first, Said("done"), second)
    pane.hear("show")
    assert pane.problem == ("not all models are here; one is not trained on this machine; three "
                            "could not be trained (failed: killed)")
    pane.hear("train")
    assert pane.problem == "" and first.now.state == second.now.state == "starting"
    pane.hear("train")  # pressed twice
    assert pane.problem == ""
    first.now = second.now = Look("done", "", ROWS)
    pane.hear("poll")
    assert pane.sentence() == "All models of “Push and pull” are here: open it."
    assert on(pane) == ["show"] and pane.stage()["poll"] == 0
    pane.hear("show")
    assert isinstance(opened(pane).shown, PushPull) and pane.problem == ""


def test_no_more_are_trained_side_by_side_than_asked_for_and_none_twice():
    runs = [Said("new", rows=[]) for _ in range(3)]
    pane = made(*runs, at_once=1)
    pane.hear("train")
    assert [run.now.state for run in runs] == ["starting", "new", "new"]
    assert "two is trained next" in pane.sentence() and on(pane) == ["stop"]
    runs[0].now = Look("failed", "killed", [])
    pane.hear("poll")
    assert [run.now.state for run in runs] == ["failed", "starting", "new"]
    assert on(pane) == ["train", "stop"]  # the first can be tried again
    pane.hear("stop")
    pane.hear("stop")  # pressed twice
    assert runs[1].now.state == "stopping" and pane.problem == ""
    runs[1].now = Look("interrupted", "", ROWS, True)
    pane.hear("poll")
    assert runs[2].now.state == "new" and on(pane) == ["train"]  # it was stopped: no other begins
    pane.hear("stop")
    assert "nothing is being trained here" in pane.problem


def waited_for(what) -> bool:
    """Whether it came to be, without anybody looking at a pane."""
    end = time.monotonic() + SECONDS
    while not what() and time.monotonic() < end:
        time.sleep(0.01)
    return what()


def test_the_next_is_begun_when_nobody_looks():
    """A page that is not seen asks nothing."""
    runs = [Said("new", rows=[]) for _ in range(3)]
    pane = made(*runs, at_once=1)
    pane.waiting.turn.pause = 0.01
    pane.hear("train")
    for ended, begun in zip(runs, runs[1:], strict=False):
        ended.now = Look("done", "", ROWS)
        assert waited_for(lambda run=begun: run.now.state == "starting")
    assert "two" not in pane.sentence() and "three is about to be trained" in pane.sentence()


class NeverStarts(Said):
    """A run for which no process can be started."""

    def start(self):
        raise OSError("no memory")


def test_one_that_cannot_be_begun_when_nobody_looks_is_told_later_and_the_next_goes_on(caplog):
    first, third = Said("new", rows=[]), Said("new", rows=[])
    pane = made(first, NeverStarts("new", rows=[]), third, at_once=1)
    pane.waiting.turn.pause = 0.01
    pane.hear("train")
    first.now = Look("done", "", ROWS)
    assert waited_for(lambda: third.now.state == "starting") and pane.stage()["poll"] == 1000
    pane.hear("poll")
    assert pane.problem == "two could not be started. OSError: no memory"
    assert "no memory" in caplog.text


def test_all_that_cannot_be_begun_are_told_and_the_last_is_begun_though_nobody_looks(caplog):
    """The first press fails for one, and the others wait for a page that is closed by then."""
    runs = [NeverStarts("new", rows=[]), Said("new", rows=[]), Said("new", rows=[])]
    pane = made(*runs, at_once=1)
    pane.waiting.turn.pause = 0.01
    pane.hear("train")
    assert pane.problem == "one could not be started. OSError: no memory"
    runs[1].now = Look("done", "", ROWS)
    assert waited_for(lambda: runs[2].now.state == "starting")
    pane = made(NeverStarts("new", rows=[]), NeverStarts("new", rows=[]), at_once=1)
    pane.hear("train")
    assert pane.problem == ("one could not be started. OSError: no memory; two could not be "
                            "started. OSError: no memory")


def test_one_that_ended_since_the_last_look_does_not_keep_the_others_from_being_stopped():
    class Strict(Said):
        def stop(self):
            if self.now.state == "done":
                raise ValueError("there is nothing to stop")
            super().stop()

    runs = [Strict("new", rows=[]) for _ in range(2)]
    pane = made(*runs)
    pane.hear("train")
    runs[0].now = Look("done", "", ROWS)
    pane.hear("stop")
    assert pane.problem == "" and runs[1].now.state == "stopping"


def test_runs_that_cannot_be_read_for_a_while_are_begun_later(caplog):
    """Whatever the failure, the thread must outlive it."""
    first, second = Said("new", rows=[]), Said("new", rows=[])
    pane = made(first, second, at_once=1)
    turn = pane.waiting.turn
    turn.pause = 0.01
    pane.hear("train")
    first.now = None  # no Look at all: an AttributeError
    assert waited_for(lambda: turn.failure)
    time.sleep(0.1)
    assert caplog.text.count("the runs that wait could not be read") == 1
    first.now = Look("done", "", ROWS)
    assert waited_for(lambda: second.now.state == "starting")


ENDING = """
import atexit, time
from itr_study.explorers.in_turn import InTurn
from tests.explorers.test_training import Said
runs = {name: Said("new", rows=[]) for name in ("one", "two")}
turn = InTurn(runs, 1, {}, pause=0.01)
def end():  # as a worker that saves when Python ends
    runs["one"].now = runs["one"].now._replace(state="interrupted")
    time.sleep(0.5)
    print(runs["two"].now.state, turn.queue)
atexit.register(end)
turn.train(["one", "two"])
"""


@pytest.mark.slow
def test_none_is_begun_while_python_ends():
    """Each would be asked to save in its turn, and the kernel would not end."""
    done = subprocess.run([sys.executable, "-c", ENDING], stdout=subprocess.PIPE, text=True,
                          timeout=SECONDS, check=True)
    assert done.stdout.strip() == "new ['two']"


def test_what_is_stopped_or_in_vain_is_not_begun_by_anybody():
    for end in (lambda pane, run: pane.hear("stop"),
                lambda pane, run: setattr(run, "now", Look("diverged", "NaN", []))):
        runs = [Said("new", rows=[]) for _ in range(2)]
        pane = made(*runs, at_once=1)
        pane.waiting.turn.pause = 0.01
        pane.hear("train")
        end(pane, runs[0])
        assert waited_for(lambda turn=pane.waiting.turn: not turn.waits)
        assert runs[1].now.state == "new"


def test_stop_also_holds_for_another_pane_that_waits_for_the_same_run():
    """Two panes have the second run in common; the third is of the other pane alone."""
    configs = [SMALL.with_(seed=seed) for seed in range(3)]
    runs = [Said("new", rows=[]) for _ in configs]
    for run, config in zip(runs, configs, strict=True):
        run.config = config
    pane, other = made(*runs[:2], at_once=1), made(*runs, at_once=1)
    pane.waiting.turn.pause = other.waiting.turn.pause = 0.01
    pane.hear("train")
    other.hear("train")
    assert other.waiting.turn.queue == ["two", "three"]
    pane.hear("stop")
    assert pane.waiting.turn.queue == [] and other.waiting.turn.queue == ["three"]
    runs[0].now = Look("interrupted", "", ROWS, True)
    assert waited_for(lambda: runs[2].now.state == "starting")
    assert runs[1].now.state == "new"


def test_what_another_process_ended_meanwhile_is_not_trained():
    pane = made(run := Said("new", rows=[]))
    run.now = Look("done", "", ROWS)
    pane.hear("train")
    assert pane.problem == "" and pane.waiting.ready
    pane = made(Said("diverged", "NaN"))
    pane.hear("train")
    assert "there is nothing to train here now; one has diverged (NaN)" in pane.problem


def test_nothing_is_trained_in_vain():
    other = Said("new", rows=[])
    pane = made(Said("diverged", "NaN"), other)
    assert on(pane) == []
    pane.hear("train")
    assert "there is nothing to train here now" in pane.problem and other.now.state == "new"


def test_a_page_that_only_looks_sees_what_was_trained_meanwhile():
    pane = made(run := Said("new", rows=[]), Said("new", rows=[]))
    assert pane.sentence().endswith("They can be trained here, in the background.")
    run.now = Look("done", "", ROWS)
    pane.hear("poll")
    assert pane.stage()["runs"][0]["says"] == "is here" and pane.problem == ""


@pytest.mark.parametrize(("runs", "named", "said"), [
    ([NOTHING], {}, "Train"), ([NOTHING], {"minutes": {"one": 3}}, "Train (about 3 minutes)"),
    ([NOTHING, Said("done")], {}, "Train (about 5 minutes)"),  # 75 s an epoch, as the other's
    ([NOTHING, NOTHING, NOTHING], {"minutes": {"one": 3, "two": 9, "three": 9}},
     "Train (about 10 minutes)"),  # 21 minutes, two at once
    ([NOTHING, NOTHING], {"minutes": {"one": 3, "two": 9}}, "Train (about 9 minutes)"),
    ([Said("interrupted", checkpoint=True)], {"minutes": {"one": 99}}, "Train (about 2 minutes)")])
def test_how_long_it_takes_is_told_where_it_is_known(runs, named, said):
    assert made(*runs, **named).controls()[0]["label"] == said


def test_other_data_or_another_model_tells_no_time():
    other = Said("done")
    other.config = other.config.with_(data_options={"train": 30, "dev": 10, "test": 10})
    assert made(NOTHING, other).controls()[0]["label"] == "Train"


def test_the_page_goes_on_while_it_is_opened():
    go = threading.Event()
    run = Said("new", rows=[])
    pane = made(run, build=lambda: go.wait(SECONDS) and PushPull())
    run.now = Look("done", "", ROWS)
    pane.hear("poll")
    pane.hear("show")
    assert pane.sentence().startswith("“Push and pull” is being opened") and on(pane) == []
    assert pane.stage()["poll"] == 1000
    first = pane.waiting.beside.thread
    pane.hear("show")  # pressed twice
    assert pane.waiting.beside.thread is first
    go.set()
    assert opened(pane).sentence() == PushPull().sentence()
    pane.hear("poll")  # of another page, sent before it knew
    pane.hear("train")
    assert pane.problem == ""
    pane.hear("nothing")
    assert "there is nothing called 'nothing' here" in pane.problem


def test_what_cannot_be_built_is_told_and_can_be_tried_again(caplog):
    run, tries = Said("new", rows=[]), []

    def build():
        tries.append(len(tries))
        if len(tries) == 1:
            raise FileNotFoundError("weights.safetensors")
        return PushPull()

    pane = made(run, build=build)
    run.now = Look("done", "", ROWS)
    pane.hear("poll")
    pane.hear("show")
    opened(pane)
    assert pane.problem == ("“Push and pull” could not be opened. FileNotFoundError: "
                            "weights.safetensors") and "weights.safetensors" in caplog.text
    assert on(pane) == ["show"] and pane.stage()["poll"] == 0
    pane.hear("show")
    assert isinstance(opened(pane).shown, PushPull) and pane.problem == ""


def test_a_skin_has_both_drawings_and_changes_over():
    run = Said("new", rows=[])
    pane = made(run)
    skin, twin = skin_of(pane), skin_of(pane)
    text = module_of(pane.drawings)
    assert skin._esm == text and text.count("return draw;") == 2
    assert all(f"drawings.{name} = " in text for name in pane.drawings)
    run.now = Look("done", "", ROWS)
    message(skin, "poll", None, "a/1")
    message(skin, "show", None, "a/2")
    pane.waiting.beside.wait(SECONDS)
    message(skin, "poll", None, "a/3")
    for each in (skin, twin):
        assert each.view["drawing"] == "push_pull" and each.view["stage"]["loss"]


def test_explorers_are_made_of_models_by_name():
    both = two_searchers()
    for kind in (explorers.Search, explorers.WhoMoved, explorers.EmbeddingMap, explorers.YouJudge):
        assert type(of_models(kind, both)) is kind
    assert of_models(explorers.WhoMoved, both).names == ("one", "two")
    assert "gain" in of_models(explorers.EmbeddingMap, both).data.shades["test"]
    judge = of_models(explorers.YouJudge, both)
    assert list(judge.scores) == ["one", "two"]
    with pytest.raises(ValueError, match="WhoMoved takes 2 models, .* got 1: one"):
        of_models(explorers.WhoMoved, {"one": both["one"]})
    with pytest.raises(ValueError, match="an explorer of models must be one of Search, WhoMoved"):
        of_models(explorers.PushPull, both)


RUNS = {"one": ArmRun("hardest", SMALL), "two": ArmRun("hardest", SMALL.with_(seed=1))}


@pytest.mark.slow
def test_a_study_shows_runs_that_are_here_and_trains_those_that_are_not(store):
    study = Study("10_explorers", {"dataset": "scenes", "profile": "smoke", "data": None,
                                   "figures": None, "workers": 0})
    execute(identify(SMALL))
    assert isinstance(study.pane(explorers.EmbeddingMap, {"one": RUNS["one"]}).shown,
                      explorers.EmbeddingMap)
    pane = study.pane(explorers.Search, RUNS)
    assert "two is not trained on this machine. It can be trained here" in pane.sentence()
    assert on(pane) == ["train"] and "(about 10 seconds)" in pane.controls()[0]["label"]
    pane.hear("train")
    assert pane.waiting.runs["two"].wait(SECONDS)
    pane.hear("poll")
    pane.hear("show")
    found = opened(pane)
    assert found.problem == "" and [side.name for side in found.shown.sides] == ["one", "two"]
    assert len(found.selected) == 18


def test_runs_without_names_of_their_own_and_data_that_is_not_there(store, tmp_path):
    nobody = pytest.fail
    with pytest.raises(ValueError, match=r"2 runs have 1 names, those of their arms \(hardest\)"):
        pane_of(explorers.Search, list(RUNS.values()), nobody)
    with pytest.raises(ValueError, match="Search takes 1 to 2 models"):
        pane_of(explorers.Search, {}, nobody)
    photos = ArmRun("hardest", SMALL.with_(dataset="flickr8k", data_options={}, images="lite0"))
    pane = pane_of(explorers.Search, [photos], nobody, root=tmp_path)
    assert "hardest needs data that is not here (" in pane.sentence() and on(pane) == []


def test_minutes_are_those_of_rows_like_it(store, monkeypatch):
    monkeypatch.setattr(panes, "keeps_rows", lambda config: config.seed == 0)
    monkeypatch.setattr(panes, "expected_minutes", lambda config, rows: 4.0)
    pane = pane_of(explorers.Search, RUNS, pytest.fail)
    assert pane.waiting.turn.minutes == {"one": 4.0}
    assert isinstance(pane.waiting.runs["one"], BackgroundRun)
