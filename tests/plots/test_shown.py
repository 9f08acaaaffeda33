"""What a notebook shows of a picture: words for who cannot see it, type that can be read."""

import pandas as pd
from matplotlib.text import Text

from itr_study import plots
from tests.plots.frames import CAPTION, RECALLS, picture, sweep_rows

COLUMN = 840  # pixels of a notebook's column in a window of 1,280


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
        assert smallest_type(figure) >= 9
        words = figure.axes[columns].texts[0]
        assert words.get_text().replace("\n  ", "") == f"• {CAPTION}"
        assert words.get_window_extent().width <= figure.bbox.width / columns


def test_a_table_drawn_for_slides_is_a_table_in_a_notebook():
    """As a picture of eleven inches its type would shrink to seven pixels."""
    rows = sweep_rows().rename(columns={"k": "method"})
    printed = pd.DataFrame([{"method": "paper", **dict.fromkeys(RECALLS, 9.0)}])
    figure = plots.table_figure(rows, "method", "Ahead", reported=printed, note="scenes, <n> = 2")
    assert figure._repr_png_() is None
    page = figure._repr_html_()
    assert page.count("<tr") == 2 + rows["method"].nunique() and "scenes, &lt;n&gt; = 2" in page
    assert "Ahead" in page and "overflow-x:auto" in page


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
