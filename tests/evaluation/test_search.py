"""Search finds what the scores say, by words of the split, new words, ids, and new pictures."""

import numpy as np
import pytest
from PIL import Image

from itr_study.evaluation.evaluate import score
from itr_study.evaluation.search import Searcher, hit_table
from itr_study.runs.data import dataset_of, encoded_data
from itr_study.runs.run import weights
from tests.small_runs import SMALL


@pytest.fixture(scope="module")
def searcher() -> Searcher:
    return Searcher(weights(SMALL), dataset_of(SMALL), encoded_data(SMALL))


def test_a_text_of_the_split_finds_what_the_score_matrix_says(searcher):
    scores = score(searcher.model, searcher.images, searcher.texts).numpy()
    for index in (0, 7, 23):
        hits = searcher.by_text(searcher.split.texts[index], top=4)
        order = np.argsort(-scores[:, index], kind="stable")[:4]
        assert [h.id for h in hits] == [searcher.split.image_ids[i] for i in order]
        assert [h.score for h in hits] == pytest.approx(scores[order, index], abs=1e-5)
        right = searcher.split.image_ids[searcher.split.image_of_text[index]]
        assert all(h.match == (h.id == right) for h in hits) or right not in [h.id for h in hits]


def test_an_image_finds_texts_and_its_own_are_marked(searcher):
    scores = score(searcher.model, searcher.images, searcher.texts).numpy()
    hits = searcher.by_image(searcher.split.image_ids[3], top=1000)
    assert len(hits) == len(searcher.split.texts)
    assert [h.score for h in hits] == pytest.approx(sorted(scores[3], reverse=True), abs=1e-5)
    own = {searcher.split.text_ids[t] for t in np.flatnonzero(searcher.split.image_of_text == 3)}
    assert {h.id for h in hits if h.match} == own
    table = hit_table(hits[:2]).splitlines()
    assert len(table) == 2 and table[0].lstrip().startswith("1 ")


def test_new_words_have_no_known_match(searcher):
    assert {h.match for h in searcher.by_text("a giraffe in the subway")} == {None}


def test_new_pictures_need_features_of_our_own(searcher):
    with pytest.raises(ValueError, match="came with the data"):
        searcher.by_image(Image.new("RGB", (32, 32)))
    with pytest.raises(ValueError, match="neither a picture file nor an image of the test split"):
        searcher.by_image("nowhere")
