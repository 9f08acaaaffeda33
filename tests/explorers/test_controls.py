"""Controls for a picture: alive where somebody watches, still in a batch."""

from ipywidgets import FloatLogSlider, interactive

from itr_study.explorers import explore


def slider() -> FloatLogSlider:
    return FloatLogSlider(value=0.01, min=-3, max=0, description="τ")


def test_a_batch_sees_the_picture_at_the_values_of_the_controls(monkeypatch):
    monkeypatch.setattr("itr_study.explorers.controls.in_notebook", lambda: False)
    assert explore(lambda tau: f"steep at {tau}", tau=slider()) == "steep at 0.01"


def test_a_live_notebook_redraws_when_a_control_is_let_go(monkeypatch):
    monkeypatch.setattr("itr_study.explorers.controls.in_notebook", lambda: True)
    control = slider()
    widget = explore(lambda tau: f"steep at {tau}", tau=control)
    assert isinstance(widget, interactive) and control in widget.children
    assert control.continuous_update is False
    control.value = 0.1
    assert widget.result == "steep at 0.1"
