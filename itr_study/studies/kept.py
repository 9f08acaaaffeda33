"""What notebooks made of trained models and saved with a figure: taken from there where the models
are on another machine.

Rows of runs travel with the project, trained models do not. A table made of models (an ensemble, a
share of attention inside boxes) would cost whoever has the rows alone hours of training.
"""

from collections.abc import Collection
from pathlib import Path

import pandas as pd

from itr_study.data import DATASETS
from itr_study.files.paths import kept_folders
from itr_study.runs.identity import identify
from itr_study.runs.store import RunStore
from itr_study.studies.arms import ArmRun


def kept_table(figures: Path | str | None, dataset: str, name: str,
               rows: pd.DataFrame) -> pd.DataFrame | None:
    """The table of a figure as a notebook saved it; None where it is nowhere, or where it is of
    other runs than these rows. Of several the one of most runs, so that a smaller profile hides
    nothing.

    Args:    figures: as of `files.paths.kept_folders`; name: "<notebook>__<figure>"; rows: with
             `run`.
    """
    from itr_study.plots.published import read_record  # here: it loads matplotlib

    best, most = None, 0
    generated = dataset in DATASETS and DATASETS[dataset].generated
    for folder in kept_folders(generated, figures):
        path = folder / dataset / f"{name}.csv"
        provenance = path.with_suffix(".json")  # written last: without it a figure is half saved
        if path.is_file() and provenance.is_file():
            made_of = set(read_record(provenance).get("run_ids", ()))
            if most < len(made_of) and made_of <= set(rows["run"]):
                best, most = path, len(made_of)
    return best and pd.read_csv(best, keep_default_na=False, na_values=[""])


def models_here(runs: Collection[ArmRun], root: Path | str | None = None) -> bool:
    """Whether this machine has what all these runs ended with: their models, but for those that
    diverged.

    Args:    root: folder of the real data sets.
    """
    store = RunStore()
    return all(store.result(identify(run.config, root).id) is not None for run in runs)
