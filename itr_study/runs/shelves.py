"""Where rows and figures lie: those of the project, and a reader's own.

`figures/` of the project is what git keeps: a batch and the command add to it. What is trained or
drawn where somebody watches goes to `my/figures/`, so that git sees no change.
"""

from pathlib import Path

from itr_study.files.paths import figures_folder, my_folder
from itr_study.progress import in_notebook


def shelf(figures: Path | str | None = None) -> Path:
    """The folder that new rows and figures go to: the one given; else `my/figures` where somebody
    watches, else the project's."""
    if figures is None and in_notebook():
        return my_folder() / "figures"
    return figures_folder(figures)


def shelves(figures: Path | str | None = None) -> list[Path]:
    """The folders that rows are looked up in: the one given; else the project's and after it, where
    somebody watches, the reader's own. A batch, which publishes, takes nothing from there."""
    return list(dict.fromkeys([figures_folder(figures), shelf(figures)]))
