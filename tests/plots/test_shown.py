"""What a notebook shows of a picture: words for who cannot see it, type that can be read."""

import doctest

import pandas as pd
import pytest
from matplotlib.text import Text
from PIL import Image

import itr_study.plots.tables as module
from itr_study import plots
from itr_study.files.paths import project_root
from itr_study.plots.style import COLUMN, DPI, WIDEST
from tests.plots.frames import CAPTION, RECALLS, picture, sweep_rows

LEAST = 9  # pixels


def smallest_type(figure) -> float:
    """Pixels of the smallest text, in a column that shrinks what is wider than itself."""
    points = min(text.get_fontsize() for text in figure.findobj(Text) if text.get_text())
    return points / 72 * min(110, COLUMN / figure.get_figwidth())


def test_a_picture_says_what_is_seen():
    figure = plots.histogram(pd.DataFrame({"n": [1, 2, 2]}), "n", "Two of three", "words")
    assert figure._repr_png_()[1] == {"alt": "Two of three"}
    figure.alt = "Most texts have two words."
    assert figure._repr_png_()[1] == {"alt": "Most texts have two words."}


def test_examples_in_many_columns_keep_their_type_and_their_texts():
    for columns in (1, 3, 5):
        figure = plots.example_grid([(picture(), [CAPTION])] * columns, "Five", columns=columns)
        assert smallest_type(figure) >= LEAST
        words = figure.axes[columns].texts[0]
        assert words.get_text().replace("\n  ", "") == f"• {CAPTION}"
        assert words.get_window_extent().width <= figure.bbox.width / columns


@pytest.mark.evidence
def test_no_published_figure_is_wider_than_its_type_can_be_read():
    wide = []
    for path in (project_root() / "figures").glob("*/*.png"):
        with Image.open(path) as shown:
            wide += [path.name] * (shown.width > round(WIDEST * DPI))
    assert not wide


def test_the_widest_picture_has_type_of_nine_pixels():
    figure = plots.sweep_curve(sweep_rows(), "k", RECALLS, "t", "k", apart=["sum"])  # 9.6 inches
    assert smallest_type(figure) > LEAST
    figure.set_figwidth(WIDEST)
    assert LEAST <= smallest_type(figure) < LEAST + 0.1


MANY = {f"test_{way}_{name}_{judge}": head for way, arrow in (("i2t", "i→t"), ("t2i", "t→i"))
        for name, head in (("ndcg", f"{arrow} NDCG"), ("tau", f"{arrow} τ"))
        for judge in ("sentence", "cider", "exact")}  # twelve columns


def of_many_measures(seeds: int, name: str = "hardest + Semantic margin") -> pd.DataFrame:
    return pd.DataFrame([{"method": method, "seed": seed, **{
        column: 10.0 * place + seed for place, column in enumerate(MANY)}}
        for method in (name, "sum") for seed in range(seeds)])


def words(figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text)]


@pytest.mark.parametrize("seeds", [1, 3])  # without and with intervals
def test_columns_of_a_wide_table_go_on_below(seeds):
    figure = plots.table_figure(of_many_measures(seeds), "method", "Ahead", list(MANY))
    assert smallest_type(figure) >= LEAST
    said = words(figure)
    blocks = said.count("n")
    assert blocks == 2 == said.count("sum") and said.count("i→t NDCG\n(cider)") == 1
    mean = (seeds - 1) / 2
    for place in range(len(MANY)):  # every number stands there, once in each row
        assert said.count(f"{10.0 * place + mean:.1f}") == 2
    heads, numbers = at(figure, "t→i τ\n(exact)"), at(figure, f"{110 + mean:.1f}")
    assert abs(heads[0][0] - numbers[0][0]) < 0.5  # below their head, in the second block
    assert heads[0][1] < numbers[0][1] and numbers[0][1] > at(figure, "sum")[0][1]


def at(figure, text: str) -> list[tuple]:
    """Where a text stands in its panel, from the left and from the top."""
    return [shown.get_position() for shown in figure.axes[0].texts if shown.get_text() == text]


def test_how_columns_are_put_into_blocks():
    failed, tried = doctest.testmod(module)
    assert tried and not failed


def test_long_names_leave_printed_columns_less_room():
    printed = pd.DataFrame([{"method": 60 * "n", **dict.fromkeys(RECALLS, 9.0)}])
    rows = sweep_rows().rename(columns={"k": "method"})
    figure = plots.table_figure(rows.head(0), "method", "Printed", reported=printed)
    assert smallest_type(figure) >= LEAST and words(figure).count("n") == 1


def test_a_table_drawn_for_slides_is_a_table_in_a_notebook():
    """As a picture of eleven inches its type would shrink to seven pixels."""
    rows = sweep_rows().rename(columns={"k": "method"})
    printed = pd.DataFrame([{"method": "paper", **dict.fromkeys(RECALLS, 9.0)}])
    figure = plots.table_figure(rows, "method", "Ahead", reported=printed, note="scenes, <n> = 2")
    assert figure._repr_png_() is None
    page = figure._repr_html_()
    assert page.count("<tr") == 2 + rows["method"].nunique() and "scenes, &lt;n&gt; = 2" in page
    assert "Ahead" in page and "overflow-x:auto" in page
    assert page.count("<td style='white-space:nowrap'>") == page.count("<small>±") + len(RECALLS)


def test_a_line_stands_between_what_has_seen_captions_and_what_has_not():
    rows = pd.DataFrame({"method": ["a", "b", "c †", "d †"], "seed": 0, "rsum": 1.0})
    for shown, lines in ((rows, 2), (rows.head(2), 1), (rows.tail(2), 1), (rows[::-1], 1)):
        figure = plots.table_figure(shown, "method", "Two parts", ["rsum"])
        drawn = sorted(line.get_ydata()[0] for line in figure.axes[0].lines)
        heights = [at(figure, name)[0][1] for name in shown["method"]]
        assert len(drawn) == lines and drawn[0] < heights[0]  # below the heads
        assert lines == 1 or heights[1] < drawn[1] < heights[2]
        assert figure._repr_html_().count("border-top") == lines - 1
    printed = pd.DataFrame([{"method": "paper †", "rsum": 1.0}])  # a paper's own mark
    for shown, lines in ((rows, 2), (rows.head(2), 1)):
        figure = plots.table_figure(shown, "method", "Two parts", ["rsum"], printed)
        assert len(figure.axes[0].lines) == lines
        assert figure._repr_html_().count("border-top") == lines - 1


def test_a_number_that_is_the_same_beside_every_run_has_no_interval():
    rows = pd.DataFrame({"method": "ours", "seed": range(3), "size": [0.1 + 0.2, 0.3, 0.3],
                         "free": 0.0, "rsum": [1.0, 2.0, 3.0]})
    halves = plots.table_cells(rows, "method", ["size", "free", "rsum"]).set_index("column")["half"]
    assert halves[["size", "free"]].isna().all() and halves["rsum"] == pytest.approx(4.303 / 3**0.5,
                                                                                     abs=1e-3)


def test_printed_rows_take_a_colour_of_the_theme():
    """A fixed grey could hardly be read on black."""
    printed = pd.DataFrame([{"method": "paper", **dict.fromkeys(RECALLS, 9.0)}])
    page = plots.table_html(sweep_rows().rename(columns={"k": "method"}), "method",
                            reported=printed)
    assert "color:var(--jp-ui-font-color2, #6b6b6b)" in page


def test_a_table_without_a_row_of_ours_is_folded():
    """Notebook 05 prints 25 rows of a paper three times: two screens and a half."""
    rows = sweep_rows().rename(columns={"k": "method"})
    printed = pd.DataFrame([{"method": f"paper {n}", **dict.fromkeys(RECALLS, 9.0)}
                            for n in range(25)])
    page = plots.table_html(rows.head(0), "method", reported=printed, title="Table <II>")
    assert page.startswith("<details><summary>Table &lt;II&gt;</summary>")
    assert page.count("Table &lt;II&gt;") == 1 and page.count("<tr") == 26
    for ours, few in ((rows, 25), (rows.head(0), 12)):
        assert "<details" not in plots.table_html(ours, "method", reported=printed.head(few))
