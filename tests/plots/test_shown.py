"""What a notebook shows of a picture: words for who cannot see it, type that can be read."""

import pandas as pd
import pytest
from matplotlib.text import Text
from PIL import Image

from itr_study import plots
from itr_study.files.paths import project_root
from itr_study.plots.style import COLUMN, WIDEST
from tests.plots.frames import CAPTION, RECALLS, picture, sweep_rows

LEAST = 9  # pixels
OLDEST = 200  # dots per inch of published pictures


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
            wide += [path.name] * (shown.width > round(WIDEST * OLDEST))
    assert not wide


def test_the_widest_picture_has_type_of_nine_pixels():
    figure = plots.sweep_curve(sweep_rows(), "k", RECALLS, "t", "k", apart=["sum"])  # 9.6 inches
    assert smallest_type(figure) > LEAST
    figure.set_figwidth(WIDEST)
    assert LEAST <= smallest_type(figure) < LEAST + 0.1


def test_a_second_line_of_the_title_is_a_plain_subtitle():
    figure = plots.histogram(pd.DataFrame({"n": [1, 2, 2]}), "n", "Words of a text\nmost have two",
                             "words")
    (below,) = [text for text in figure.texts if "most have two" in text.get_text()]
    assert (figure.title, figure.subtitle) == ("Words of a text", "most have two")
    assert below.get_fontweight() == "normal" and figure._suptitle.get_fontweight() == "bold"
    figure.canvas.draw()
    last = [text.get_window_extent().y0 for text in (below, figure._suptitle)]
    assert last[0] == pytest.approx(last[1], abs=1)  # on the line that the title keeps free
    plain = plots.histogram(pd.DataFrame({"n": [1]}), "n", "Words\n", "words")
    assert plain.subtitle == "" and plain.get_suptitle() == "Words"


def test_a_table_has_a_row_per_method_its_notes_and_what_is_printed():
    rows = sweep_rows().rename(columns={"k": "method"})
    printed = pd.DataFrame([{"method": "paper", **dict.fromkeys(RECALLS, 9.0)}])
    page = plots.table_html(rows, "method", reported=printed, note="scenes, <n> = 2")
    assert page.count("<tr") == 2 + rows["method"].nunique() and "scenes, &lt;n&gt; = 2" in page
    assert page.count("<td style='white-space:nowrap'>") == page.count("<small>±") + len(RECALLS)
    assert ">note<" not in page
    first = rows["method"].iloc[0]
    noted = rows.assign(note=(rows["method"] == first).map({True: "<collapsed>", False: ""}))
    page = plots.table_html(noted, "method", reported=printed)
    assert page.count("&lt;collapsed&gt;") == 1 and ">note<" in page


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
