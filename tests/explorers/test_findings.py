"""What a map says it shows, by hand and by the metrics."""

import doctest

import numpy as np
import pytest

from itr_study.explorers import findings
from itr_study.explorers.embedding_map import EmbeddingMap
from itr_study.metrics import ranks
from tests.explorers.test_embedding_map import CROSS, OWNER, cloud, cross

# Twelve images and their texts, opposite each other at these distances; the first pair, farthest
# out, does not find itself: its score is the lowest of all, where all others are equal.
FAR = np.array([3.0, 1.0, 1.1, 1.2, 1.3, 1.4])
ANGLES = np.arange(12) * np.pi / 6
SCORES = np.where(np.arange(12) == 0, -1.0, 1.0) * np.eye(12)


def ring(far):
    return np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1) * np.tile(far, 2)[:, None]


def twelve(**named) -> EmbeddingMap:
    texts = [f"text {n}" for n in range(12)]
    return EmbeddingMap({"all": (ring(FAR), ring(FAR + 0.01))}, np.arange(12), texts,
                        scores=SCORES, **named)


def told(one: EmbeddingMap, colour: str) -> str:
    one.hear("colour", colour)
    assert one.problem == "" and one.sentence() == one.view()["sentence"]
    return one.sentence()


def test_failures_their_share_and_where_they_lie():
    assert ("2 of 24 are failures, their match not among the first 10: 8 % of the images, 8 % of "
            "the texts. Of the points in the inner half of the map 0 % fail, of those in the outer "
            "half 17 %. In the rectangle") in told(twelve(), "rank")


def test_the_strongest_hub_is_the_one_found_most_beside_chance():
    """Of equal scores the first in order are found: the second image by all twelve texts, as the
    second text."""
    assert ("The strongest hub, beside the average of its kind, is image 2: among the "
            "first 10 of 12 texts. On average an image is found 10.0 times and a text 10.0 times; "
            "0 % are never found.") in told(twelve(), "hub")
    texts = np.array([[1.0, 0], [1, 0.1], [1, 0.2], [1, 0.3], [0, 1]])
    several = EmbeddingMap({0: (np.eye(2), texts)}, np.array([0, 0, 0, 1, 1]), ["<b>"] + 4 * ["x"])
    assert ("average of its kind, is image 1: among the first 10 of 5 texts. On average "
            "an image is found 5.0 times and a text 2.0 times") in told(several, "hub")


def test_who_is_better_off_than_by_the_other_model():
    better = " 0 find their match earlier here than by the other model, 2 later, 22 alike."
    assert better in told(twelve(other=np.eye(12)), "gain")
    turned = EmbeddingMap({0: (np.eye(2), np.eye(2))}, OWNER, ["a", "b"], other=1 - np.eye(2))
    assert " 4 find their match earlier here than by the other model, 0 later, 0 alike." in told(
        turned, "gain")


def test_how_far_images_and_texts_lie_apart():
    one = EmbeddingMap({0: (CROSS[0] + [3, 0], CROSS[0] - [3, 0])}, OWNER, ["a", "b"])
    # at 6, 0 and 0, -6: middles 6 apart, points 3 from the middle of all on average
    assert "middle of the images lies 2.00 from that of the texts, where a point lies 1" in told(
        one, "kind")
    alike = EmbeddingMap({0: (np.ones((2, 3)), np.ones((2, 3)))}, OWNER, ["a", "b"])
    assert "the images lies 0.00 from" in told(alike, "kind")
    assert "half" not in told(alike, "rank")  # there is no inner one


def test_from_the_first_frame_to_the_last():
    """Epoch 1 of the cross is its mirror image: places move by twice their distance."""
    moved = told(cross(), "kind")
    assert ("From epoch 1 to epoch 2 an image moves by 3.00 and a text by 1.00 on average, in the "
            "unit of epoch 2.") in moved
    (frame, owner), made = cloud(), np.random.default_rng(1)
    noise = tuple(made.normal(size=part.shape) for part in frame)
    one = EmbeddingMap({0: noise, 1: frame}, owner, ["x"] * 120, other=np.eye(40)[:, owner])
    shares = []
    for images, texts in (noise, frame):
        found = ranks((images @ texts.T).astype(np.float32), owner)
        every = np.concatenate([found.i2t, found.t2i])
        shares.append(f"{100 * (every > 10).mean():.0f} %")
    assert shares[0] != shares[1]
    assert f"From epoch 0 to epoch 1 the share of failures goes from {shares[0]} to {shares[1]}." \
        in told(one, "rank")
    assert "the share of those that are never found goes from" in told(one, "hub")
    assert "earlier here goes from 0 % to 0 %." in told(one, "gain")  # the other is perfect
    one.hear("frame", 1)
    assert "From epoch 0 to epoch 1" in one.sentence()  # the same, whichever is shown


def test_frames_take_the_place_of_the_vectors_of_a_model():
    frame, owner = cloud()
    named = EmbeddingMap({"head 1": frame, "head 2": frame}, owner, ["x"] * 120)
    assert "From head 1 to head 2 an image moves by 0.00 and a text by 0.00" in told(named, "kind")
    assert named.sentence().startswith("Head 2, 2 of 2: ")


def test_examples():
    failed, tried = doctest.testmod(findings)
    assert tried and not failed


@pytest.mark.parametrize("colour", ["kind", "rank", "hub"])
def test_a_picture_alone_is_told_too(colour):
    one = EmbeddingMap({0: (np.ones((1, 2)), np.ones((1, 2)))}, np.array([0]), ["a"])
    assert told(one, colour)
