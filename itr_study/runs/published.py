"""What is published of runs, in `evidence/<dataset>/`: read by every machine, trained by one.

    runs.csv         a row per run
    edition1.csv     rows of the first edition that no notebook asks for, without curves and ranks
    data.json        what identifies the data of these runs (see `identity`)
    packs/, manifest.json    learning curves, and some ranks (see `packs`)
    ranks/<run>.npz  ranks, of runs that were published before there were packs

Only `publish` writes here. A run that ended and is not published lies in the store of its machine.
"""

import math
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pandas as pd

from itr_study.checks import check_choice
from itr_study.data import DATASETS
from itr_study.evaluation.evaluate import columns
from itr_study.files.paths import evidence_folder
from itr_study.metrics.truth import DIRECTIONS
from itr_study.runs.config import RunConfig
from itr_study.runs.packs import Packs, restore
from itr_study.runs.rows import SPLITS, edition_of
from itr_study.runs.store import ENDED, RunStore
from itr_study.runs.table import Table

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
        self.aside = Table(self.folder / "edition1.csv")
        if self.packs.manifest.exists() and not self.table.path.exists():
            raise ValueError(f"{self.table.path} is missing; {self.table.restore}")
        if (not self.packs.manifest.exists() and any(self.folder.glob("packs/*.parquet"))
                and self.table.read()):
            raise ValueError(f"{self.packs.manifest} is missing; {restore(self.packs.manifest)}")

    def all(self) -> dict[str, dict[str, Any]]:
        """All rows, also those that were set aside, numbers as numbers, empty cells as None."""
        return self.aside.read() | self.table.read()

    def row(self, run_id: str) -> dict[str, Any] | None:
        """A run's row; it may have been set aside."""
        return self.table.row(run_id) or self.aside.row(run_id)

    def complete(self, run_id: str, edition: int = 1) -> dict[str, Any] | None:
        """A run's row, if it ended and was made in this edition or a later one with every metric
        of the one that it was made in."""
        row = self.row(run_id)
        if row is None or row["status"] not in ENDED:
            return None
        made_in = edition_of(row)
        wanted = [f"{split}_{name}" for split in SPLITS
                  for name in columns(row["dataset"], split, made_in, row["model"])]
        lacking = row["status"] == "done" and (
            made_in < edition or any(row.get(name) is None for name in wanted))
        return None if lacking else row

    def curve(self, run_id: str) -> pd.DataFrame:
        """A line per epoch of a published run. Raises: ValueError where it has none."""
        found = self.packs.read(run_id)
        if found is None:
            raise ValueError(f"no curve of run {run_id}: " + (
                self._aside() if self.aside.row(run_id) else
                f"{self.packs.manifest} does not name it; {restore(self.packs.manifest)}"))
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
        row = self.row(run_id) or {}
        for direction, of_queries in best.items():
            stated, counted = row.get(f"test_{direction}_r1"), 100 * float((of_queries <= 1).mean())
            if stated is not None and not math.isclose(stated, counted, abs_tol=1e-6):
                raise ValueError(f"{path} is not of run {run_id}: its {direction} R@1 is "
                                 f"{counted:.2f}, the row says {stated:.2f}; {restore(path)}")
        return arrays

    def _aside(self) -> str:
        return (f"its row was set aside in {self.aside.path.name}, where rows have neither curves "
                "nor ranks; train it again with edition=2")


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


def curve(run_id: str, edition: int = 1) -> pd.DataFrame:
    """The learning curve of a run, a line per epoch: published, else from this machine's store.

    Args:    edition: the earliest that will do.
    Raises:  ValueError where the run is in neither, or what is published is damaged.
    """
    if published := _published(run_id, edition):
        return published.curve(run_id)
    if result := RunStore().result(run_id):
        return result.history.table()
    raise ValueError(f"no curve of run {run_id}: {_nowhere(run_id)}")


def arrays(run_id: str, edition: int = 1) -> dict[str, np.ndarray]:
    """The arrays of a run by name: test_i2t and test_t2i, the rank of the best match of every query
    (1 = first), and what else `RunResult.arrays` has; published, else from this machine's store.

    Args, Raises: as `curve`.
    """
    published = _published(run_id, edition)
    if published and (found := published.arrays(run_id)):
        return found
    if result := RunStore().result(run_id):
        return result.arrays()
    why = _nowhere(run_id) if not published else published._aside() if published.aside.row(
        run_id) else ("its row is published without them; train it again: itr-study train "
                      f"{run_id}")
    raise ValueError(f"no ranks of run {run_id}: {why}")


def _published(run_id: str, edition: int) -> Published | None:
    """The published runs that this one is among, in this edition or a later one."""
    folders: list[Path] = sorted(evidence_folder().glob("*/runs.csv"))
    for published in (Published(path.parent.name) for path in folders):
        row = published.row(run_id)
        if row is not None and edition_of(row) >= edition:
            return published
    return None


def _nowhere(run_id: str) -> str:
    return ("it is neither published nor in the store of this machine; train it with `train_arms` "
            "or `itr-study train`")
