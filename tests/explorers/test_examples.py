"""Queries that are shown, and what models find for them."""

from base64 import b64decode
from io import BytesIO

import numpy as np
import pytest
from bs4 import BeautifulSoup
from matplotlib.text import Text
from PIL import Image

from itr_study.digits import number
from itr_study.evaluation.search import Searcher
from itr_study.explorers import (
    easy_to_hard,
    image_queries,
    obvious_errors,
    picture_hits,
    show_source,
    side_by_side,
    text_queries,
)
from itr_study.lab.runs.data import dataset_of, encoded_data
from itr_study.lab.runs.run import build_model, weights
from itr_study.losses import LOSSES
from itr_study.metrics import ranks
from itr_study.plots.retrieval import answer_grid
from tests.small_runs import SMALL


@pytest.fixture(scope="module")
def searcher() -> Searcher:
    return Searcher(weights(SMALL), dataset_of(SMALL), encoded_data(SMALL))


def test_queries_agree_with_scores_ranks_and_relevance(searcher):
    scores = searcher.scores
    found = ranks(scores, searcher.split.image_of_text)
    graded, split = searcher.relevance, searcher.split
    for image, query in zip((0, 7), image_queries(searcher, (0, 7), top=3), strict=True):
        best = np.argsort(-scores[image], kind="stable")[:3]
        assert query.match_rank == found.i2t[image]
        assert [r.item for r in query.results] == [split.texts[t] for t in best]
        assert [r.match for r in query.results] == [split.image_of_text[t] == image for t in best]
        assert [r.relevance for r in query.results] == pytest.approx(graded[image, best])
    for text, query in zip((3, 40), text_queries(searcher, (3, 40), top=2), strict=True):
        best = np.argsort(-scores[:, text], kind="stable")[:2]
        assert query.item == split.texts[text] and query.match_rank == found.t2i[text]
        assert [r.score for r in query.results] == pytest.approx(scores[best, text], abs=1e-5)
        assert [r.match for r in query.results] == [split.image_of_text[text] == i for i in best]
        assert [r.relevance for r in query.results] == pytest.approx(graded[best, text])
        assert query.results[0].item.tobytes() == searcher.dataset.open_image(
            split.image_ids[best[0]]).tobytes()


def test_new_words_have_neither_match_nor_relevance(searcher):
    words, known = text_queries(searcher, ["a giraffe", searcher.split.texts[3]], top=4)
    hits = searcher.search_text("a giraffe", top=4)
    assert words.item == "a giraffe" and words.match_rank is None
    assert [(r.score, r.match, r.relevance) for r in words.results] == [
        (hit.score, None, None) for hit in hits]
    assert known.match_rank == text_queries(searcher, [3])[0].match_rank
    assert known.results[0].relevance is None  # several texts may have these words
    figure = answer_grid(words, "What the model finds", columns=3)
    assert [axes.get_title("left") for axes in figure.axes] == ["query", "1", "2", "3", "4", ""]
    assert "✗" not in str([text.get_text() for text in figure.findobj(Text)])


def test_a_search_in_words_shows_pictures(searcher):
    hits = searcher.search_text(3, top=len(searcher.split.image_ids))
    page = BeautifulSoup(picture_hits(searcher, hits)._repr_html_(), "html.parser")
    for hit, shown in zip(hits, page.find_all("figure"), strict=True):
        picture = Image.open(BytesIO(b64decode(shown.img["src"].split(",")[1])))
        assert max(picture.size) <= 150 and shown.img["title"] == hit.id
        assert shown.img["alt"] == hit.text and f"score {number(hit.score, 2)}" in shown.text
        assert shown.b.text == (f"{hit.rank} ✓" if hit.match else f"{hit.rank}")
    assert page.text.count("✓") == 1
    unknown = searcher.search_text("a <b> of its own", top=2)  # no known match, so none is marked
    assert "✓" not in picture_hits(searcher, unknown)
    with pytest.raises(ValueError, match="got no hits"):
        picture_hits(searcher, [])


def test_an_easy_a_middling_and_a_hard_query_are_chosen():
    assert easy_to_hard(np.array([9, 1, 5, 3, 7])) == [1, 2, 4]  # of ranks 1, 5, 7
    assert easy_to_hard(np.array([2])) == [0, 0, 0]


def test_models_answer_the_same_queries_one_after_the_other():
    data, dataset = encoded_data(SMALL), dataset_of(SMALL)
    searchers = {name: Searcher(build_model(SMALL.with_(seed=seed), data.inputs), dataset, data)
                 for seed, name in enumerate(("one", "two + more"))}
    relevance = searchers["one"].relevance
    answers, table = side_by_side(searchers, image_queries, [0, 3], relevance)
    assert [answer.title for answer in answers] == ["one", "two\n+ more"] * 2
    assert list(table["query"].unique()) == [0, 3] and len(table) == 4 * 5
    first = table[(table.model == "one") & (table["query"] == 3)]
    best = searchers["one"].scores[3].argsort()[::-1][:5]
    assert list(first.relevance) == pytest.approx(relevance[3, best])
    wrong = table[~table.match.astype(bool) & (table.relevance < 0.5)]
    assert obvious_errors(table, 0.5) == (f"{(wrong.model == 'one').sum()} by one, "
                                          f"{(wrong.model == 'two + more').sum()} by two + more")


def test_the_source_of_a_loss_is_shown_without_its_indent():
    code = show_source(LOSSES["topk"]._loss)
    assert code.data.startswith("def _loss(self, scores") and "<span" in code._repr_html_()
