"""Anyone's scores: numbers against the metrics by themselves, mistakes of protocol by name."""

import numpy as np
import pytest

import itr_study as itr
from itr_study.evaluation.protocol import FOLDED, described, owners
from itr_study.metrics import GRADED_METRICS, Truth, query_means, r_precision

OWNER = np.repeat(np.arange(30), 5)


def drawn(seed: int = 0, images: int = 30, texts: int = 150) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((images, texts)).astype(np.float32)


def test_every_metric_is_that_of_its_own_function(tmp_path):
    scores, relevance = drawn(), np.random.default_rng(1).random((30, 150))
    np.save(tmp_path / "s.npy", scores)
    card = itr.score(np.load(tmp_path / "s.npy", mmap_mode="r"), OWNER, relevance)
    best = itr.ranks(scores, OWNER)
    assert itr.retrieval_table(best).items() <= card.table.items()
    truth = Truth(OWNER, 30, relevance.__getitem__)
    for name, value in query_means(scores, truth, GRADED_METRICS).items():
        assert card.table[name] == pytest.approx(100 * value)
    precision = r_precision(scores, truth)["i2t_r_precision"]
    assert card.table["i2t_rp"] == pytest.approx(100 * precision)
    assert card.protocol[0] == "30 images, 150 texts, 5 an image"
    assert card.protocol[-1] == "no ties, no duplicates"
    plain = itr.score(scores)  # five texts an image, one image after the other
    assert plain.table["t2i_r5"] == card.table["t2i_r5"] and "t2i_tau" not in plain.table


def test_embeddings_are_scored_as_their_products():
    rng = np.random.default_rng(0)
    images, texts = rng.standard_normal((300, 8)), rng.standard_normal((600, 8))
    with pytest.raises(ValueError, match="lengths from .* not 1.*similarity cosine"):
        itr.score(images=images, texts=texts)
    dot = itr.score(images=images, texts=texts, similarity="dot")
    assert dot.table == pytest.approx(itr.score(images @ texts.T).table)
    unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (images, texts)]
    cosine = itr.score(images=images, texts=texts, similarity="cosine")
    assert cosine.table == pytest.approx(itr.score(images=unit[0], texts=unit[1]).table)
    with pytest.raises(ValueError, match="vector of images is zero"):
        itr.score(images=images * 0, texts=texts, similarity="cosine")


@pytest.mark.parametrize(("scores", "owner", "said"), [
    (drawn().T, OWNER, "rows and columns are swapped; give scores.T"),
    (drawn().T, None, "rows and columns seem swapped"),
    (drawn(texts=30), OWNER, "one text an image was scored of several"),
    (np.repeat(drawn(), 5, 0), OWNER, "image ids are not unique, each image has a row"),
    (np.repeat(drawn(), 5, 0), None, "120 of 150 rows equal another row"),
    (drawn(images=1, texts=40456), None, "scores of pairs alone"),
    (drawn()[0], None, "scores of pairs alone"),
    (np.zeros((30, 150)), OWNER, "all scores are equal"),
    (drawn() * np.nan, OWNER, "must not be NaN; found one at image 0, text 0"),
    (drawn(texts=149), None, "say by ids"),
    ([[1.0, 0.0], [0.0, 1.0]], None, "numpy.asarray.scores. makes one"),
    ("scores.npy", None, "scores must be .n_images, n_texts., got"),
])
def test_mistakes_are_refused_by_name(scores, owner, said):
    with pytest.raises(ValueError, match=said):
        itr.score(scores, owner)


def test_what_is_another_protocol_is_said():
    assert "all of Flickr8k, not its test split" in described(np.arange(8091), 8091)[1]
    assert "5 × 1K" in described(np.arange(FOLDED), FOLDED)[1]
    assert "one text an image" in described(np.arange(1000), 1000)[2]
    assert "comparable at this size alone" in described(np.arange(90), 90)[1]
    assert owners((2, 6), None).tolist() == [0, 0, 0, 1, 1, 1]


def test_ties_are_counted_against_and_for_the_model():
    scores = np.array([[1.0, 1.0, 0.0], [0.0, 0.5, 0.2], [0.0, 0.1, 0.3]])
    card = itr.score(scores)
    assert "i2t: the match of 1 of 3 queries ties with others" in card.protocol[2]
    assert "R@1 66.7; in its favour 100.0" in card.protocol[2]
    twice = drawn()
    twice[3] = twice[4]
    assert any("1 image with the scores of another" in note for note in itr.score(twice).protocol)
