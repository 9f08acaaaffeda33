"""Near duplicates among queries, by hand and by loops."""

import numpy as np
import pandas as pd
import pytest

from itr_study.data.batches import EncodedSplit
from itr_study.lab.studies import nb12_claims
from itr_study.lab.studies.nb12_claims import ambiguous_queries, by_ambiguity, claimed_so
from itr_study.metrics import Ranks


def split_of(vectors, owner) -> EncodedSplit:
    images = max(owner) + 1
    return EncodedSplit("test", np.array(owner), np.zeros((images, 1, 1, 0), np.float32),
                        label_vectors={"minilm": np.array(vectors, np.float32)})


def test_a_query_is_ambiguous_by_captions_of_other_images_alone():
    """Image 0 says the same twice; text 3 of image 1 is near text 4 of image 2; 5 is far."""
    vectors = [[1, 0, 0], [2, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0.6, 0.8], [-1, 0, 0]]
    found = ambiguous_queries(split_of(vectors, [0, 0, 1, 1, 2, 2]))
    assert found.t2i.tolist() == [False, False, False, True, True, False]  # cosine 0.8
    assert found.i2t.tolist() == [False, True, True]
    assert not ambiguous_queries(split_of(vectors, [0, 0, 1, 1, 2, 2]), 0.81).t2i.any()


def test_equals_loops_over_blocks(monkeypatch):
    monkeypatch.setattr(nb12_claims, "ROWS", 7)
    random = np.random.default_rng(0)
    vectors, owner = random.normal(size=(40, 3)), np.repeat(np.arange(10), 4)
    found = ambiguous_queries(split_of(vectors, owner), 0.95)
    lengths = np.linalg.norm(vectors, axis=1)
    texts = [any(owner[i] != owner[j] and vectors[i] @ vectors[j] / lengths[i] / lengths[j] >= 0.95
                 for j in range(40)) for i in range(40)]
    assert found.t2i.tolist() == texts and 5 < sum(texts) < 35
    assert found.i2t.tolist() == [any(texts[4 * i:4 * i + 4]) for i in range(10)]


def test_recalls_are_summed_over_each_kind_of_query(monkeypatch):
    ranks = Ranks(np.array([1, 2, 20]), np.array([1, 6, 11, 3]))
    monkeypatch.setattr(nb12_claims, "ranks_of", lambda row: {"a": ranks}[row["run"]])
    rows = pd.DataFrame({"run": ["a", "b"], "arm": ["k=5", "no claim"]}, index=[7, 3])
    ambiguous = Ranks(np.array([True, False, False]), np.array([False, True, False, True]))
    table = by_ambiguity(rows, ambiguous)
    # ambiguous: image ranks 1; text ranks 6, 3. clear: image ranks 2, 20; text ranks 1, 11
    assert table["ambiguous_rsum"].tolist()[:1] == [300 + 0 + 50 + 100]
    assert table["clear_rsum"].tolist()[:1] == [0 + 50 + 50 + 50 + 50 + 50]
    assert table.index.tolist() == [7, 3] and table.loc[3, ["ambiguous_rsum", "clear_rsum"]
                                                        ].isna().all()
    assert claimed_so() == {"k=1", "k=5", "sum", "clean_gru/k=1", "clean_gru/k=5", "clean_gru/sum"}
    with pytest.raises(ValueError, match="0 of 3 images are ambiguous"):
        by_ambiguity(rows, Ranks(np.zeros(3, bool), ambiguous.t2i))
    with pytest.raises(ValueError, match="ranks of 3 images and 4 texts, not of this split"):
        by_ambiguity(rows, Ranks(ambiguous.i2t, ambiguous.t2i[:3]))
