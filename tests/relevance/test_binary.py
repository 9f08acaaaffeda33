"""Binary labels, and the switch that makes siblings negatives."""

import doctest
import sys

import numpy as np
import pytest
import torch

from itr_study.data.batches import Batch
from itr_study.relevance import RELEVANCE
from tests.relevance.test_registry import small_split

Binary = RELEVANCE["binary"]


def test_example_in_docstring():
    result = doctest.testmod(sys.modules[Binary.__module__])
    assert result.attempted and not result.failed


def test_siblings_are_matches_by_default():
    split = small_split()
    batch = split.pair_batch(np.array([0, 2, 1]))  # texts 0 and 1 are of image 0
    assert Binary()(batch, split).tolist() == [[1, 0, 1], [0, 1, 0], [1, 0, 1]]


def test_siblings_are_negatives_where_the_switch_says_so():
    split = small_split()
    batch = split.pair_batch(np.array([0, 2, 1]))
    assert Binary(same_image="negative")(batch, split).tolist() == torch.eye(3).tolist()


def test_rectangular_batches():
    batch = Batch(image_ids=torch.tensor([3, 1]), text_ids=torch.arange(3),
                  text_images=torch.tensor([1, 3, 1]))
    assert Binary()(batch).tolist() == [[0, 1, 0], [1, 0, 1]]
    with pytest.raises(ValueError, match="needs a batch of pairs.*2 images and 3 texts"):
        Binary(same_image="negative")(batch)


def test_the_diagonal_is_only_right_for_pairs():
    batch = Batch(image_ids=torch.tensor([0, 1]), text_ids=torch.arange(2),
                  text_images=torch.tensor([1, 0]))
    with pytest.raises(ValueError, match="needs a batch of pairs"):
        Binary(same_image="negative")(batch)


def test_unknown_choice_is_refused():
    with pytest.raises(ValueError, match="same_image must be one of positive, negative"):
        Binary(same_image="ignore")
