"""Controls for a picture: alive where somebody watches, still in a batch."""

from io import BytesIO

from ipywidgets import FloatLogSlider, interactive
from matplotlib.figure import Figure
from PIL import Image

from itr_study.explorers import explore
from itr_study.plots import smooth_steps


def slider() -> FloatLogSlider:
    return FloatLogSlider(value=0.01, min=-3, max=0, description="τ")


def test_a_batch_sees_the_picture_at_the_values_of_the_controls(monkeypatch):
    monkeypatch.setattr("itr_study.explorers.explorer.in_notebook", lambda: False)
    assert explore(lambda tau: f"steep at {tau}", tau=slider()) == "steep at 0.01"


def test_a_live_notebook_redraws_when_a_control_is_moved(monkeypatch):
    monkeypatch.setattr("itr_study.explorers.explorer.in_notebook", lambda: True)
    control = slider()
    widget = explore(lambda tau: f"steep at {tau}", tau=control)
    assert isinstance(widget, interactive) and control in widget.children
    control.value = 0.1
    assert widget.result == "steep at 0.1"


def test_a_redraw_draws_once(monkeypatch):
    """Drawing is what a redraw costs: `savefig`, and drawing to lay out, would double it."""
    drawings = []
    draw = Figure.draw
    monkeypatch.setattr("itr_study.explorers.explorer.in_notebook", lambda: True)
    monkeypatch.setattr(Figure, "draw", lambda *given: drawings.append(draw(*given)))
    widget = explore(lambda tau: smooth_steps([tau]), tau=slider())
    assert len(drawings) == 1
    widget.children[0].value = 0.1
    assert len(drawings) == 2
    picture = Image.open(BytesIO(widget.result.data))
    assert picture.format == "PNG" and picture.width == 844  # the column of a 1,280 window
