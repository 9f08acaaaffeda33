"""Controls in a live kernel: what a front end would show below them."""

import pytest

from tests.explorers.live import captured_images, live_kernel

pytestmark = pytest.mark.slow

CELL = """
from ipywidgets import FloatLogSlider
from itr_study import explorers, plots
slider = FloatLogSlider(value=0.01, min=-3, max=0, description="tau")
explorers.explore(lambda tau: plots.smooth_steps([tau]), tau=slider)
"""


def test_a_picture_stands_below_the_slider_and_changes_with_it():
    with live_kernel() as live:
        (first,) = captured_images(live.run(CELL))
        (moved,) = captured_images(live.run("slider.value = 0.04"))
        (back,) = captured_images(live.run("slider.value = 0.01"))
    assert first == back != moved
