"""Batches: pairs, views, padding, and the head of a split."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from itr_study.data.batches import EncodedSplit, as_float32, pad, rows_of


def small_split() -> EncodedSplit:
    """Three images with 2, 1 and 2 texts in mixed order; two views of one region."""
    regions = np.arange(3 * 2 * 1 * 4, dtype=np.float32).reshape(3, 2, 1, 4)
    return EncodedSplit(
        "train", np.array([1, 0, 2, 0, 2]), regions,
        tokens=[np.arange(1, 2 + n) for n in range(5)],
        sentences=np.eye(5, dtype=np.float32), relevance=np.arange(15.0).reshape(3, 5),
        image_classes=np.array([4, 2, 4]))


def test_row_i_of_a_pair_batch_is_the_image_of_text_i():
    split = small_split()
    batch = split.pair_batch(np.array([3, 0, 1]), np.array([0, 1, 0]))
    assert batch.image_ids.tolist() == [0, 1, 0] == batch.text_images.tolist()
    assert batch.match.tolist() == [[True, False, True], [False, True, False],
                                    [True, False, True]]  # siblings match
    torch.testing.assert_close(batch.regions[1], torch.from_numpy(split.regions[1, 1]))


def test_evaluation_takes_the_mean_over_views():
    split = small_split()
    batch = split.image_batch(np.array([2]))
    torch.testing.assert_close(batch.regions[0], torch.from_numpy(split.regions[2].mean(axis=0)))


@pytest.mark.parametrize("cut", [
    lambda array: array, lambda array: array[2:], lambda array: array[1::2], lambda array:
    array[::2, 1:], lambda array: array[:, ::-1], lambda array: array[..., ::2]])
def test_rows_are_read_from_a_mapped_file_as_from_memory(tmp_path, cut):
    """Of every view of the map, also one whose rows do not follow each other."""
    whole = np.random.default_rng(0).normal(size=(9, 2, 3, 4)).astype(np.float32)
    np.save(tmp_path / "whole.npy", whole)
    mapped, plain = cut(np.load(tmp_path / "whole.npy", mmap_mode="r")), cut(whole)
    rows, last = np.array([3, 0, 3, 2]), plain.shape[1] - 1
    for index in ((rows,), (rows, 0), (rows, np.array([last, 0, 0, last]))):
        np.testing.assert_array_equal(rows_of(mapped, *index), plain[index])
    with open(tmp_path / "whole.npy", "r+b") as file:
        file.truncate(200)
    if mapped[0].flags.c_contiguous:
        with pytest.raises(OSError, match="whole.npy ends too soon"):
            rows_of(mapped, rows)


def test_rows_are_those_of_the_mapped_file_though_another_has_its_name(tmp_path):
    path, rows = tmp_path / "whole.npy", np.array([2, 0])
    np.save(path, np.zeros((3, 1, 1, 4), np.float32))
    mapped = np.load(path, mmap_mode="r")
    np.save(tmp_path / "other.npy", np.ones((3, 1, 1, 4), np.float32))
    (tmp_path / "other.npy").replace(path)
    assert not rows_of(mapped, rows).any()
    path.unlink()
    assert not rows_of(mapped, rows).any()


def test_head_keeps_the_first_images_and_their_texts_in_order():
    head = small_split().head(2)
    assert head.n_images == 2
    assert head.image_of_text.tolist() == [1, 0, 0]
    assert [len(tokens) for tokens in head.tokens] == [1, 2, 4]
    assert head.sentences.argmax(axis=1).tolist() == [0, 1, 3]
    assert head.relevance.tolist() == [[0, 1, 3], [5, 6, 8]]
    assert head.image_classes.tolist() == [4, 2]


def test_regions_that_do_not_exist_stay_masked():
    mask = np.array([[True, False], [True, True], [False, True]])
    split = EncodedSplit("train", np.array([1, 0, 2]), np.zeros((3, 1, 2, 4)), mask)
    assert split.image_batch(np.array([2, 0])).region_mask.tolist() == mask[[2, 0]].tolist()
    assert split.pair_batch(np.array([0, 1])).region_mask.tolist() == mask[[1, 0]].tolist()
    assert split.head(2).region_mask.tolist() == mask[:2].tolist()
    assert small_split().image_batch(np.array([0])).region_mask.all()


def test_padding_is_zero_and_lengths_are_true():
    tokens, lengths = pad([np.array([4, 5]), np.array([6])])
    assert tokens.tolist() == [[4, 5], [6, 0]]
    assert lengths.tolist() == [2, 1]


def test_a_text_without_tokens_is_refused():
    """Its code would be the state at the end of the padding, whatever that is."""
    with pytest.raises(ValueError, match="text 1 of 3 has no tokens; give every text at least"):
        pad([np.array([4]), np.zeros(0, np.int64), np.array([6])])


def test_ids_follow_the_tensors_that_somebody_puts_into_a_moved_batch():
    split, order = small_split(), torch.tensor([2, 0])
    moved = split.pair_batch(np.array([3, 0, 1])).to("cpu")
    cut = replace(moved, image_ids=moved.image_ids[order], text_ids=moved.text_ids[order],
                  text_images=moved.text_images[order])
    assert cut.ids.texts.tolist() == [1, 3] and cut.to("cpu").ids.texts.tolist() == [1, 3]
    assert replace(moved, regions=None).ids is moved.ids


def test_ids_are_those_of_the_host_once_a_batch_is_moved():
    split = small_split()
    texts = np.array([3, 0, 1])
    batch = split.pair_batch(texts)
    moved = batch.to("meta")  # a device that nothing can be read back from
    for ids in (batch.ids, moved.ids, moved.to("meta").ids):
        assert ids.texts.tolist() == [3, 0, 1] and ids.paired
        assert ids.images.tolist() == ids.owners.tolist() == [0, 1, 0]
    assert moved.regions.device.type == "meta"
    assert not split.text_batch(texts).ids.paired


def test_texts_of_an_image_are_joined_in_the_order_of_the_batch():
    """Whatever their images are called, and though one of them has a single text."""
    batch = small_split().pair_batch(np.array([4, 1, 3, 2, 0]))  # of images 2, 0, 0, 2 and 1
    joined = batch.joined()
    assert joined.text_images.tolist() == [0, 1, 2] == joined.text_ids.tolist()
    rows = zip(joined.tokens.tolist(), joined.lengths.tolist(), strict=True)
    assert [row[:length] for row, length in rows] == [
        [1, 2, 1, 2, 3, 4], [1], [1, 2, 3, 4, 5, 1, 2, 3]]
    assert joined.tokens.sum() == batch.tokens.sum()  # the rest is padding
    assert joined.regions is None and joined.lengths.tolist() == [6, 1, 8]


def test_texts_without_tokens_cannot_be_joined():
    batch = replace(small_split(), tokens=None).pair_batch(np.array([0, 1]))
    with pytest.raises(ValueError, match="by their tokens.*such as vsepp, and tokens='words'"):
        batch.joined()


def test_every_float16_is_widened_to_the_bits_that_numpy_gives():
    every = np.arange(2**16, dtype=np.uint16).view(np.float16)
    every = every[~np.isnan(every)]
    assert as_float32(every).tobytes() == every.astype(np.float32).tobytes()


def test_evaluation_takes_the_mean_over_views_of_one_region_and_of_more_the_first():
    near = np.array([[1, 1 + 2**-10]], np.float16)  # their mean is no float16
    one = EncodedSplit("dev", np.zeros(1, np.int64), near[:, :, None, None])
    assert one.image_batch(np.array([0])).regions.tolist() == [[[1 + 2**-11]]]
    more = EncodedSplit("dev", np.zeros(1, np.int64), np.arange(12.0).reshape(1, 2, 3, 2))
    assert more.image_batch(np.array([0])).regions.tolist() == [[[0, 1], [2, 3], [4, 5]]]


@pytest.mark.parametrize("kind", [">f2", ">f4", "<f4", "f8"])
def test_features_of_another_machine_are_widened_too(kind):
    found = as_float32(np.array([[0.1, -2.0]], kind))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.array([[0.1, -2.0]], kind).astype(np.float32))


def test_a_loader_gives_each_pair_once_and_draws_the_view():
    split = small_split()
    pairs, seen = split.pairs(), []
    for batch in DataLoader(pairs, 3, shuffle=True, collate_fn=pairs.collate):
        assert batch.match.diagonal().all()
        alone = [split.pair_batch(batch.text_ids.numpy(), np.full(len(batch.text_ids), view))
                 for view in (0, 1)]
        assert all(any(torch.equal(row, one.regions[place]) for one in alone)
                   for place, row in enumerate(batch.regions))
        seen += batch.text_ids.tolist()
    assert sorted(seen) == list(range(len(pairs))) == list(range(split.n_texts))
    with pytest.raises(IndexError):
        pairs[split.n_texts]
    drawn = {tuple(pairs.collate([0]).regions.flatten().tolist()) for _ in range(40)}
    assert len(drawn) == 2
