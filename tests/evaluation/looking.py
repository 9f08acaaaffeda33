"""Models that have not learnt anything over a few generated pictures, to see where they look."""

from functools import cache

import torch
from torch import nn

from itr_study.data.scenes.load import load
from itr_study.evaluation.search import Searcher
from itr_study.features.dataset import encode_dataset
from itr_study.models import MODELS

SCENES = load(train=24, dev=6, test=12)
SIZES = {"size": 8, "word_size": 5, "text": "gru"}
ARGUMENTS = {
    "saf": SIZES | {"similarity": 5}, "sgr": SIZES | {"similarity": 5},
    "dvse": SIZES | {"heads": 3},
    "pvse": SIZES | {"heads": 2}, "dan": SIZES, "vse_infinity": SIZES, "vsepp": SIZES,
    "two_branch": {"size": 8, "hidden": 6}}


@cache
def data():
    return encode_dataset(SCENES, "detector", tokens="words", sentences="glove-mean")


def searcher_of(model: nn.Module) -> Searcher:
    return Searcher(model.eval(), SCENES, data(), "test")


@cache
def searcher(name: str, **arguments) -> Searcher:
    """Over the test split, with first weights of seed 0."""
    torch.manual_seed(0)
    return searcher_of(MODELS[name](data().inputs, **ARGUMENTS[name] | arguments))
