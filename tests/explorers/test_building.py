"""What takes long at a large split is said while it is built, where somebody watches, and gone
afterwards."""

import numpy as np
import pytest

from itr_study.evaluation.search import Searcher
from itr_study.explorers.rating_game import sample_pairs
from itr_study.lab.runs.data import dataset_of, encoded_data
from itr_study.lab.runs.run import weights
from tests.explorers.searchers import two_searchers
from tests.explorers.test_embedding_map import OWNER, cross
from tests.explorers.test_who_moved import made as who_moved
from tests.small_runs import SMALL
from tests.test_progress import on_terminal


def searcher() -> Searcher:
    return Searcher(weights(SMALL), dataset_of(SMALL), encoded_data(SMALL))


BUILT = {
    "encoding 10 images and 50 texts": searcher,
    "scoring 10 images and 50 texts": lambda: searcher().scores,
    "ranks of two models": who_moved,
    "NDCG of two models": lambda: who_moved().choose(measure="ndcg"),
    "a map of 2 images and 2 texts": cross,
    "looking for pairs of each grade": lambda: sample_pairs(np.eye(2), OWNER, seed=0)}


@pytest.mark.parametrize("said", BUILT)
def test_what_is_built_is_said_and_gone_in_the_end(said, monkeypatch):
    two_searchers()  # trained before: that has a bar, too
    terminal = on_terminal(monkeypatch)
    BUILT[said]()
    drawn = terminal.getvalue().split("\r")
    assert any(line.startswith(f"{said}:") for line in drawn), drawn
    assert not drawn[-2].strip() and not drawn[-1]
