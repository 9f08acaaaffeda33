"""One function per picture; each takes tidy frames and returns a Figure.

`title` is the headline, `note` the caption, `x_label` and `y_label` name the axes. Nothing here
changes matplotlib's settings: every function draws inside the project's style.
"""

from itr_study.plots.claims import dot_intervals, gain_curves, trade_off, verdict_bars
from itr_study.plots.curves import collapse_paths, learning_curves, sweep_curve
from itr_study.plots.figures import save_figure
from itr_study.plots.heads import (
    attention_maps,
    correlation_maps,
    pointing_dots,
    rank_weights,
    word_maps,
)
from itr_study.plots.names import name_of
from itr_study.plots.reranking import occurrence_lines, scale_maps, schematic_rerank
from itr_study.plots.retrieval import Query, Result, answer_grid, example_grid, retrieval_grid
from itr_study.plots.shapes import (
    active_width,
    heat_map,
    histogram,
    loss_curves,
    rank_curve,
    schematic_pairs_and_lists,
    score_histogram,
    sliding_windows,
    smooth_steps,
    step_table,
    tabulate,
    window_table,
)
from itr_study.plots.style import DIRECTIONS, METHODS, METRICS, look, style
from itr_study.plots.tables import finding, readable, table_cells, table_html, title_of

__all__ = ["DIRECTIONS", "METHODS", "METRICS", "Query", "Result", "active_width", "answer_grid",
           "attention_maps", "collapse_paths", "correlation_maps", "dot_intervals",
           "example_grid", "finding", "gain_curves", "heat_map",
           "histogram", "learning_curves", "look", "loss_curves", "name_of", "occurrence_lines",
           "pointing_dots", "rank_curve", "rank_weights", "readable", "retrieval_grid",
           "save_figure", "scale_maps", "schematic_pairs_and_lists", "schematic_rerank",
           "score_histogram", "sliding_windows",
           "smooth_steps", "step_table", "style", "sweep_curve", "table_cells", "table_html",
           "tabulate", "title_of", "trade_off", "verdict_bars", "window_table", "word_maps"]
