"""Controls in a live kernel: what a front end would show below them."""

from tests.explorers.live import captured_images, live_kernel

CELL = """
from ipywidgets import FloatLogSlider
from itr_study import explorers, plots
slider = FloatLogSlider(value=0.01, min=-3, max=0, description="tau")
explorers.explore(lambda tau: plots.smooth_steps([tau]), tau=slider)
"""


def test_a_picture_stands_below_the_slider_and_changes_with_it():
    with live_kernel() as live:
        (first,) = captured_images(live.run(CELL))
        (moved,) = captured_images(live.run("slider.value = 0.1"))
        (back,) = captured_images(live.run("slider.value = 0.01"))
    assert first == back != moved


def test_a_bar_leaves_no_closed_control_in_the_saved_notebook():
    with live_kernel() as live:
        heard = live.run("import time\nfrom itr_study.progress import counting\n"
                         "with counting('training', 3, 'epochs') as show:\n"
                         "    time.sleep(0.15)\n"  # tqdm draws ten times a second
                         "    show(3, 'dev RSUM 1.0')")
    shown, emptied = (next(m["content"] for m in heard if m["msg_type"] == kind)
                      for kind in ("display_data", "update_display_data"))
    assert any("widget-view" in kind for kind in shown["data"])
    assert any("RSUM" in str(m["content"]) for m in heard if m["msg_type"] == "comm_msg")
    assert emptied["data"] == {"text/plain": ""} and emptied["transient"] == shown["transient"]
