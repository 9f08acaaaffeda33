"""Every picture says what it must: labels, n, reported marks, whole texts, fixed colours."""

from functools import cache
from io import BytesIO

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba
from matplotlib.text import Text
from PIL import Image

from itr_study import plots
from itr_study.plots.style import (
    METHODS,
    METRICS,
    SETTINGS,
    WRONG,
    canvas,
    png_bytes,
    spread,
    summarise,
)
from itr_study.plots.tables import HALF
from tests.plots.frames import CAPTION, RECALLS, epochs, picture, sweep_rows
from tests.plots.reranked import reranking_pictures
from tests.plots.subembedded import head_pictures
from tools import drawings

PRINTED = pd.DataFrame({"panel": "printed in Table I", "x": [4.0, 6.0], "metric": "test_i2t_r1",
                        "value": [33.3, 32.1]})


def texts(figure) -> list[str]:
    """Every text of a figure, legends and captions included."""
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def sweep(**options):
    panels = {words: [name for name in RECALLS if way in name]
              for way, words in plots.DIRECTIONS.items()} | {PRINTED["panel"][0]: []}
    return plots.sweep_curve(sweep_rows(), "k", panels, "R@1 peaks early", "k", apart=["sum"],
                             default=5, reported=PRINTED, note="scenes", **options)


def grid(**options):
    results = [plots.Result(CAPTION, 0.5, False, 0.25), plots.Result("A dog.", 0.4, False)]
    return plots.retrieval_grid([plots.Query(picture(), results, 1234)], "A picture", **options)


@cache
def pictures() -> dict:
    scores = pd.DataFrame({"score": np.linspace(-1, 1, 40), "match": [False, True] * 20})
    recall = pd.DataFrame([("topk", way, k, 10.0 * k) for way in ("i2t", "t2i")
                           for k in (1, 5, 10)], columns=["method", "direction", "k", "recall"])
    cells = pd.DataFrame([[1.0, 2.0], [5.0, -4.0]], index=[5, 10], columns=[1, 2])
    dots = pd.DataFrame({"label": ["R@1", "R@5"], "difference": [1.0, -1.0], "low": [0.5, -3.0],
                         "high": [1.5, 1.0], "outcome": ["for", "open"],
                         "group": "top-5 against sum", "margin": [np.nan, 1.0],
                         "reported": [2.1, np.nan]})
    losses = plots.tabulate({"topk": lambda s: max(0, s), "kth": lambda s: 0.1}, [-1, 0, 1])
    return {
        "sweep": sweep(), "learning": plots.learning_curves(epochs(), ["dev_rsum"], "Sooner"),
        "grid": grid(),
        "losses": plots.loss_curves(losses, "Flat"),
        "scores": plots.score_histogram(scores, "Apart"),
        "counts": plots.histogram(pd.DataFrame({"n": [1, 2, 2]}), "n", "Two", "words"),
        "ranks": plots.rank_curve(recall, "Small K"),
        "heat": plots.heat_map(cells, "Corner", "x", "y", "points", signed=True),
        "dots": plots.dot_intervals(dots, "One holds"), "topk": drawings.schematic_topk(),
        "branches": drawings.schematic_branches(), "lists": plots.schematic_pairs_and_lists(),
        "steps": plots.smooth_steps([0.01, 0.1]),
        "examples": plots.example_grid([(picture(), [CAPTION, "A dog."])], "Parts"),
        **reranking_pictures(), **head_pictures()}


def test_text_is_at_least_eight_points_and_the_font_has_its_glyphs():
    from matplotlib.font_manager import findfont
    from matplotlib.ft2font import FT2Font

    glyphs = FT2Font(findfont("DejaVu Sans")).get_charmap()
    for name, figure in pictures().items():
        for text in figure.findobj(Text):
            assert text.get_fontsize() >= 8, (name, text.get_text())
            assert text.get_fontfamily() == ["DejaVu Sans"], (name, text.get_text())
            assert all(ord(letter) in glyphs for letter in text.get_text() if letter != "\n"), name


def test_no_text_leaves_the_page():
    outside = []
    for name, figure in pictures().items():
        figure.canvas.draw()
        page = figure.bbox.padded(2)
        for text in set(figure.findobj(Text)) - undrawn(figure):
            box = text.get_window_extent()
            if text.get_text() and not (page.x0 <= box.x0 and box.x1 <= page.x1
                                        and page.y0 <= box.y0 and box.y1 <= page.y1):
                outside.append((name, text.get_text()))
    assert not outside


def undrawn(figure) -> set:
    """Tick labels beyond the limits of their axis, or of axes that are switched off."""
    return {label for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)
            for tick in axis.get_major_ticks() + axis.get_minor_ticks()
            for label in (tick.label1, tick.label2)
            if not axes.axison or not min(axis.get_view_interval()) <= tick.get_loc()
            <= max(axis.get_view_interval())}


def test_drawing_changes_no_setting_of_matplotlib():
    before = dict(matplotlib.rcParams)
    grid()
    assert dict(matplotlib.rcParams) == before and before["font.size"] != SETTINGS["font.size"]


def test_the_same_data_gives_the_same_bytes_and_names_no_software():
    figure = pictures()["sweep"]
    first = png_bytes(figure)
    assert first == png_bytes(sweep())
    assert b"Software" not in first and b"tIME" not in first
    assert figure._repr_png_()[0].startswith(b"\x89PNG") and png_bytes(figure) == first


def test_a_file_of_many_colours_has_fewer_points():
    """A photograph would be ten times as large as a drawing of lines."""
    figure, (panel,) = canvas()
    panel.imshow(np.random.default_rng(0).random((64, 64, 3)))
    sizes = [Image.open(BytesIO(png_bytes(one))).size for one in (canvas()[0], figure)]
    assert sizes == [(720, 480), (600, 400)]


def test_sweep_says_seeds_default_printed_numbers_and_the_tick_apart():
    said = texts(pictures()["sweep"])
    for wanted in ("R@1", "R@5", "R@10", "image → text", "text → image", "sum", "paper", "k",
                   "recall, %", "printed in Table I", "as printed, %"):
        assert wanted in said, wanted
    ours, _, printed = pictures()["sweep"].axes
    assert not any(list(line.get_ydata()) == [33.3, 32.1] for line in ours.lines)
    assert list(printed.lines[-1].get_ydata()) == [33.3, 32.1]
    assert "scenes · 3 seeds, 95 % interval" in said


def test_sweep_shows_every_seed_and_its_mean_in_the_metrics_colour():
    axes = pictures()["sweep"].axes[0]
    rows = sweep_rows()
    mine = [line for line in axes.lines if line.get_color() == METRICS["r1"].colour]
    drawn = [value for line in mine if line.get_alpha() == 0.25 for value in line.get_ydata()]
    assert sorted(drawn) == pytest.approx(sorted(rows["test_i2t_r1"]))
    means = next(line for line in mine if line.get_label() == "R@1").get_ydata()
    wanted = rows[rows["k"] != "sum"].groupby("k")["test_i2t_r1"].mean()
    assert list(means) == pytest.approx(list(wanted))


def test_sweep_refuses_unknown_words_and_zero_on_a_log_scale():
    with pytest.raises(ValueError, match=r"\['sum'\] are neither numbers nor in apart"):
        plots.sweep_curve(sweep_rows(), "k", RECALLS, "t", "k")
    rows = sweep_rows().query("k != 'sum'").assign(k=lambda frame: frame["k"] - 1)
    with pytest.raises(ValueError, match="log scale needs values above 0"):
        plots.sweep_curve(rows, "k", RECALLS, "t", "k", log=True)


@pytest.mark.parametrize("log", [False, True])
def test_sweep_of_words_alone_has_a_tick_and_a_mean_for_each(log):
    rows = sweep_rows().query("k == 'sum'")
    picture = plots.sweep_curve(pd.concat([rows, rows.assign(k="kept")]), "k", RECALLS, "t", "k",
                                apart=["sum", "kept"], log=log)
    assert {"sum", "kept", "R@1"} <= set(texts(picture))


def test_one_seed_has_no_interval():
    row = summarise(pd.DataFrame({"k": [1], "v": [2.0]}), "k", "v").iloc[0]
    assert row["mean"] == 2 and np.isnan(row["low"]) and row["n"] == 1
    figure = plots.sweep_curve(sweep_rows(1), "k", RECALLS, "t", "k", apart=["sum"])
    assert "1 seed" in texts(figure)


def test_a_method_has_one_colour_in_every_picture():
    losses = plots.loss_curves(plots.tabulate({"topk": float}, [0, 1]), "t")
    learning = plots.learning_curves(epochs(), ["loss"], "t", log=True)
    for figure in (losses, learning):
        line = next(line for line in figure.axes[0].lines if line.get_label() == "top-k")
        assert line.get_color() == METHODS["topk"].colour


def test_methods_differ_in_colour_and_marker_also_without_red_green_vision():
    see = np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]])
    for looks in (METHODS, METRICS):
        assert len({entry.marker for entry in looks.values()}) == len(looks)
        colours = [see @ np.array(to_rgba(entry.colour)[:3]) for entry in looks.values()]
        gaps = [np.abs(one - two).max() for place, one in enumerate(colours)
                for two in colours[:place]]
        assert min(gaps) > 0.09


def test_labels_at_line_ends_keep_their_distance():
    assert spread(np.array([0.0, 1.0, 2.0]), 2.0).tolist() == [-1.0, 1.0, 3.0]
    assert spread(np.array([0.0, 10.0]), 2.0).tolist() == [0.0, 10.0]
    moved = np.sort(spread(np.random.default_rng(0).normal(size=12), 0.4))
    assert np.diff(moved).min() >= 0.4 - 1e-9


def test_a_text_stays_inside_its_frame():
    text = "A big black fish above an orange pyramid, and a pink fish; orange pyramids as well"
    results = [plots.Result(text, 0.5, True, 1.0)] * 5
    figure = plots.retrieval_grid([plots.Query(picture((9, 9, 9), (60, 60)), results, 1)], "Fish")
    figure.canvas.draw()
    for axes in figure.axes[1:]:
        (written,) = [t for t in axes.texts if "pyramid" in t.get_text()]
        assert written.get_window_extent().x1 < axes.bbox.x1 - 2


def test_grid_never_cuts_a_text_and_gives_the_rank_of_a_match_not_shown():
    said = texts(grid(note="scenes"))
    assert CAPTION in [" ".join(text.split()) for text in said]
    assert "match at rank 1,234" in said and "1  ✗" in said
    assert "score 0.50\n(relevance 0.25)" in said and "score 0.40" in said


def test_grid_tells_near_misses_from_obvious_errors():
    results = [plots.Result("A.", 0.9, True, 1.0), plots.Result("B.", 0.8, False, 0.8),
               plots.Result("C.", 0.7, False, 0.3), plots.Result("D.", 0.6, False)]
    figure = plots.retrieval_grid([plots.Query(picture(), results, 1)], "Near", on_topic=0.75)
    said = texts(figure)
    assert {"1  ✓", "2  ≈", "3  ✗", "4  ✗"} <= set(said)
    assert any("none, but relevance ≥ 0.75" in text for text in said)
    lines = [axes.spines["left"].get_linestyle() for axes in figure.axes[1:4]]
    assert len(set(map(str, lines))) == 3


def test_sweep_draws_the_level_of_runs_without_the_hyperparameter():
    rows = sweep_rows()
    level = rows.query("k == 1").assign(test_i2t_r1=lambda frame: 7 + frame.seed)
    figure = plots.sweep_curve(rows, "k", ["test_i2t_r1"], "t", "k", apart=["sum"],
                               baseline=level, baseline_name="no hyperparameter")
    line = next(line for line in figure.axes[0].lines if list(line.get_ydata()) == [8, 8])
    assert line.get_color() == METRICS["r1"].colour
    assert any("dashed: no hyperparameter" in text for text in texts(figure))


def test_the_slope_is_that_of_the_sigmoid_and_active_where_it_is_steep():
    table = plots.step_table([0.01, 0.1], 0.2, 4001)
    for tau, part in table.groupby("tau"):
        slope = np.gradient(part["sigmoid"], part["x"])
        assert np.abs(slope - part["slope"])[1:-1].max() < 0.05
        assert part["slope"].max() == pytest.approx(1 / (4 * tau))
        shaded = part.loc[part["active"], "x"].abs().max()
        assert shaded == pytest.approx(min(plots.active_width(tau), 0.2), abs=2e-4)
    said = texts(pictures()["steps"])
    assert "τ = 0.01" in said and any("activation area" in text for text in said)


def test_three_losses_have_three_things_against_one_list():
    from matplotlib.patches import FancyArrowPatch

    panels = pictures()["lists"].axes
    arcs = [[(round(a._posA_posB[0][1]), round(a._posA_posB[1][1]), a.get_edgecolor())
             for a in axes.patches if isinstance(a, FancyArrowPatch)] for axes in panels]
    red = to_rgba(WRONG)
    wrong = [{(lower, upper) for lower, upper, colour in drawn if colour == red} for drawn in arcs]
    assert wrong == [{(1, 0)}, set(), {(1, 0), (3, 2)}]  # (from, to), places from the top
    assert [len(drawn) for drawn in arcs] == [4, 3, 10]
    order = [[t.get_text() for t in axes.texts if t.get_position()[0] == 0] for axes in panels]
    assert order[0] == order[1] == order[2] == ["0.80", "match 1.00", "0.30", "0.55", "0.05"]
    said = texts(pictures()["lists"])
    assert "tolerated" in said
    assert [text.rpartition("\n")[2] for text in said if "wrong here" in text] == [
        "wrong here: 1 of 4", "wrong here: 0 of 3", "wrong here: 2 of 10"]


def test_nothing_is_drawn_where_nothing_was_tried():
    """On a log axis with values a factor of five or more apart the line is dotted, without band."""
    rows = pd.DataFrame([(tau, seed, 10 * tau + seed) for tau in (0.01, 0.03, 0.1, 1.0)
                         for seed in range(3)], columns=["tau", "seed", "test_rsum"])
    figure = plots.sweep_curve(rows, "tau", {"": ["test_rsum"]}, "t", "τ", log=True)
    dotted = [line for line in figure.axes[0].lines if line.get_linestyle() == ":"]
    assert [list(line.get_xdata()) for line in dotted] == [[0.1, 1.0]]
    assert any("dotted: nothing tried between" in text for text in texts(figure))
    bars = [line for line in figure.axes[0].lines if list(line.get_xdata()) == [1.0, 1.0]]
    assert len(bars) == 1 and bars[0].get_ydata()[0] < 11 < bars[0].get_ydata()[1]
    closer = pd.concat([rows, rows[rows.tau == 0.1].assign(tau=0.3)])
    figure = plots.sweep_curve(closer, "tau", {"": ["test_rsum"]}, "t", "τ", log=True)
    assert not [line for line in figure.axes[0].lines if line.get_linestyle() == ":"]


def test_a_ring_stands_at_the_point_that_it_marks():
    rows = pd.DataFrame([(loss, rate, 0, 100 * rate + len(loss)) for loss in ("sum", "hardest")
                         for rate in (1e-3, 2e-3)], columns=["loss", "rate", "seed", "vsepp"])
    marked = pd.DataFrame({"metric": ["vsepp", "other"], "loss": "hardest", "rate": 2e-3,
                           "at_edge": True})
    figure = plots.sweep_curve(rows, "rate", {"VSE++": ["vsepp"]}, "t", "rate", by="loss", log=True,
                               marked=marked)
    (ring,) = [line for line in figure.axes[0].lines if line.get_markersize() > 10]
    assert (ring.get_xdata()[0], ring.get_ydata()[0]) == (2e-3, pytest.approx(7.2))
    assert ring.get_marker() == "s"


def test_panels_that_are_compared_have_one_scale_and_ordered_lines_ordered_colours():
    figure = plots.learning_curves(epochs(), ["loss", "dev_rsum"], "t", sharey=True, ordered=True)
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()
    shades = [sum(to_rgba(line.get_color())[:3]) for line in figure.axes[0].lines]
    assert shades == sorted(shades) and len(set(shades)) == 2


def test_a_difference_that_is_not_settled_is_drawn_hollow():
    table = pd.DataFrame({"label": ["sum", "soft"], "difference": [3.0, 1.0], "low": [1.0, -1.0],
                          "high": [5.0, 3.0], "verdict": ["higher", "undecided (3 seeds)"]})
    figure = plots.dot_intervals(table, "t")
    fills = [line.get_fillstyle() for line in figure.axes[0].lines if line.get_marker() == "o"
             and len(line.get_xdata())]
    assert fills == ["full", "none"]
    assert {"interval on one side of zero", "undecided"} <= set(texts(figure))


@pytest.mark.parametrize("seeds, fill", [(2, "none"), (5, "full")])
def test_a_mean_of_fewer_than_five_seeds_is_drawn_hollow(seeds, fill):
    """Rungs of a ladder have no verdict, and a filled dot says that something is settled."""
    rungs = pd.DataFrame({"label": ["one"], "difference": 3.0, "low": 1.0, "high": 5.0, "n": seeds})
    (dot,) = [line for line in plots.dot_intervals(rungs, "t").axes[0].lines
              if line.get_marker() == "o"]
    assert dot.get_fillstyle() == fill


def test_of_two_curves_that_coincide_both_are_seen():
    same = plots.tabulate({"triplet_hardest": float, "triplet_soft": float}, range(13))
    below, above = plots.loss_curves(same, "t").axes[0].lines
    assert below.get_linestyle() == "-" and above.get_linestyle() != "-"
    marks = [set(range(*line.get_markevery()[:1], 13, line.get_markevery()[1]))
             for line in (below, above)]
    assert marks[0] and marks[1] and not marks[0] & marks[1]


def test_an_epoch_without_a_value_is_left_out_and_a_lone_one_is_marked():
    rows = epochs()
    first = (rows["method"] == "topk") & (rows["epoch"] < rows["epoch"].max())
    figure = plots.learning_curves(rows.assign(loss=rows["loss"].mask(first)), ["loss"], "t")
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    assert np.isfinite(lines["top-k"].get_ydata()).sum() == 1
    assert [name for name, line in lines.items() if line.get_marker() != "None"] == ["top-k"]
    assert any(text.startswith("3 seeds") for text in texts(figure))


@pytest.mark.parametrize("words", ["", "a note", "a long note of many words " * 12])
def test_a_legend_below_all_panels_and_the_caption_share_no_place(words):
    rows = pd.concat([epochs().assign(method=f"τ = {n}") for n in range(7)])
    figure = plots.learning_curves(rows, ["loss"], "t", note=words)
    figure.canvas.draw()
    (legend,) = figure.legends
    below = max(axes.get_tightbbox().y0 for axes in figure.axes)
    lines = figure.get_supxlabel().lstrip("\n").count("\n") + 1
    caption = figure._supxlabel.get_window_extent()
    top = caption.y0 + lines * 1.25 * 8 * figure.dpi / 72
    assert caption.y0 >= 0 and top <= legend.get_window_extent().y0 + 1
    assert legend.get_window_extent().y1 <= below + 1


def test_a_legend_without_a_caption_has_room_below_the_panels():
    words = pd.DataFrame({"split": ["train", "dev"] * 4, "words": range(8)})
    figure = plots.histogram(words, "words", "t", "words in a text", by="split")
    figure.canvas.draw()
    (legend,) = figure.legends
    assert not figure.get_supxlabel()
    assert legend.get_window_extent().y1 <= figure.axes[0].get_tightbbox().y0 + 1


def test_a_picture_grows_with_the_lines_of_its_title():
    rows = pd.DataFrame({"label": ["a", "b"], "difference": 1.0, "low": 0.0, "high": 2.0})
    short, long = (plots.dot_intervals(rows, title) for title in ("t", "many words " * 20))
    heights = [figure.axes[0].get_position().height * figure.get_figheight()
               for figure in (short, long)]
    assert long.get_suptitle().count("\n") > 1 and heights[1] == pytest.approx(heights[0], rel=0.1)


def test_heads_of_tables_are_words():
    from itr_study.plots.tables import head
    page = plots.table_html(pd.DataFrame({
        "method": ["a"], "seed": [0], "test_i2t_ndcg_exact": [90.0]}), "method",
        ["test_i2t_ndcg_exact"])
    assert head("test_i2t_ndcg_exact").replace("\n", "<br>") in page
    assert head("test_human_expert_tau_c") == "experts\nτ-c" and head("arm") == "arm"


def test_grid_marks_matches_by_more_than_colour():
    results = [plots.Result(picture(), 0.9, True), plots.Result(picture(), 0.1, False)]
    figure = plots.retrieval_grid([plots.Query("A dog.", results, 1)], "A text")
    said = texts(figure)
    assert "1  ✓" in said and "2  ✗" in said and "match at rank 1" not in said
    right, wrong = (axes.spines["left"].get_linestyle() for axes in figure.axes[1:3])
    assert right == "-" and wrong != right
    assert figure.axes[1].images[0].get_extent() == [-0.5, 59.5, 39.5, -0.5]  # undistorted
    with pytest.raises(ValueError, match="at least one query, each with results"):
        plots.retrieval_grid([plots.Query("A dog.", [], 1)], "nothing")


def test_an_answer_takes_as_many_rows_as_it_needs():
    results = [plots.Result(picture(), 0.9, True)] + [plots.Result(picture(), 0.1, None)] * 5
    figure = plots.answer_grid(plots.Query("A dog.", results, 1), "Found", columns=3)
    said = texts(figure)
    assert [name in said for name in ("1  ✓", "2", "6", "7", "query")] == [True] * 3 + [False, True]
    right, unknown = (axes.spines["left"].get_linewidth() for axes in figure.axes[1:3])
    assert right > unknown  # a plain frame where nobody knows
    assert len([axes for axes in figure.axes if axes.axison]) == 7
    with pytest.raises(ValueError, match="needs a query with results"):
        plots.answer_grid(plots.Query("A dog.", [], None), "nothing")
    with_none = plots.retrieval_grid([plots.Query("A dog.", results[1:], None)], "Found")
    assert not any("✓" in text or "match at" in text for text in texts(with_none))


def test_table_marks_no_mean_as_the_best_and_says_what_its_intervals_are():
    rows = sweep_rows().rename(columns={"k": "method"}).query("method in [1, 4]")
    printed = pd.DataFrame([{"method": "paper <VGG>", **dict.fromkeys(RECALLS, 99.0)}])
    printed["test_t2i_r10"] = np.nan
    html = plots.table_html(rows, "method", reported=printed, title="Table I")
    assert "<b>" not in html and html.count("<small>±") == 12 and html.count(HALF) == 1
    assert f">mine; {HALF}<" in plots.table_html(rows, "method", RECALLS, printed, note="mine; ")
    assert ">mine<" in plots.table_html(rows[rows["seed"] == 0], "method", RECALLS, note="mine")
    assert "<td>reported</td>" in html and "paper &lt;VGG&gt;" in html and ">–</td>" in html


def test_heat_map_is_centred_prints_values_and_outlines_the_best():
    figure = pictures()["heat"]
    assert figure.axes[0].collections[0].get_clim() == (-5.0, 5.0)
    assert {"5.0", "−4.0"} <= set(texts(figure))
    outline = figure.axes[0].patches[0]
    assert (outline.get_x(), outline.get_y()) == (0, 1)  # the 5.0: row 1, column 0


def test_a_difference_inside_its_zone_is_drawn_as_the_same():
    table = pd.DataFrame({"label": ["a", "b"], "difference": [1.0, 6.0], "low": [-1.0, 3.0],
                          "high": [2.0, 9.0], "verdict": ["same", "undecided"], "margin": 5.0})
    figure = plots.dot_intervals(table, "t")
    entries = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert entries == ["undecided", "the same (inside the zone)"]


def test_ticks_of_a_linear_axis_do_not_touch():
    rows = pd.DataFrame([(beta, seed, 280.0 + seed) for beta in (0.05, 0.1, 0.2, 0.6)
                         for seed in range(2)], columns=["beta", "seed", "rsum"])
    axes = plots.sweep_curve(rows, "beta", {"": ["rsum"]}, "t", "β").axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0.1", "0.2", "0.6"]


def test_intervals_show_zero_the_margin_and_the_outcome():
    figure = pictures()["dots"]
    axes = figure.axes[0]
    assert any(list(line.get_xdata()) == [0, 0] for line in axes.lines)
    assert [(patch.get_x(), patch.get_width()) for patch in axes.patches] == [(-1.0, 2.0)]
    assert {"for", "undecided", "reported", "top-5 against sum"} <= set(texts(figure))


def test_schematic_pays_what_the_loss_pays():
    said = texts(pictures()["topk"])
    assert said.count("pays 0") == 2 and "pays 0.47" in said  # 0.70 - 0.33 + 0.1
    three = texts(drawings.schematic_topk(k=3))
    assert "pays 0.39" in three and any("3rd" in text for text in three)  # 0.62 - 0.33 + 0.1


def test_examples_of_tables_and_steps():
    import doctest

    from itr_study.plots import curves, shapes, tables
    for module in (curves, shapes, tables):
        failed, tried = doctest.testmod(module)
        assert tried and not failed
