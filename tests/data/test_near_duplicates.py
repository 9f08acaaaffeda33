"""Near-duplicates: the rule by hand, the committed list, and what leaving them out leaves."""

import numpy as np
import pytest

from itr_study.data import caption_noise, load_dataset
from itr_study.data.base import DataError, read_lines
from tests.data import tiny
from tests.data.make_near_duplicates import LOOKS, SAID, near_duplicates, vectors, write

TRAIN = [f"train{i}.jpg" for i in range(2)]


def at(*degrees):
    """Unit vectors at angles of a plane: a cosine of 0.6 is 53 degrees, one of 0.5 is 60."""
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def found(looks, said):
    return near_duplicates("abcd"[:len(looks)], at(*looks), at(*said))


def test_both_must_be_alike():
    assert found([0, 52], [0, 59]) == {"b": "a"}
    assert found([0, 54], [0, 59]) == found([0, 52], [0, 61]) == {}


def test_who_is_as_alike_as_asked_for_is_alike():
    """A cosine of exactly 0.6, and one of exactly 0.5."""
    looks, said = (np.array([[1.0, 0.0], [cosine, (1 - cosine**2) ** 0.5]])
                   for cosine in (LOOKS, SAID))
    assert near_duplicates("ab", looks, said) == {"b": "a"}


def test_what_is_left_out_leaves_nobody_else_out():
    """b goes because of a, and c, alike b alone, stays."""
    assert found([0, 50, 100], [0, 50, 100]) == {"b": "a"}


def test_the_one_that_looks_most_alike_is_named():
    assert found([0, 60, 35], [0, 0, 0]) == {"c": "b"}
    assert found([0, 60, 25], [0, 0, 0]) == {"c": "a"}


def test_captions_are_compared_on_average_and_pictures_with_their_mirror_images():
    sentences, owners = np.array([[3.0, 0], [0, 2], [1, 0]]), np.array([0, 0, 1])
    features = np.array([[[[2.0, 0]], [[0, 2]]], [[[1, 0]], [[1, 0]]]])
    looks, said = vectors(features, sentences, owners)
    np.testing.assert_allclose(looks, [[0.5 ** 0.5, 0.5 ** 0.5], [1, 0]], rtol=1e-6)
    np.testing.assert_allclose(said @ said.T, [[0.5, 0.5], [0.5, 1]])  # cosines 1 and 0 of pairs


def test_the_committed_list():
    listed = caption_noise.read_list()
    assert len(listed) == 1199 and not set(listed) & set(listed.values())


def test_the_list_is_of_training_images_and_the_first_one_stays(real_data):
    train = [line.strip() for line in
             read_lines(real_data / "flickr8k" / "Flickr_8k.trainImages.txt")]
    place = {image: n for n, image in enumerate(train)}
    listed = caption_noise.read_list()
    assert all(place[stays] < place[image] for image, stays in listed.items())
    others = caption_noise.to_leave_out("as_many_others", train)
    assert len(others) == len(caption_noise.to_leave_out("near_duplicates", train)) == 1199
    assert not set(others) & (set(listed) | set(listed.values()))


def test_a_share_is_left_out_by_chance_and_the_larger_holds_the_smaller():
    train = [f"{i:03}.jpg" for i in range(100)]
    half, most = (set(caption_noise.to_leave_out(choice, train))
                  for choice in ("half", "three_quarters"))
    assert len(half) == 50 and len(most) == 75 and half < most < set(train)
    assert 15 < len(half & set(train[:50])) < 35


@pytest.fixture
def listed(tmp_path, monkeypatch):
    """The tiny Flickr8k, with a third training image and a list that leaves one of three out."""
    folder = tiny.flickr8k(tmp_path)
    tiny.picture(folder / "images" / "train2.jpg", seed=7)
    tiny.add_line(folder / "Flickr_8k.trainImages.txt", "train2.jpg")
    tiny.add_line(folder / "Flickr8k.token.txt", "train2.jpg#0\tCaption 0 of train2.jpg .")
    monkeypatch.setattr(caption_noise, "LIST", tmp_path / "list.csv")
    monkeypatch.setattr("tests.data.make_near_duplicates.LIST", tmp_path / "list.csv")
    write({"train1.jpg": "train0.jpg"})
    return folder


@pytest.mark.parametrize("choice, stay, why", [
    ("near_duplicates", ("train0.jpg", "train2.jpg"), "it shows nearly what train0.jpg shows"),
    ("as_many_others", ("train0.jpg", "train1.jpg"), "by the hash of its name, one for each"),
    ("three_quarters", ("train2.jpg",), "by the hash of its name, three quarters of them")])
def test_training_images_are_left_out(listed, choice, stay, why):
    whole, fewer = (load_dataset("flickr8k", listed, as_published=False, cache=listed.parent,
                                 leave_out=what) for what in ("nothing", choice))
    train = fewer.splits["train"]
    assert train.image_ids == stay
    assert {text.split("#")[0] for text in train.text_ids} == set(stay)
    for name in ("dev", "test"):
        assert fewer.splits[name].text_ids == whole.splits[name].text_ids
    assert whole.fingerprint != fewer.fingerprint == fewer.content
    problem, *_ = (p for p in fewer.report.excluded if p.kind == choice)
    assert why in problem.detail and problem.where not in stay
    assert whole.part_of is None and fewer.part_of.fingerprint == whole.fingerprint


def test_other_choices_and_other_data_are_refused():
    with pytest.raises(ValueError, match="leave_out must be one of nothing, near_duplicates, as_m"):
        caption_noise.to_leave_out("near_duplicate", TRAIN)
    for choice in ("near_duplicates", "as_many_others"):
        with pytest.raises(DataError, match=f"leave_out='{choice}' knows .* Flickr8k only"):
            caption_noise.to_leave_out(choice, TRAIN)
    assert caption_noise.to_leave_out("nothing", TRAIN) == {}
