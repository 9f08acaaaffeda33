"""What is known of a data set before anything of it is read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from itr_study.data.base import RetrievalDataset


@dataclass(frozen=True)
class DatasetRecord:
    """A data set by name: how it is read, where it lies, and what its runs are measured by.

    load: called with (root, **options); the options are what a run's config may set.
    generated: made in seconds on any machine. It needs no folder, all runs of it are trained, and
    no rows of them are committed.
    folders: names that its folder may have below the root of all data.
    graded_by: label sources that say how relevant every text is to every image when a run is
    evaluated, the one to show first first. "cider" needs nothing but the captions.
    in_folds: splits that are also measured in five folds, COCO's "1K" protocol.
    searched: the split that a search looks at, "all" for all of them.
    human_columns: the correlations with human judgements that rows carry, by split.
    by_class: whether dev and test are also measured by class (`classes` of the data set).
    judged_by: who said of pairs that do not belong together how well they fit, in the words of a
    sentence; "" where nobody did.
    kept_judgements: collections of which a run keeps the score of every judged pair of test.
    """

    name: str
    load: Callable[..., RetrievalDataset]
    generated: bool = False
    folders: tuple[str, ...] = ()
    graded_by: tuple[str, ...] = ("cider",)
    in_folds: tuple[str, ...] = ()
    searched: str = "test"
    human_columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kept_judgements: tuple[str, ...] = ()
    judged_by: str = ""
    by_class: bool = False
