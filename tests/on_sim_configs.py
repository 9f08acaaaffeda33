"""Every preset and every base config on the second of two simulated cards: three steps, stopped
and resumed bit-equal, averaged, evaluated, re-ranked and searched.

The classes, losses and kinds of settings are those of the config; its sizes, rates and shares are
those of a test, and the data are small. Configs that differ in nothing else are one test, named by
the first of them. `test_sim.py` runs them, with `on_sim.py`.
"""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel

from itr_study.data.vocabulary import Unread
from itr_study.encoders import sentences
from itr_study.evaluation.evaluate import evaluate
from itr_study.evaluation.search import Searcher
from itr_study.lab.runs.config import build_objective
from itr_study.lab.studies.bases import base, base_tables
from itr_study.lab.studies.presets import preset, preset_tables
from itr_study.models import MODELS
from itr_study.models.base import device_of
from itr_study.training.loop import fit
from tests.golden.cases import labelled_split
from tests.on_sim import Data
from tests.sim_device import NAME
from tests.small import with_regions

ARGUMENTS = {"size": 8, "hidden": 8, "similarity": 4, "word_size": 8, "dropout": 0.2,
             "image_dropout": 0.2, "input_dropout": 0.2}
SETTINGS = {"epochs": 3, "average": 3, "batch_size": 24, "dev_images": 0, "learning_rate": 1e-3,
            "schedule": "constant", "warmup_steps": 0, "clip_norm": 2.0, "select": "last"}
CARD = f"{NAME}:1"


def all_configs():
    """By their names, presets first."""
    return {name: preset(name, "scenes", "detector") for name in preset_tables()} | {
        f"{dataset}: {name}": base(dataset, name) for dataset in ("scenes", "flickr8k")
        for name in base_tables(dataset)}


def small(config):
    """The config with sizes, rates and epochs for a test; the mean of the weights of all epochs."""
    given = config.settings.model_dump()
    arguments = {name: ARGUMENTS.get(name, value) for name, value in config.model_arguments.items()}
    return config.with_(model_arguments=arguments, settings=given | SETTINGS | {
        "weight_decay": 0.01 * bool(given["weight_decay"]),
        "warmup_epochs": min(given["warmup_epochs"], 1),
        "learning_rate_factors": dict.fromkeys(given["learning_rate_factors"], 0.1)})


def different():
    """One of the configs that are the same at that size, by the first of their names."""
    found = {}
    for name, config in all_configs().items():
        values = small(config).model_dump(mode="json", exclude={"dataset", "images", "sentences"})
        for part in ("decay", "decay_epochs", "momentum"):
            del values["settings"][part]
        found.setdefault(json.dumps(values), pytest.param(small(config), id=name))
    return found.values()


@pytest.fixture(scope="module")
def data():
    """8 images with 24 texts to train on, 6 with 18 in dev and in test; words to search for."""
    whole = with_regions(labelled_split())
    vectors = np.random.default_rng(0).normal(size=(whole.n_texts, 5)).astype(np.float32)
    whole = replace(whole, sentences=vectors)
    splits = {name: replace(whole.head(images), name=name)
              for name, images in (("train", 8), ("dev", 6), ("test", 6))}
    data = Data(splits)
    data.unread = lambda texts: [Unread([], False, 0)] * len(texts)
    data.encode_texts = lambda texts: (whole.tokens[:1], whole.sentences[:1])
    return data


@pytest.fixture(autouse=True)
def small_transformer(monkeypatch):
    """In the place of MiniLM one of its class, two layers deep."""
    shape = BertConfig(vocab_size=20, hidden_size=8, num_hidden_layers=2, num_attention_heads=2,
                       intermediate_size=8)
    monkeypatch.setattr(sentences, "trainable_text_encoder", lambda name: sentences.TrainableText(
        BertModel(shape, add_pooling_layer=False)))


def built(config, inputs):
    vectors = torch.arange(120.0).view(20, 6).sin() if config.tokens == "glove" else None
    torch.manual_seed(0)
    return MODELS[config.model](replace(inputs, word_vectors=vectors), **config.model_arguments)


def trained(config, data, **more):
    """The model and its history; without dev, which would take as long again."""
    model, warmup = built(config, data.inputs), config.warmup_objective
    history = fit(model, build_objective(config.objective), Data({"train": data.splits["train"]}),
                  config.settings, seed=1, device=CARD,
                  warmup_objective=build_objective(warmup) if warmup else None, **more)
    return model, history


def searcher(model, data):
    split = data.splits["test"]
    images, texts = (tuple(f"{what}{n}" for n in range(count)) for what, count in
                     (("image", split.n_images), ("text", split.n_texts)))
    dataset = SimpleNamespace(name="small", relevance=None, splits={"test": SimpleNamespace(
        name="test", image_ids=images, text_ids=texts, texts=texts,
        image_of_text=split.image_of_text)})
    return Searcher(model, dataset, data)


def stop_in_epoch_3(history):
    if len(history.rows) == 2:
        raise InterruptedError("the machine is gone")


@pytest.mark.filterwarnings("ignore::itr_study.training.state.TaughtNothing")
@pytest.mark.parametrize("config", different())
def test_a_config(config, data, tmp_path):
    model, history = trained(config, data)
    assert device_of(model) == torch.device(CARD) and len(history.rows) == 3
    with pytest.raises(InterruptedError):
        trained(config, data, folder=tmp_path, save_seconds=0, on_epoch=stop_in_epoch_3)
    torch.rand(5, device=CARD)  # somebody else draws on this card meanwhile
    resumed, rows = trained(config, data, folder=tmp_path)
    for name, weights in model.state_dict().items():
        assert torch.equal(weights, resumed.state_dict()[name]), name
    for ours, other in zip(history.rows, rows.rows, strict=True):
        assert ours | {"seconds": 0} == other | {"seconds": 0}

    dev = evaluate(model, data.splits["dev"], measures_of="scenes")
    test = evaluate(model, data.splits["test"], measures_of="scenes", bank=dev)
    assert all(np.isfinite(value) for value in test.table.values())
    assert any("fast_bank" in name for name in test.table)
    found = searcher(model, data)
    assert len(found.search_text("new words")) == len(found.search_text(3)) == 6
    assert len(found.search_image(2)) == 10
