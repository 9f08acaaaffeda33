"""The papers' settings: the numbers that they state, transcribed here, and one step at their size,
as the benchmark takes it.
"""

import math

import numpy as np
import pandas as pd
import pytest
import torch

from itr_study.lab.batch.schedule import WITH_PRESETS
from itr_study.lab.cli.app import app
from itr_study.lab.runs.config import RunConfig
from itr_study.lab.runs.data import encoded_data
from itr_study.lab.runs.rows import flat
from itr_study.lab.runs.run import check_model
from itr_study.lab.runs.store import RunStore
from itr_study.lab.studies.parameters import PAPERS
from itr_study.lab.studies.plans import arms_of
from itr_study.lab.studies.presets import BESIDE, not_stated, preset, preset_tables
from itr_study.lab.studies.timing import times_file
from itr_study.rerank import RERANKERS
from itr_study.training import loop
from itr_study.training.loop import forward
from itr_study.training.settings import learning_rate
from tests import fakes
from tests.studies.test_timing import loaded

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
for half in ("saf", "sgr"):  # SGRAF: the column of listwise's table, backbone (i) of bcls
    STATED[f"listwise+{half}"] = {
        path: value for path, value in STATED["listwise"].items()
        if not path.startswith("model_arguments.")} | {
        "model": half, "settings.schedule": "step",  # first 10, then a tenth
        "settings.decay": 0.1, "settings.decay_epochs": 10}
    STATED[f"bcls+{half}"] = STATED["bcls"] | {"model": half, "model_arguments.text": "bigru"}
TWICE = {"settings.decay_epochs.0": 15, "settings.decay_epochs.1": 25}  # "at the 15th and 25th"
without = {path: value for path, value in STATED["dvse"].items() if "decay_epochs" not in path}
STATED["dvse+cub"] = without | TWICE | {  # ResNet-50
    "model_arguments.size": 512, "model_arguments.heads": 8, "settings.epochs": 30,
    "rerank.gamma1": 9, "rerank.gamma2": 8, "rerank.lambda1": 8, "rerank.lambda2": 17}
del STATED["dvse+cub"]["tokens"]  # GloVe is not repeated
for network in ("resnet152", "resnext101"):
    STATED[f"dvse+{network}"] = without | TWICE | {"settings.epochs": 50}
# Pairs of the one step: the papers' 128 where a step is short; recurrent nets of 1024 get fewer.
PAIRS = {"topk": 128}


@pytest.fixture
def benchmark(monkeypatch):
    return loaded(monkeypatch, "presets")


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
    ("listwise+saf", {9: 5e-4, 10: 5e-5, 19: 5e-5}), ("listwise+sgr", {9: 5e-4, 10: 5e-5}),
    ("bcls", {9: 5e-4, 10: 5e-5, 19: 5e-5}), ("dvse", {14: 5e-4, 15: 5e-5, 24: 5e-5}),
    ("dvse+cub", {14: 5e-4, 15: 5e-5, 24: 5e-5, 25: 5e-6, 29: 5e-6}),
    ("dvse+resnet152", {14: 5e-4, 15: 5e-5, 25: 5e-6, 49: 5e-6}),
    ("dvse+resnext101", {14: 5e-4, 15: 5e-5, 25: 5e-6, 49: 5e-6})])
def test_rates_fall_when_the_paper_says(name, rates):
    settings = preset(name, "scenes", "detector").settings
    assert {epoch: learning_rate(settings, epoch, 0, 100) for epoch in rates} == pytest.approx(
        rates)


@pytest.mark.parametrize("name", ["dvse", "dvse+cub"])
def test_the_scales_of_re_ranking_go_into_the_re_ranker(name):
    scores = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
    i2t, t2i = RERANKERS["fast"](scores, **preset_tables()[name]["rerank"])
    assert i2t.shape == t2i.shape == (4, 6)


@pytest.mark.parametrize("name", STATED)
def test_one_step_at_the_paper_s_size(name, benchmark):
    pairs = PAIRS.get(name, 8)
    step, given = benchmark.Step(name, pairs), preset_tables()[name]["inputs"]
    before = [weight.detach().clone() for weight in step.model.parameters()]
    loss = step.take()
    assert math.isfinite(loss) and loss > 0
    moved = [not torch.equal(weight, old)
             for weight, old in zip(step.model.parameters(), before, strict=True)]
    assert sum(moved) > 0.9 * len(moved)
    batch = step.split.pair_batch(np.arange(pairs))
    assert batch.regions.shape == (pairs, given["regions"], given["region_size"])
    sentences = None if batch.sentences is None else batch.sentences.shape
    assert sentences == ((pairs, given["sentence_size"]) if "sentence_size" in given else None)
    assert forward(step.model, batch).scores.shape == (pairs, pairs)


def test_top_k_needs_as_many_pairs_as_the_benchmark_asks_for(benchmark):
    benchmark.Step("topk", benchmark.LEAST).take()
    with pytest.raises(ValueError, match="only 4 negatives"):
        benchmark.Step("topk", benchmark.LEAST - 1).take()


def test_the_first_step_is_not_timed_and_no_more_are_begun_than_one_can_wait_for(
        benchmark, monkeypatch):
    clock, taken = [0.0], []

    class Slow(benchmark.Step):
        def take(self):
            taken.append(len(taken))
            clock[0] += 500 if len(taken) == 1 else cost

    monkeypatch.setattr(benchmark, "Step", Slow)
    monkeypatch.setattr(benchmark.time, "process_time", lambda: clock[0])
    found = {}
    for cost in (1.0, 50.0, 300.0):
        taken.clear()
        found[cost] = benchmark.measure("topk", 2, 5)
        assert len(taken) == 1 + found[cost][1]
    assert {cost: (steps, seconds) for cost, (_, steps, seconds, _) in found.items()} == {
        1.0: (5, 1.0), 50.0: (3, 50.0), 300.0: (1, 300.0)}
    image, text = (4096, 1024, 512), (6000, 1024, 512, 512)  # batch norm of all but the last
    layers = sum((before + 1) * after for sizes in (image, text)
                 for before, after in zip(sizes, sizes[1:], strict=False))
    assert found[1.0][0] == pytest.approx((layers + 2 * (1024 + 1024 + 512)) / 1e6)


def test_every_preset_is_kept_with_its_paper_s_batch(benchmark, monkeypatch, tmp_path):
    path, asked = tmp_path / "common" / "presets.csv", []

    def measured(name, pairs, most):
        asked.append((name, pairs))
        return [12.3456, 2.0, 1.23456, 100.4]

    monkeypatch.setattr(benchmark, "measured", measured)
    monkeypatch.setattr(benchmark, "times_file", lambda _: path)
    monkeypatch.setattr("sys.argv", ["presets.py"])
    benchmark.main()
    assert not path.exists() and {pairs for _, pairs in asked} == {benchmark.PAIRS}
    models = [preset_tables()[name]["model"] for name, _ in asked]
    assert len(models) == len(set(models))  # quick: one of each
    assert set(models) == {table["model"] for table in preset_tables().values()}
    monkeypatch.setattr("sys.argv", ["presets.py", "--save"])
    benchmark.main()
    kept = pd.read_csv(path)
    assert list(kept) == list(benchmark.COLUMNS) and kept["preset"].tolist() == [*preset_tables()]
    assert set(kept["pairs"]) == {128} and set(kept["steps"]) == {2}
    assert kept.loc[0, ["parameters", "step_seconds", "memory_mb"]].tolist() == [12.346, 1.235, 100]
    assert kept["instructions"].notna().all()


@pytest.mark.parametrize(("given", "told"), [
    (["--save", "--pairs", "8"], "leave --pairs and --presets out"),
    (["--save", "--presets", "dvse"], "leave --pairs and --presets out"),
    (["--pairs", "5"], "--pairs must be at least 6"), (["--pairs", "0"], "at least 6"),
    (["--steps", "0"], "--steps at least 1")])
def test_what_would_spoil_the_kept_table_is_refused(benchmark, monkeypatch, capsys, given, told):
    monkeypatch.setattr(benchmark, "measured", lambda *_: pytest.fail("it measures"))
    monkeypatch.setattr("sys.argv", ["presets.py", *given])
    with pytest.raises(SystemExit):
        benchmark.main()
    assert told in capsys.readouterr().err


def test_the_committed_table_has_every_preset_at_its_paper_s_batch():
    kept = pd.read_csv(times_file("presets")).set_index("preset")
    assert kept["pairs"].to_dict() == {
        name: table["settings"]["batch_size"] for name, table in preset_tables().items()}
    assert kept["model"].to_dict() == {
        name: table["model"] for name, table in preset_tables().items()}
    assert (kept[["steps", "step_seconds", "memory_mb", "parameters"]] > 0).all(axis=None)


@pytest.mark.parametrize(("notebook", "names"), [
    ("03_topk", ["topk"]),
    ("05_listwise", ["listwise", "listwise+vse_infinity", "listwise+saf", "listwise+sgr"]),
    ("06_kendall", ["bcls", "bcls+saf", "bcls+sgr"]), ("07_sub_embeddings", [
        "dvse", "dvse+resnet152"])])  # resnext101 reads the same of our images
def test_profile_paper_is_quick_and_the_paper_s_presets(notebook, names):
    """On inputs of the data at hand, three seeds each; other profiles train none of them."""
    labels = {profile: [run.label for run in arms_of(notebook, "flickr8k", profile)]
              for profile in ("quick", "paper")}
    paper = [run for run in arms_of(notebook, "flickr8k", "paper") if "its paper" in run.label]
    assert [*dict.fromkeys(run.label for run in paper)] == [
        f"{name}, as its paper trains" for name in names]
    assert labels["paper"] == labels["quick"] + [run.label for run in paper]
    assert [run.config.seed for run in paper[:3]] == [0, 1, 2] and len(paper) == 3 * len(names)
    for name, run in zip(names, paper[::3], strict=True):
        images = {"topk": "lite0:pooled:flip", "bcls": "lite0:pooled:flip",
                  "dvse+resnet152": "lite0:grid:one"}.get(name, "lite0:nanodet:36")
        assert run.config == preset(name, "flickr8k", images)
    (short,) = {run.config.settings.epochs for run in arms_of(
        notebook, "flickr8k", "paper", epochs=2) if "its paper" in run.label}
    assert short == 2


def test_a_notebook_without_presets_has_no_profile_paper():
    assert WITH_PRESETS == tuple(name[:2] for name in PAPERS)
    with pytest.raises(ValueError, match="profile paper is for notebooks 03_topk, 05_"):
        arms_of("02_pairwise_losses", "scenes", "paper")


@pytest.mark.slow
@pytest.mark.parametrize("paper", sorted(PAPERS.values()))
def test_a_command_trains_a_preset_on_published_features(paper, tmp_path, store, monkeypatch,
                                                         capsys):
    """Ten steps on 36 regions that stay on the disk, as those of COCO do."""
    dataset, _ = fakes.make("regions", tmp_path)
    monkeypatch.setattr("itr_study.features.dataset.IN_MEMORY", 10)
    steps, take = [], loop.take_step
    monkeypatch.setattr(loop, "take_step", lambda *given: steps.append(1) or take(*given))
    changes = ("settings.epochs=1", "settings.batch_size=65", "model_arguments.size=24")
    with pytest.raises(SystemExit) as ended:
        app(["train", f"paper:{paper}", "--dataset", dataset, "--data", str(tmp_path),
             "--device", "cpu", *(word for change in changes for word in ("--set", change))])
    assert not ended.value.code and len(steps) == 10, capsys.readouterr()
    (folder,) = RunStore().folder.glob("*/manifest.json")
    config = RunStore().result(folder.parent.name).config
    assert config["images"] == "given" and config["settings"]["epochs"] == 1
    stated = {key: value for key, value in STATED[paper].items() if key.startswith("objective")}
    assert stated.items() <= flat(config).items()
    regions = encoded_data(RunConfig.model_validate(config), tmp_path).splits["train"].regions
    assert isinstance(regions, np.memmap) and regions.shape == (130, 1, 36, 2048)
