"""A training as it is shown, by a run that only says where it stands; tests/runs/test_background
has a real one."""

import json

import pytest

from itr_study.explorers.explorer import list_ticks
from itr_study.explorers.training import Training, make_panel
from itr_study.lab.runs.background import Look
from tests.small_runs import SMALL

CONFIG = SMALL.with_(**{"settings.epochs": 4})
ROWS = [{"epoch": 1, "loss": 0.5, "dev_rsum": 100.0, "seconds": 60.0},
        {"epoch": 2, "loss": None, "dev_rsum": 130.5, "seconds": 90.0}]


class Said:
    """A run that is where it is told to be."""

    def __init__(self, state, reason="", rows=ROWS, checkpoint=False):
        self.config, self.now = CONFIG, Look(state, reason, rows, checkpoint)

    def look(self):
        return self.now

    def start(self):
        if self.now.state in ("done", "elsewhere"):
            raise ValueError("it is trained already")
        self.now = self.now._replace(state="starting")

    def stop(self):
        self.now = self.now._replace(state="stopping")


@pytest.mark.parametrize(("run", "said", "on"), [
    (Said("new", rows=[]), "seed 0; state: not trained yet; epochs: 0 of 4", ["start"]),
    (Said("starting", rows=[]), "starting: a process of its own loads the data", ["stop"]),
    (Said("running"), "epochs: 2 of 4; time left: about 2 minutes", ["stop"]),
    (Said("stopping"), "ending the step, then saving; epochs: 2 of 4", []),
    (Said("elsewhere", "process 7 on host"), "epochs: 2 of 4; reason: process 7 on host", []),
    (Said("interrupted", checkpoint=True), "Go on trains from where it was saved", ["go_on"]),
    (Said("interrupted", rows=[]), "stopped before anything was to be saved", ["start"]),
    (Said("done"), "state: done; epochs: 2 of 4", []),
    (Said("diverged", "NaN"), "state: diverged; epochs: 2 of 4; reason: NaN", []),
    (Said("oom", "no room"), "oom: remove the reason, then go on; epochs: 2 of 4; reason: no room",
     ["go_on"])], ids=lambda value: value.now.state if isinstance(value, Said) else "")
def test_every_state_is_a_sentence_and_offers_what_can_be_done(run, said, on):
    one = Training(run)
    assert said in one.sentence()
    assert [entry["name"] for entry in one.controls() if not entry["off"]] == on
    best = "best RSUM on dev: 130.5; best epoch: 2"
    assert one.sentence().endswith(best) == bool(run.now.rows)
    polled = run.now.state in ("starting", "running", "stopping", "elsewhere")
    assert one.stage()["poll"] == (1000 if polled else 0)
    assert json.loads(json.dumps(one.view(), allow_nan=False)) == one.view()


def test_buttons_start_stop_and_go_on():
    one = Training(Said("new", rows=[]))
    one.handle("start")
    assert one.now.state == "starting" and one.problem == ""
    one.handle("stop")
    assert one.now.state == "stopping"
    one.run.now = Look("interrupted", "", ROWS, True)
    one.handle("poll")
    one.handle("go_on")
    assert one.now.state == "starting" and len(one.selected) == 2


@pytest.mark.parametrize(("state", "press"), [
    ("starting", "start"), ("running", "go_on"), ("done", "start"), ("stopping", "stop"),
    ("interrupted", "stop"), ("done", "stop")])
def test_what_is_pressed_twice_is_done_once_and_no_complaint_stays(state, press):
    run = Said(state)
    run.start = run.stop = pytest.fail
    one = Training(run)
    one.handle(press)
    assert one.problem == "" and one.now.state == state


def test_a_refusal_stays_while_the_page_asks_how_far_it_is():
    one = Training(Said("elsewhere", "process 7 on host"))
    one.handle("start")
    one.handle("poll")
    assert one.problem == "it is trained already"


def test_curves_leave_out_what_is_no_number():
    loss, rsum = (make_panel(ROWS, column, "it", "unit") for column in ("loss", "dev_rsum"))
    assert loss["points"] == [[1, 0.5]] and rsum["points"] == [[1, 100.0], [2, 130.5]]
    assert rsum["best"] == [2, 130.5] and "best 130.5 in epoch 2" in rsum["says"]
    assert make_panel([], "loss", "it", "unit")["best"] is None


@pytest.mark.parametrize(("low", "high"), [(0, 4), (0.0931, 0.0932), (285.0, 285.0), (0, 3000),
                                         (0.3, 1.7)])
def test_ticks_hold_both_ends_and_differ(low, high):
    ticks = list_ticks(low, high)
    assert ticks[0][0] <= low and ticks[-1][0] >= high
    assert all(float(text) == at for at, text in ticks)  # no digit is rounded away


def test_the_picture_has_a_panel_a_curve_also_before_the_first_epoch():
    figure = Training(Said("running")).picture()
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["RSUM on dev", "loss"]
    for axes in Training(Said("new", rows=[])).picture().axes:
        assert axes.get_xlabel() == "epoch" and axes.get_xlim() == (0, 4) and not axes.lines
        assert [text.get_text() for text in axes.texts] == ["no epoch has ended yet"]
        assert not len(axes.get_yticks())


def test_no_axis_of_values_is_made_up_before_there_is_one():
    stage = Training(Said("running", rows=[])).stage()
    assert [panel["ticks"] for panel in stage["panels"]] == [[], []]
    assert stage["panels"][0]["says"] == "no epoch has ended yet"
    assert stage["ticks"][0][0] == 0 and stage["ticks"][-1][0] == 4
    silent = make_panel([{"epoch": 1, "loss": None}], "loss", "loss", "mean of an epoch")
    assert silent["says"] == "not a number so far" and silent["ticks"] == []
