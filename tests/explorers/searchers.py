"""Two trained models over one small gallery, for explorers."""

from functools import cache

from itr_study.evaluation.search import Searcher
from itr_study.lab.runs.data import dataset_of, encoded_data
from itr_study.lab.runs.run import weights
from tests.small_runs import SMALL

OTHER = SMALL.with_(seed=1)


@cache
def two_searchers() -> dict[str, Searcher]:
    """Of two seeds, by name."""
    return {name: Searcher(weights(config), dataset_of(config), encoded_data(config))
            for name, config in (("one", SMALL), ("two", OTHER))}
