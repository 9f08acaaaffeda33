"""Controls for a picture: alive where somebody watches, still in a batch."""

from io import BytesIO

import nbformat
import pytest
from ipywidgets import FloatLogSlider
from matplotlib.figure import Figure
from nbclient import NotebookClient
from PIL import Image

from itr_study.explorers import explore
from itr_study.plots import smooth_steps

CELL = """
from ipywidgets import FloatLogSlider
from itr_study import explorers, plots
slider = FloatLogSlider(value=0.01, min=-3, max=0, description="tau")
shown = explorers.explore(lambda tau: plots.smooth_steps([tau]), tau=slider)
shown
"""
MOVES = """
pictures = []
for tau in (0.01, 0.04, 0.01):
    slider.value = tau
    pictures.append(shown.children[-1].value)
assert pictures[0] == pictures[2] != pictures[1]
"""


def slider() -> FloatLogSlider:
    return FloatLogSlider(value=0.01, min=-3, max=0, description="τ")


def test_a_batch_sees_the_picture_at_the_values_of_the_controls(monkeypatch):
    monkeypatch.setattr("itr_study.explorers.explorer.in_notebook", lambda: False)
    assert explore(lambda tau: f"steep at {tau}", tau=slider()) == "steep at 0.01"


def test_a_redraw_draws_once(monkeypatch):
    """Drawing is what a redraw costs: `savefig`, and drawing to lay out, would double it."""
    drawings = []
    draw = Figure.draw
    monkeypatch.setattr("itr_study.explorers.explorer.in_notebook", lambda: True)
    monkeypatch.setattr(Figure, "draw", lambda *given: drawings.append(draw(*given)))
    widget = explore(lambda tau: smooth_steps([tau]), tau=slider())
    assert len(drawings) == 1
    before = widget.children[1].value
    widget.children[0].value = 0.1
    assert len(drawings) == 2 and widget.children[1].value != before
    picture = Image.open(BytesIO(widget.children[1].value))
    assert picture.format == "PNG" and picture.width == 844  # the column of a 1,280 window


@pytest.mark.slow
def test_papermill_and_nbclient_do_not_wait_for_ever_at_a_picture_with_controls(monkeypatch):
    """They execute a kernel as if somebody watched; a widget that captures output stopped them."""
    monkeypatch.delenv("ITR_STUDY_HEADLESS", raising=False)
    cells = [nbformat.v4.new_code_cell(source) for source in (CELL, MOVES)]
    NotebookClient(nbformat.v4.new_notebook(cells=cells), timeout=120,
                   kernel_name="python3").execute()
