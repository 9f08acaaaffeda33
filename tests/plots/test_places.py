"""A picture that follows another while a control is moved: it stands where that one stood."""

import pytest
from matplotlib.layout_engine import ConstrainedLayoutEngine

from itr_study.plots import sliding_windows, smooth_steps
from itr_study.plots.style import canvas, fits, headline, places_of, quick_png

LABELS = [-0.2, 0.1, 0.35, 0.5, 0.7, 1.0]


def follow(before, draw):
    with places_of(before):
        return draw()


def bounds(figure) -> list[tuple]:
    return [axes.get_position().bounds for axes in figure.axes] + [
        text.get_position() for text in figure.texts]


@pytest.fixture
def layouts(monkeypatch) -> list:
    """Grows by one with every layout."""
    done, execute = [], ConstrainedLayoutEngine.execute
    monkeypatch.setattr(ConstrainedLayoutEngine, "execute",
                        lambda engine, figure: done.append(execute(engine, figure)))
    return done


def test_a_picture_takes_the_places_of_the_one_before(layouts):
    wide = smooth_steps([0.02])  # its slopes reach 12, those of the next one 5
    follower = follow(wide, lambda: smooth_steps([0.05]))
    assert len(layouts) == 1 and bounds(follower) == bounds(wide)
    smooth_steps([0.05])  # outside, a picture has its own places
    assert len(layouts) == 2


def test_the_same_picture_is_drawn_alike_either_way():
    alone = smooth_steps([0.05])
    assert quick_png(follow(alone, lambda: smooth_steps([0.05]))) == quick_png(alone)


def test_a_picture_that_needs_more_room_is_laid_out_anew(layouts):
    narrow = smooth_steps([0.01])  # slopes up to 25
    wide = follow(narrow, lambda: smooth_steps([1.0]))  # up to 0.25
    assert len(layouts) == 2 and bounds(wide) == bounds(smooth_steps([1.0])) != bounds(narrow)


def plain(panels: int = 1, title: str = "Short", high: float = 9, width: float = 4.0):
    figure, axes = canvas(panels, size=(width, 3.0))
    axes[0].plot([0, 1], [0, high])
    headline(figure, title)
    return figure


def test_what_needs_more_room():
    assert fits(plain(), plain())
    for other in (plain(panels=2), plain(title="Two\nlines"), plain(width=5.0), plain(high=90_000)):
        assert not fits(other, plain())
    assert fits(plain(), plain(high=90_000))  # less room is enough


@pytest.mark.slow
def test_no_text_leaves_the_page_while_controls_are_moved():
    moves = [lambda tau=tau: smooth_steps([tau]) for tau in (0.01, 1.0, 0.001, 0.08, 0.02)]
    moves += [lambda alpha=alpha, beta=beta: sliding_windows(LABELS, alpha, beta, 1)
              for alpha in (0.0, 0.8) for beta in (0.05, 0.6)]
    before = None
    for draw in moves:
        before = follow(before, draw)
        before.canvas.draw()
        for text in [axes.yaxis.label for axes in before.axes] + before.texts:
            box = text.get_window_extent()
            assert box.x0 >= 0 and box.y0 >= 0 and box.y1 <= before.bbox.y1 + 1, text.get_text()
