"""Caption noise: how many captions change images, which, and what stays as it was."""

import hashlib

import numpy as np
import pytest

from itr_study.data import load_dataset
from itr_study.data.caption_noise import expected_pairs, shuffled_owners, with_caption_noise
from tests.data.tiny import flickr8k
from tests.encoders.fakes import fake_dataset

SIZES = {"train": 60, "dev": 6, "test": 6}
IDS = tuple(f"image{n // 5}#{n % 5}" for n in range(500))
OWNERS = np.repeat(np.arange(100), 5)


@pytest.mark.parametrize("share", [0.004, 0.2, 0.4, 0.99])
@pytest.mark.parametrize("seed", [0, 1])
def test_just_as_many_captions_as_asked_for_stand_with_another_image(share, seed):
    owners = shuffled_owners(IDS, OWNERS, share, seed)
    assert (owners != OWNERS).sum() == round(share * 500)
    np.testing.assert_array_equal(np.bincount(owners), np.full(100, 5))  # as many each as before


def test_captions_of_one_image_do_not_move_together():
    moved = shuffled_owners(IDS, OWNERS, 0.8, 0).reshape(100, 5)
    assert np.mean([len(set(images)) for images in moved.tolist()]) > 4


def test_little_noise_is_a_part_of_much():
    little, much = (shuffled_owners(IDS, OWNERS, share, 0) != OWNERS for share in (0.2, 0.4))
    assert much[little].all() and much.sum() == 2 * little.sum()


def test_the_seed_decides_who_goes_where_and_is_the_same_everywhere():
    first, other = (shuffled_owners(IDS, OWNERS, 0.4, seed) for seed in (0, 1))
    assert (first != other).mean() > 0.4
    assert hashlib.sha256(first.astype("<i8").tobytes()).hexdigest()[:16] == "0f8e1478934cf8ca"


def test_two_images_can_only_exchange_all():
    """As tight as it may be: each of two images has half of the captions."""
    ids, owners = [f"{n}" for n in range(6)], np.array([0, 0, 0, 1, 1, 1])
    for seed in range(20):
        moved = shuffled_owners(ids, owners, 0.99, seed)
        np.testing.assert_array_equal(moved, [1, 1, 1, 0, 0, 0])


def test_dev_and_test_pictures_and_texts_stay():
    clean, noisy = (load_dataset("scenes", **SIZES, caption_noise=share) for share in (0, 0.4))
    before, after = clean.splits["train"], noisy.splits["train"]
    assert (before.image_ids, before.text_ids, before.texts) == (
        after.image_ids, after.text_ids, after.texts)
    assert (before.image_of_text != after.image_of_text).sum() == 120
    for name in ("dev", "test"):
        np.testing.assert_array_equal(clean.relevance(clean.splits[name]),
                                      noisy.relevance(noisy.splits[name]))
    assert clean.content == clean.fingerprint == noisy.content != noisy.fingerprint
    assert noisy.report.notes[-1].detail.startswith("120 of 300 captions stand with an image")
    again = load_dataset("scenes", **SIZES, caption_noise=0.4, noise_seed=1)
    assert len({clean.fingerprint, noisy.fingerprint, again.fingerprint}) == 3


def test_the_image_that_a_caption_was_written_about_becomes_a_false_negative():
    """A match is decided by id: exact relevance is 1 where the caption stands, and as much as a
    non-match can have where it belongs."""
    clean, noisy = (load_dataset("scenes", **SIZES, caption_noise=share) for share in (0, 0.4))
    before, after = clean.splits["train"], noisy.splits["train"]
    graded, texts = noisy.relevance(after), np.arange(300)
    moved = before.image_of_text != after.image_of_text
    assert (graded[after.image_of_text, texts] == 1).all()
    np.testing.assert_allclose(graded[before.image_of_text, texts][moved], 1 - 1e-4, atol=1e-6)
    counts = [expected_pairs(data.relevance(split), split.image_of_text, 32).false_negatives
              for data, split in ((clean, before), (noisy, after))]
    assert counts[1] > counts[0]


def test_the_same_exchange_in_other_data_is_other_data():
    """Ids are alike at every level of vagueness, so the same captions move."""
    noisy = [load_dataset("scenes", **SIZES, caption_noise=0.4, vagueness=level)
             for level in (0, 4)]
    owners = [data.splits["train"].image_of_text for data in noisy]
    np.testing.assert_array_equal(*owners)
    assert noisy[0].fingerprint != noisy[1].fingerprint


def test_no_noise_is_the_data_set_itself():
    dataset = fake_dataset()
    assert with_caption_noise(dataset, 0) is dataset


def test_flickr8k_takes_it(tmp_path):
    root = flickr8k(tmp_path)
    clean, noisy = (load_dataset("flickr8k", root, as_published=False, cache=tmp_path,
                                 caption_noise=share, noise_seed=2) for share in (0, 0.4))
    moved = noisy.splits["train"].image_of_text != clean.splits["train"].image_of_text
    assert moved.sum() == 2 and len(moved) == 5
    assert clean.splits["train"].image_of_text.tolist() == [0, 0, 1, 1, 1]
    assert noisy.content == clean.fingerprint


@pytest.mark.parametrize("share, message", [
    (1.0, r"caption_noise must be a share in \[0, 1\), got 1.0; 0.2 shuffles a fifth"),
    (-0.1, "caption_noise must be >= 0, got -0.1"),
    (float("nan"), "caption_noise must be a finite number"),
    ("much", "caption_noise must be a finite number, got 'much'"),
    (0.01, r"caption_noise=0.01 of 12 training captions is 0: too few to give each to another"),
    (0.1, "is 1: too few .*; give a larger share or more captions, or 0")])
def test_bad_shares_are_refused(share, message):
    with pytest.raises(ValueError, match=message):
        with_caption_noise(fake_dataset(), share)


@pytest.mark.parametrize("owners", [[0, 0, 0, 1], [0, 0, 1, 1]])  # 2 of 3 are too many already
def test_captions_of_one_image_alone_cannot_be_shuffled(owners):
    with pytest.raises(ValueError, match="of 4 training captions is 3, [23] of them of one image"):
        shuffled_owners(list("abcd"), np.array(owners), 0.75, 0)
    with pytest.raises(ValueError, match="noise_seed must be an integer >= 0"):
        with_caption_noise(fake_dataset(), 0.5, -1)
