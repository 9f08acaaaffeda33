"""Where the parts of a picture stand: found by a layout, or taken over from a picture like it.

A layout costs as much as drawing. While a control is moved, one picture follows another that is
built alike, so it may stand where that one stood.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from matplotlib.figure import Figure

_before: ContextVar[Figure | None] = ContextVar("before", default=None)


@contextmanager
def places_of(before: Figure | None) -> Iterator[None]:
    """Inside, a picture stands where this one stands if it fits there, else is laid out anew."""
    token = _before.set(before)
    try:
        yield
    finally:
        _before.reset(token)


def lay_out(figure: Figure) -> None:
    """Give every part its place, once: saving the picture again moves nothing."""
    before = _before.get()
    if before is not None and fits(figure, before):
        for part, then in zip(figure.axes + figure.texts, before.axes + before.texts, strict=True):
            part.set_position(then.get_position())
    else:
        figure.get_layout_engine().execute(figure)
    figure.set_layout_engine("none")


def fits(figure: Figure, before: Figure) -> bool:
    """Whether a picture needs no more room than another: of the same size, with as many panels, as
    many lines in its headline and caption, and no longer numbers beside its panels."""
    def lines(of: Figure) -> list[int]:
        return [text.get_text().count("\n") for text in of.texts]

    def numbers(of: Figure) -> list[int]:
        axes_y = [axes.yaxis for axes in of.axes]
        return [max(map(len, axis.get_major_formatter().format_ticks(axis.get_majorticklocs())),
                    default=0) for axis in axes_y]

    return (tuple(figure.get_size_inches()) == tuple(before.get_size_inches())
            and len(figure.axes) == len(before.axes) and lines(figure) == lines(before)
            and all(now <= then for now, then in zip(numbers(figure), numbers(before),
                                                     strict=True)))
