"""What is published of runs, in `evidence/<dataset>/`: read by every machine, trained by one.

    runs.csv         a row per run
    data.json        what identifies the data of these runs (see `identity`)
    packs/, manifest.json    learning curves, and some ranks (see `packs`)
    ranks/<run>.npz  ranks, of runs that were published before there were packs

Only `publish` writes here. A run that ended and is not published lies in the store of its machine.
"""

import math
import zlib
from collections.abc import Collection
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pandas as pd

from itr_study.checks import check_choice
from itr_study.data import DATASETS
from itr_study.files.paths import evidence_folder
from itr_study.lab.runs.config import RunConfig
from itr_study.lab.runs.packs import Packs, restore
from itr_study.lab.runs.rows import is_complete
from itr_study.lab.runs.store import RunStore
from itr_study.lab.runs.table import Table
from itr_study.metrics.truth import DIRECTIONS

LEAST_TEST = 100


def keeps_rows(config: RunConfig) -> bool:
    """Whether runs of a config may be published: those of real data, and those of generated data
    that are tested on at least LEAST_TEST images, as in the profiles quick and full; R@K of fewer
    images says little."""
    return (not DATASETS[config.dataset].generated
            or config.data_options.get("test", LEAST_TEST) >= LEAST_TEST)


class Published:
    """The published runs of a data set.

    Raises:  ValueError where its table or manifest is lost and what lies beside it is not.
    """

    def __init__(self, dataset: str):
        self.folder = evidence_folder() / dataset
        self.packs = Packs(self.folder)
        self.table = Table(self.folder / "runs.csv")
        if self.packs.manifest.exists() and not self.table.path.exists():
            raise ValueError(f"{self.table.path} is missing; {self.table.restore}")
        if (not self.packs.manifest.exists() and any(self.folder.glob("packs/*.parquet"))
                and self.table.read()):
            raise ValueError(f"{self.packs.manifest} is missing; {restore(self.packs.manifest)}")

    def complete(self, run_id: str, needs: Collection[str] = ()) -> dict[str, Any] | None:
        """A run's row, if that is complete; needs: as in `rows.is_complete`."""
        row = self.table.row(run_id)
        return row if row and is_complete(row, needs) else None

    def curve(self, run_id: str) -> pd.DataFrame:
        """A line per epoch of a published run. Raises: ValueError where it has none."""
        found = self.packs.read(run_id)
        if found is None:
            raise ValueError(f"no curve of run {run_id}: {self.packs.manifest} does not name it; "
                             f"{restore(self.packs.manifest)}")
        return found[0]

    def arrays(self, run_id: str) -> dict[str, np.ndarray] | None:
        """The arrays of a published run; None where they were not kept. Their R@1 must be the
        row's, where the row has one.

        Raises:  ValueError for a file that is damaged, or of another run, with what to do.
        """
        path = self.folder / "ranks" / f"{run_id}.npz"
        source = path if path.is_file() else None
        if source is None and (found := self.packs.read(run_id)) and found[1] is not None:
            source, path = BytesIO(found[1]), self.packs.pack_of(run_id)
        if source is None:
            return None
        try:
            with np.load(source, allow_pickle=False) as archive:
                arrays = dict(archive)
            best = {direction: arrays[f"test_{direction}"] for direction in DIRECTIONS}
        except (BadZipFile, zlib.error, EOFError, KeyError, ValueError, TypeError) as error:
            # numpy's own words are left out: some advise to unpickle the file
            raise ValueError(f"{path} holds no ranks of run {run_id} (test_i2t, test_t2i), it is "
                             f"damaged; {restore(path)}") from error
        row = self.table.row(run_id) or {}
        for direction, of_queries in best.items():
            stated, counted = row.get(f"test_{direction}_r1"), 100 * float((of_queries <= 1).mean())
            if stated is not None and not math.isclose(stated, counted, abs_tol=1e-6):
                raise ValueError(f"{path} is not of run {run_id}: its {direction} R@1 is "
                                 f"{counted:.2f}, the row says {stated:.2f}; {restore(path)}")
        return arrays


def rows(dataset: str) -> pd.DataFrame:
    """The published runs of a data set, one row each: what was run, its metrics in percent (or
    ranks), what it cost. Runs of this machine that are not published are not among them
    (`sweep` gives the rows of any runs, `itr-study runs` lists those of this machine).

    Raises:  ValueError where none are published, or their table is damaged.
    Example:
        >>> table = rows("scenes")
        >>> bool((table["status"] == "done").any())
        True
    """
    check_choice("dataset", dataset, DATASETS)
    published = Published(dataset)
    frame = pd.DataFrame(published.table.columns())
    if frame.empty:
        raise ValueError(f"no runs of {dataset} are published in {published.folder}; those of this "
                         f"machine are listed by: itr-study runs {dataset}")
    return frame


def curve(run_id: str) -> pd.DataFrame:
    """The learning curve of a run, a line per epoch: published, else from this machine's store.

    Raises:  ValueError where the run is in neither, or what is published is damaged.
    """
    if published := _published(run_id):
        return published.curve(run_id)
    if result := RunStore().result(run_id):
        return result.history.table()
    raise ValueError(f"no curve of run {run_id}: {_nowhere(run_id)}")


def arrays(run_id: str, *names: str) -> dict[str, np.ndarray]:
    """The arrays of a run by name: test_i2t and test_t2i, the rank of the best match of every query
    (1 = first), and what else `RunResult.arrays` has; published, else from this machine's store.

    Args:    names: those needed beside the ranks.
    Raises:  as `curve`.
    """
    published, wanted = _published(run_id), {"test_i2t", "test_t2i", *names}
    found = published.arrays(run_id) if published else None
    if found and found.keys() >= wanted:
        return found
    result = RunStore().result(run_id)
    if result and (found := result.arrays()).keys() >= wanted:
        return found
    why = _nowhere(run_id) if not (published or result) else (
        f"it is kept without them; train it again: itr-study train {run_id}")
    raise ValueError(f"no {', '.join(names) or 'ranks'} of run {run_id}: {why}")


def _published(run_id: str) -> Published | None:
    """The published runs that this one is among."""
    folders: list[Path] = sorted(evidence_folder().glob("*/runs.csv"))
    return next((published for published in (Published(path.parent.name) for path in folders)
                 if published.table.row(run_id)), None)


def _nowhere(run_id: str) -> str:
    return ("it is neither published nor in the store of this machine; train it with `train_arms` "
            "or `itr-study train`")
