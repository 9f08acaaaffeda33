"""The papers' settings: the numbers that they state, transcribed here, and one step at their size.
"""

from dataclasses import dataclass, field

import numpy as np
import pytest
import torch

from itr_study.data.batches import EncodedSplit, InputSpec
from itr_study.rerank import RERANKERS
from itr_study.runs.config import build_objective
from itr_study.runs.rows import flat
from itr_study.runs.run import build_model, check_model
from itr_study.studies.presets import BESIDE, not_stated, preset, preset_tables
from itr_study.training.loop import forward
from itr_study.training.settings import build_optimizer, learning_rate

# Digest, section 1 ("Training setup exactly as stated"), or the equation that is named.
STATED = {
    "topk": {  # Sec. IV-A-3, III-C
        "settings.optimizer": "sgd", "settings.momentum": 0.9, "settings.weight_decay": 0.001,
        "settings.learning_rate": 0.1, "settings.schedule": "exponential",  # 5 % less every epoch
        "settings.decay": 0.95, "settings.batch_size": 128,
        "model": "two_branch", "sentences": "fisher",  # image 4096-1024-512, FV 6000-1024-512-512
        "model_arguments.hidden": 1024, "model_arguments.size": 512,
        "model_arguments.text_layers": 2, "model_arguments.dropout": 0.3,
        "inputs.region_size": 4096, "inputs.sentence_size": 6000,
        "objective.0.loss": "topk", "objective.0.weight": 1.0,  # Eq. 12
        "objective.0.arguments.k": 5,  # Table IV, Fig. 7
        "objective.0.arguments.reduction": "sum"},  # Eq. 1
    "listwise": {  # VSE++: FC to 1024 of every region, max pooling, GRU of 1024
        "model": "vsepp", "model_arguments.size": 1024, "model_arguments.pool": "max",
        "settings.optimizer": "adam", "settings.epochs": 20, "settings.batch_size": 128,
        "settings.learning_rate": 0.0005, "settings.schedule": "constant",
        "objective.0.loss": "triplet_hardest", "objective.0.arguments.margin": 0.2,
        "objective.1.loss": "smooth_ndcg", "objective.1.arguments.temperature": 1e-2,
        "objective.1.labels": "sentence",  # Sentence-Transformers
        "objective.0.weight": 1.0, "objective.1.weight": 1.0},  # Eq. 22
    "listwise+vse_infinity": {
        "model": "vse_infinity", "settings.optimizer": "adamw", "settings.epochs": 30,
        "settings.batch_size": 128, "settings.learning_rate": 0.0005,  # first 15, then a tenth
        "settings.schedule": "step", "settings.decay": 0.1, "settings.decay_epochs": 15,
        "objective.0.loss": "triplet_hardest", "objective.0.arguments.margin": 0.2,
        "objective.1.loss": "smooth_ndcg", "objective.1.arguments.temperature": 1e-2,
        "objective.1.labels": "sentence",
        "objective.0.weight": 1.0, "objective.1.weight": 1.0},
    "bcls": {
        "model": "vsepp", "model_arguments.text": "gru",  # ResNet-152 and GRU
        "settings.optimizer": "adam", "settings.epochs": 20, "settings.batch_size": 128,
        "settings.learning_rate": 0.0005, "settings.schedule": "step",  # first 10, then a tenth
        "settings.decay": 0.1, "settings.decay_epochs": 10,
        "objective.0.loss": "triplet_soft", "objective.0.arguments.scale": 50.0,  # gamma
        "objective.1.loss": "kendall_window", "objective.1.arguments.hard": True,
        "objective.1.arguments.relaxation": 0.2, "objective.1.arguments.stride": 0.1,
        "objective.1.labels": "sentence",  # S-BERT; r in [-1, 1]
        "objective.1.label_arguments.scale": "cosine",
        "objective.0.weight": 1.0, "objective.1.weight": 1.0},  # plain sum
    "dvse": {  # Sec. IV-A-3; eta at the end of IV-D-3
        "model": "dvse", "tokens": "glove", "model_arguments.text": "bigru",
        "model_arguments.size": 1024, "model_arguments.heads": 6,
        "settings.optimizer": "adamw", "settings.learning_rate": 5e-4,
        "settings.epochs": 25, "settings.schedule": "step",  # BUTD: x0.1 at epoch 15
        "settings.decay": 0.1, "settings.decay_epochs": 15,
        "objective.0.loss": "variance_weighted", "objective.0.arguments.margin": 0.2,  # alpha
        "objective.0.weight": 0.6,  # eta, and 1 - eta
        "objective.1.loss": "orthogonality", "objective.1.weight": 0.4,
        "objective.1.arguments.bound": 0.4,  # beta
        "rerank.gamma1": 25, "rerank.gamma2": 25, "rerank.lambda1": 20, "rerank.lambda2": 20},
}
# Pairs of the one step: the papers' 128 where a step is short; recurrent nets of 1024 get fewer.
PAIRS = {"topk": 128}


def values(name):
    """Every number of a preset by dotted path."""
    table = preset_tables()[name]
    return flat({key: value for key, value in table.items()
                 if key not in ("about", "place", "ours")})


@pytest.mark.parametrize("name", STATED)
def test_numbers_are_those_that_the_paper_states(name):
    found = values(name)
    assert {path: found.get(path) for path in STATED[name]} == STATED[name]


@pytest.mark.parametrize("name", STATED)
def test_what_no_paper_states_is_marked_as_ours(name):
    assert set(not_stated(name)) == set(values(name)) - set(STATED[name])
    assert len(set(not_stated(name))) == len(not_stated(name))


def test_every_preset_is_transcribed_and_says_where_it_is_from():
    tables = preset_tables()
    assert set(tables) == set(STATED)
    for table in tables.values():
        assert table["place"].split()[0] in STATED and table["about"]
        assert set(table) <= {*BESIDE, "model", "model_arguments", "objective", "settings",
                              "tokens", "sentences"}


@pytest.mark.parametrize("name", STATED)
def test_it_is_a_config_that_can_be_built_and_changed(name):
    config = preset(name, "scenes", "detector", **{"settings.epochs": 2, "seed": 3})
    check_model(config)
    assert (config.dataset, config.images, config.settings.epochs, config.seed) == (
        "scenes", "detector", 2, 3)


@pytest.mark.parametrize(("name", "rates"), [
    ("topk", {0: 0.1, 1: 0.095, 2: 0.09025}), ("listwise", {0: 5e-4, 19: 5e-4}),
    ("listwise+vse_infinity", {14: 5e-4, 15: 5e-5, 29: 5e-5}),
    ("bcls", {9: 5e-4, 10: 5e-5, 19: 5e-5}), ("dvse", {14: 5e-4, 15: 5e-5, 24: 5e-5})])
def test_rates_fall_when_the_paper_says(name, rates):
    settings = preset(name, "scenes", "detector").settings
    assert {epoch: learning_rate(settings, epoch, 0, 100) for epoch in rates} == pytest.approx(
        rates)


def test_the_scales_of_re_ranking_go_into_the_re_ranker():
    scores = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
    i2t, t2i = RERANKERS["fast"](scores, **preset_tables()["dvse"]["rerank"])
    assert i2t.shape == t2i.shape == (4, 6)


@dataclass
class Sizes:
    """Random inputs of the sizes that a paper's model read, for a batch of so many pairs."""

    name: str
    pairs: int = field(init=False)
    inputs: InputSpec = field(init=False)
    split: EncodedSplit = field(init=False)

    def __post_init__(self):
        random, config = np.random.default_rng(0), preset(self.name, "scenes", "detector")
        given = preset_tables()[self.name]["inputs"]
        self.pairs = PAIRS.get(self.name, 8)
        vectors = torch.randn(2000, 300) if config.tokens == "glove" else None
        self.inputs = InputSpec(given["region_size"], 2000 if config.tokens else 0,
                                given.get("sentence_size", 0), vectors)
        self.split = EncodedSplit(
            "train", np.arange(self.pairs),
            random.normal(size=(self.pairs, 1, given["regions"],
                                given["region_size"])).astype(np.float32),
            tokens=[random.integers(1, 2000, 12) for _ in range(self.pairs)],
            sentences=random.normal(size=(self.pairs, 6000)).astype(np.float32),
            label_vectors={"minilm": random.normal(size=(self.pairs, 384)).astype(np.float32)})


@pytest.mark.parametrize("name", STATED)
def test_one_step_at_the_paper_s_size(name):
    config, sizes = preset(name, "scenes", "detector"), Sizes(name)
    model = build_model(config, sizes.inputs).train()
    before = [weight.detach().clone() for weight in model.parameters()]
    batch = sizes.split.pair_batch(np.arange(sizes.pairs))
    output = forward(model, batch)
    loss, report = build_objective(config.objective)(output, batch, sizes.split)
    loss.backward()
    optimizer = build_optimizer(model, config.settings)
    optimizer.step()
    assert loss.isfinite() and loss > 0 and len(report) >= len(config.objective)
    moved = [not torch.equal(weight, old)
             for weight, old in zip(model.parameters(), before, strict=True)]
    assert sum(moved) > 0.9 * len(moved)
    assert output.scores.shape == (sizes.pairs, sizes.pairs)
