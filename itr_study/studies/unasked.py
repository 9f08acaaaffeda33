"""Committed rows of edition 1 that no notebook asks for: of a dropped arm, or of an older part."""

from pathlib import Path

from itr_study.files.paths import figures_folder
from itr_study.runs.identity import identify, is_remembered
from itr_study.runs.rows import Rows, edition_of
from itr_study.studies.plans import PLANS
from itr_study.studies.profiles import PROFILES


def unasked(dataset: str, figures: Path | str | None = None) -> list[str]:
    """Ids of the committed rows of edition 1 that no notebook asks for in any profile, sorted.

    Args:    figures: where rows are kept.
    Raises:  ValueError where no rows are kept, or the plan of a notebook cannot be made for this
             data set; DataError where nothing says what identifies the runs of a data set.
    """
    folder = figures_folder(figures)
    rows = Rows(folder / dataset).read()
    if not rows:
        raise ValueError(f"no rows are kept in {folder / dataset}; there is nothing to set aside")
    asked = {identify(arm.config, None, folder).id for profile in PROFILES
             for plan in PLANS.values() for arm in plan(dataset, profile)
             if arm.config.dataset == dataset and is_remembered(arm.config, folder / dataset)}
    return sorted(run_id for run_id, row in rows.items()
                  if run_id not in asked and edition_of(row) == 1)


def set_aside(dataset: str, figures: Path | str | None = None) -> list[str]:
    """Move these rows to `edition1.csv`; their ids. A row there still serves where somebody asks
    for its run, but has neither curve nor ranks, and is audited less.

    Args, Raises: as `unasked`.
    """
    ids = unasked(dataset, figures)
    Rows(figures_folder(figures) / dataset).set_aside(ids)
    return ids
