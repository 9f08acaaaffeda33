"""Search finds what the scores say: by index, by words of the split and new ones, by ids and new
pictures; what is encoded is encoded once."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from itr_study.encoders import TEXT_ENCODERS
from itr_study.evaluation import search
from itr_study.evaluation.evaluate import evaluate
from itr_study.evaluation.search import Hit, Searcher, hit_table
from itr_study.features.dataset import encode_dataset
from itr_study.lab.runs.data import dataset_of, encoded_data
from itr_study.lab.runs.run import weights
from itr_study.metrics.answers import Level, answer_level
from tests.small_runs import SMALL


@pytest.fixture(scope="module")
def searcher() -> Searcher:
    return Searcher(weights(SMALL), dataset_of(SMALL), encoded_data(SMALL))


def test_scores_and_relevance_are_those_of_the_split(searcher):
    scores, split = searcher.scores, searcher.split
    found = evaluate(searcher.model, searcher.encoded)
    np.testing.assert_allclose(scores, (found.images @ found.texts.T).numpy(), atol=1e-5)
    assert scores.dtype == np.float32 and searcher.scores is scores
    assert searcher.relevance.shape == scores.shape
    assert (searcher.relevance[split.image_of_text, np.arange(len(split.texts))] == 1).all()


def test_a_text_of_the_split_finds_what_the_score_matrix_says(searcher):
    scores, split = searcher.scores, searcher.split
    for index in (0, 7, 23):
        hits = searcher.search_text(index, top=4)
        order = np.argsort(-scores[:, index], kind="stable")[:4]
        assert [h.index for h in hits] == order.tolist()
        assert [h.id for h in hits] == [split.image_ids[i] for i in order]
        assert [h.score for h in hits] == scores[order, index].tolist()
        assert [h.match for h in hits] == [i == split.image_of_text[index] for i in order]


def test_words_of_the_split_match_every_image_they_were_written_for(searcher):
    twins = copy(searcher)  # in which text 7 says what text 23 says
    texts = list(searcher.split.texts)
    texts[7] = texts[23]
    twins.split = replace(searcher.split, texts=tuple(texts))
    hits = twins.search_text(texts[23], top=1000)
    right = {int(searcher.split.image_of_text[t]) for t in (7, 23)}
    assert len(right) == 2 and {h.index for h in hits if h.match} == right
    assert [h.score for h in hits] == sorted(searcher.scores[:, 7], reverse=True)
    assert {h.index for h in twins.search_text(23, top=1000) if h.match} == {
        searcher.split.image_of_text[23]}  # a match is decided by image, never by what it says


def test_an_image_finds_texts_and_its_own_are_marked(searcher):
    split = searcher.split
    hits = searcher.search_image(3, top=1000)
    assert hits == searcher.search_image(split.image_ids[3], top=1000)
    assert len(hits) == len(split.texts)
    assert [h.score for h in hits] == sorted(searcher.scores[3], reverse=True)
    assert [h.text for h in hits] == [split.texts[h.index] for h in hits]
    own = {split.text_ids[t] for t in np.flatnonzero(split.image_of_text == 3)}
    assert {h.id for h in hits if h.match} == own
    heading, first, second = hit_table(hits[:2]).splitlines()
    assert heading.split() == ["rank", "score", "id", "text"]
    assert heading.index("text") == first.index(hits[0].text) == second.index(hits[1].text)
    assert heading.index("id") == first.index(hits[0].id) and first.split()[0] == "1"


def test_nothing_of_the_split_is_encoded_or_scored_a_second_time(searcher, monkeypatch):
    assert searcher.scores is not None
    for name in ("encode_images", "encode_texts", "score", "evaluating"):
        monkeypatch.setattr(search, name, None)
    searcher.search_text(5), searcher.search_text(searcher.split.texts[5]), searcher.search_image(2)


def test_new_words_have_no_known_match(searcher):
    assert {h.match for h in searcher.search_text("a giraffe in the subway")} == {None}


def test_words_of_the_split_and_new_words_score_alike(searcher):
    """The words of text 7, encoded as any words are, reach the scores of text 7."""
    np.testing.assert_allclose(searcher._score_words(searcher.split.texts[7]),
                               searcher.scores[:, 7], atol=1e-5)


def test_an_index_beyond_the_split_is_refused(searcher):
    with pytest.raises(ValueError, match=r"text must be an index in \[0, .* got -1"):
        searcher.search_text(-1)
    with pytest.raises(ValueError, match="image must be an index .* got 100000"):
        searcher.search_image(100000)


@pytest.mark.parametrize("wrong", [True, 1.5, None, b"a dog", ["a dog"], np.zeros((8, 8, 3))])
def test_what_is_no_query_is_refused_in_a_sentence(searcher, wrong):
    with pytest.raises(ValueError, match="text must be an index .* or any words; got"):
        searcher.search_text(wrong)
    with pytest.raises(ValueError, match="image must be an index .* or a picture of PIL; got"):
        searcher.search_image(wrong)


@pytest.mark.parametrize("top", [0, -1, True, 2.0, None])
def test_a_number_of_results_that_is_none_is_refused(searcher, top):
    for ask in (searcher.search_text, searcher.search_image):
        with pytest.raises(ValueError, match="top must be an integer >= 1"):
            ask(np.int64(3), top=top)


def test_scores_that_are_no_numbers_are_not_ranked(searcher):
    broken = copy(searcher)
    broken.images = searcher.images.clone()
    broken.images[3, 0] = torch.nan
    with pytest.raises(ValueError, match="NaN instead of scores"):
        broken.search_text("a red boat")


def test_known_scores_of_other_weights_or_data_are_refused(searcher):
    def with_known(scores):
        return Searcher(searcher.model, searcher.dataset, searcher.data, known={"scores": scores})

    right = torch.from_numpy(searcher.scores)
    assert with_known(right + 1e-5).scores is not None
    for other in (right.flip(1), right.flip(0), right * 2, torch.zeros_like(right)):
        with pytest.raises(ValueError, match="known scores are not those of this model and test"):
            with_known(other)
    with pytest.raises(ValueError, match="must be of the 10 images and 50 texts"):
        with_known(right[1:])


def test_names_and_texts_take_one_line_each_whatever_they_hold():
    hits = [Hit(1, 0.5, 0, "new\nline.jpg", "two\r\nlines\u2028and \x1b[31mred", None),
            Hit(2, 0.4, 1, "b.jpg", "a dog\n", None)]
    _, first, second = hit_table(hits).splitlines()
    assert "new\\nline.jpg  two\\r\\nlines\\u2028and \\x1b[31mred" in first
    assert second.endswith("b.jpg          a dog")


def test_new_pictures_need_features_of_our_own(searcher):
    with pytest.raises(ValueError, match="came with the data"):
        searcher.search_image(Image.new("RGB", (32, 32)))
    with pytest.raises(ValueError, match="neither a picture file nor an image of the test split"):
        searcher.search_image("nowhere")


def test_a_new_picture_is_read_as_those_of_the_data_are(searcher, monkeypatch):
    """A 16-bit one is scaled, not cut off at white."""
    seen = []

    def encode(pictures):
        seen.extend(pictures)
        return searcher.data.splits["test"].regions[:1]

    monkeypatch.setattr(searcher.data, "encode_images", encode)
    searcher.search_image(Image.fromarray(np.full((8, 8), 257 * 100, np.uint16)))
    assert seen[0].getpixel((0, 0)) == (100, 100, 100)


def test_all_splits_in_one_find_what_each_finds(searcher):
    whole = Searcher(searcher.model, searcher.dataset, searcher.data, "all")
    assert len(whole.split.image_ids) == 44 and len(whole.split.texts) == 220
    starts, first = 34, 170  # images and texts of train and dev come before those of test
    scores = {hit.id: hit.score for hit in whole.search_text(first + 7, top=1000)}
    for hit in searcher.search_text(7, top=1000):
        assert scores[hit.id] == pytest.approx(hit.score, abs=1e-5)
    assert [h.id for h in whole.search_text(first + 7, top=1000) if h.match] == [
        h.id for h in searcher.search_text(7, top=1000) if h.match]
    texts = whole.search_image(starts + 3, top=1000)
    assert {h.id for h in texts if h.match} == {
        h.id for h in searcher.search_image(3, top=1000) if h.match}
    assert whole.search_image(searcher.split.image_ids[3], top=5) == texts[:5]
    with pytest.raises(ValueError, match="split to search must be one of train, dev, test, all"):
        Searcher(searcher.model, searcher.dataset, searcher.data, "tests")


def test_words_that_the_model_cannot_read_are_named(searcher):
    assert "cannot read it: qwrtz" in searcher.doubts("A red qwrtz, qwrtz")
    with pytest.raises(ValueError, match="the query ' !' holds no word"):
        searcher.search_text(" !")


@pytest.mark.parametrize(("changes", "expected"), [
    ({"tokens": "words"}, ["giraffe", "qwrtz"]),  # no caption of scenes has a giraffe
    ({"tokens": "words", "sentences": "glove-mean"}, ["qwrtz"]),  # GloVe knows giraffes
    ({"tokens": "wordpiece:minilm"}, []),  # in pieces all can be read
    ({}, []),  # nothing reads texts: nothing to say
])
def test_a_word_is_unknown_where_nothing_reads_it(changes, expected):
    dataset = dataset_of(SMALL)
    data = encode_dataset(dataset, "detector", **{"tokens": None} | changes)
    assert data.unread(["a red giraffe and qwrtz"]) == [(expected, False, 0)]


def test_sentence_encoders_name_what_they_leave_out():
    for name, expected in (("fisher", ["qwrtz"]), ("glove-mean", ["qwrtz"]), ("minilm", [])):
        assert TEXT_ENCODERS[name]("cpu").unread(["red qwrtz"]) == [(expected, False, 0)]


@pytest.mark.parametrize("name", ["test", "dev", "all"])
def test_captions_of_dev_ask_for_their_picture_among_those_searched(searcher, name):
    one = Searcher(searcher.model, searcher.dataset, searcher.data, name)
    dev, encoded = searcher.dataset.splits["dev"], searcher.data.splits["dev"]
    texts = search.encode_texts(one.model, encoded)
    searched = dict(zip(one.split.image_ids, search.score(one.model, one.images, texts).numpy(),
                        strict=True))
    asking = dict(zip(dev.image_ids, search.score(one.model, search.encode_images(
        one.model, encoded), texts).numpy(), strict=True))
    best, right = one.asked(encoded)
    assert len(best) == len(dev.texts)
    for t, owner in enumerate(dev.image_of_text):
        own = dev.image_ids[owner]
        others = [scores[t] for image, scores in searched.items() if image != own]
        np.testing.assert_allclose(best[t], max(*others, asking[own][t]), atol=1e-5)
        above = [other - asking[own][t] for other in others]
        if min(map(abs, above)) > 1e-5:
            assert right[t] == (sum(value > 0 for value in above) < 10)
    levels = [answer_level(best, right, wrong) for wrong in search.PROMISES]
    few = len(one.split.image_ids) <= 20  # by chance most are among the first ten
    assert one.level == (None if few else next((level for level in levels if level.answered),
                                               levels[-1]))


def test_new_words_are_told_whether_something_fits(searcher):
    one = copy(searcher)
    score = one.search_text("a red boat")[0].score
    for level, fits, said in (
            (score - 0.1, True, ""), (score, True, ""),
            (score + 0.1, False, f"nothing here fits (the best score, {score:.2f}, is below "
             f"{score + 0.1:.2f}, the level at which 9 of 10 answers hold, tried with 50 captions "
             "of dev)"),
            (score + 0.001, False, f"nothing here fits (the best score, {score:.4f}, is below "
             f"{score + 0.001:.4f}, the level at which 9 of 10 answers hold, tried with 50 "
             "captions of dev)"),
            (np.inf, False, "nothing here can be said to fit: at no score do half of the answers "
             "hold (tried with 50 captions of dev)")):
        vars(one)["level"] = Level(level, 0.1, 0.5, 50)
        hits = one.search_text("a red boat", top=3)
        assert (hits.fits, hits.refusal) == (fits, said) and len(hits) == 3


def test_without_captions_of_dev_nobody_knows_whether_something_fits(searcher):
    splits = {name: split for name, split in searcher.data.splits.items() if name != "dev"}
    one = Searcher(searcher.model, searcher.dataset, replace(searcher.data, splits=splits), "train")
    hits = one.search_text("a red boat")
    assert one.level is None and hits.fits is None
    assert hits.refusal.startswith("whether something fits is not known: there is no dev split")
    lent = replace(one, calibration=searcher.data.splits["dev"])
    assert lent.level == replace(searcher, name="train").level and lent.level is not None
    assert searcher.search_text("a red boat").refusal.endswith("there are too few pictures")


def test_a_model_that_compares_much_is_asked_less(searcher, monkeypatch):
    encoded = searcher.data.splits["dev"]
    assert len(searcher.asked(encoded)[0]) == encoded.n_texts
    monkeypatch.setattr(search, "LEAST", 3)
    monkeypatch.setattr(search, "WORK", 7 * len(searcher.split.image_ids))
    assert len(searcher.asked(encoded)[0]) == 7
    monkeypatch.setattr(search, "WORK", 0)
    assert len(searcher.asked(encoded)[0]) == 3
