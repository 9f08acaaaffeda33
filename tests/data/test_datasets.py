from pathlib import Path

import numpy as np
import pytest

from itr_study.data import DATASETS, load_dataset
from itr_study.data.base import SPLITS, RetrievalDataset
from itr_study.relevance import RELEVANCE


def test_unknown_names_and_options():
    with pytest.raises(ValueError, match="dataset must be one of .*flickr8k.*got 'imagenet'"):
        load_dataset("imagenet")
    with pytest.raises(ValueError, match="one of skip_bad.*'skip'; did you mean 'skip_bad'"):
        load_dataset("flickr8k", skip=True)


@pytest.mark.parametrize("option, told", [
    ({"skip_bad": "yes"}, "skip_bad of dataset 'flickr8k' must be true or false, got 'yes'"),
    ({"as_published": 1}, "as_published .* must be true or false, got 1"),
    ({"leave_out": 2}, "leave_out .* must be a word, got 2"),
    ({"noise_seed": 1.5}, "noise_seed .* must be an integer, got 1.5"),
    ({"caption_noise": "much"}, "caption_noise .* must be a number, got 'much'")])
def test_an_option_of_another_type_is_refused(option, told):
    with pytest.raises(ValueError, match=told):
        load_dataset("flickr8k", "nowhere", **option)


def test_numbers_of_numpy_are_numbers():
    scenes = load_dataset("scenes", train=np.int64(5), dev=4, test=4)
    assert len(scenes.splits["train"].image_ids) == 5


def test_the_promised_names():
    assert set(DATASETS) >= {"scenes", "flickr8k", "flickr30k", "coco", "folder", "cub"}
    assert all(name == record.name for name, record in DATASETS.items())


@pytest.mark.parametrize("record", DATASETS.values(), ids=DATASETS)
def test_a_record_says_where_the_data_lies_and_who_grades_its_runs(record):
    assert record.generated != bool(record.folders)
    assert record.graded_by and set(record.graded_by) <= set(RELEVANCE)
    assert set(record.human_columns) <= set(SPLITS)


def test_no_folder_belongs_to_two_data_sets():
    folders = [folder for record in DATASETS.values() for folder in record.folders]
    assert len(set(folders)) == len(folders)


def test_the_default_needs_no_folder():
    data = load_dataset("scenes", train=4, dev=2, test=2)
    assert isinstance(data, RetrievalDataset) and set(data.splits) == {"train", "dev", "test"}


def test_every_data_set_has_tests_of_its_own():
    """A reader of the name, or of the file that serves it, is tested in a file named so."""
    here = Path(__file__).parent
    for name, record in DATASETS.items():
        *folders, file = record.load.__module__.split(".")[2:]
        path = Path(*folders, f"test_{file}.py")
        assert (here / path).exists(), f"{name}: write tests/data/{path}"
