"""Everything that trains or measures, on a device that is not the CPU: the CPU's values, nothing
left behind on the host, and the device stopped once a step at most.

The device is simulated (`sim_device.py`), so that these tests need no GPU. `test_sim.py` runs them;
by hand: pytest tests/on_sim.py
"""

from copy import deepcopy
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from itr_study import metrics
from itr_study.checks import gathered
from itr_study.data import batches
from itr_study.data.batches import EncodedSplit, InputSpec
from itr_study.evaluation.evaluate import encode, evaluate, score
from itr_study.evaluation.search import Searcher
from itr_study.lab.runs.data import dataset_of, encoded_data
from itr_study.lab.runs.run import weights
from itr_study.losses import LOSSES, OUTPUT_LOSSES
from itr_study.metrics import Truth, five_fold, hubness, ranks, ranks_from_embeddings
from itr_study.models import MODELS
from itr_study.models.base import ModelOutput, device_of
from itr_study.relevance import RELEVANCE
from itr_study.rerank import RERANKERS, Bank
from itr_study.training import loop
from itr_study.training.loop import fit
from itr_study.training.objective import MAPS, OBJECTIVES, Objective, Term
from itr_study.training.settings import Settings
from tests.golden.cases import labelled_split
from tests.losses.batches import graded_batch, random_batch
from tests.metrics.sets import METRICS, random_set
from tests.relevance.test_registry import rectangle
from tests.rerank.sets import cosines
from tests.sim_device import NAME, Sim, syncs
from tests.small_runs import SMALL

ALL = LOSSES | OUTPUT_LOSSES
OTHER_ARGUMENTS = {"kendall_window": ({"hard": False},), "kendall": ({"reduction": "sum"},),
                   "semantic_margin": ({"negatives": "hardest"},), "topk": ({"k": 2},),
                   "variance_weighted": ({"weights": "equal"}, {"spread": "softmax"}),
                   "orthogonality": ({"over": "pair"},), "mmd": ({"kernel": "square"},)}
ALL_ARGUMENTS = [(name, arguments) for name in ALL
                 for arguments in ({}, *OTHER_ARGUMENTS.get(name, ()))]
SOURCES = [("binary", {}), ("binary", {"same_image": "negative"}), ("exact", {}),
           *(("sentence", {"pooling": pooling, "scale": scale})
             for pooling in ("max", "mean", "pair") for scale in ("unit", "cosine")),
           *(("cider", {"pooling": pooling}) for pooling in ("max", "mean", "pair")),
           *((name, {"scale": scale}) for name in ("clip", "features")
             for scale in ("unit", "cosine"))]
VARIANTS = [("two_branch", {"hidden": 8}), ("vsepp", {}),
            ("vsepp", {"text": "bigru", "pool": "max"}), ("pvse", {"heads": 2}),
            ("vse_infinity", {"image_hidden": 8}),
            ("dvse", {"heads": 3}), ("dvse", {"heads": 0, "text": "gru"}),
            ("saf", {"similarity": 4}), ("sgr", {"similarity": 4, "steps": 2}), ("dan", {})]
SETTINGS = Settings(epochs=1, batch_size=12, optimizer="sgd", learning_rate=0.1, select="last",
                    bucket=False)


@dataclass
class Data:
    """24 images and 72 texts with everything that any model or label source reads."""

    splits: dict[str, EncodedSplit]
    inputs: InputSpec = field(default_factory=lambda: InputSpec(6, 20, 5))
    key: str = "0123456789abcdef"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Vectors such as a user brings."""
    folder, rng = tmp_path_factory.mktemp("vectors"), np.random.default_rng(1)
    for what, rows in (("images", 24), ("texts", 72)):
        np.save(folder / f"train_{what}.npy", rng.normal(size=(rows, 16)).astype(np.float16))
    return str(folder)


@pytest.fixture(scope="module")
def split():
    sentences = np.random.default_rng(0).normal(size=(72, 5)).astype(np.float32)
    return replace(labelled_split(), sentences=sentences)


def made(source, folder):
    name, arguments = source
    given = {"folder": folder} if name in ("clip", "features") else {}
    return RELEVANCE[name](**arguments, **given)


def small(name, arguments):
    torch.manual_seed(0)
    return MODELS[name](InputSpec(6, 20, 5), size=8, **arguments)


def gradients(loss, heads, relevance, device):
    """Value, and gradient in what every score is made of: three heads of each image."""
    heads = heads.to(device).requires_grad_()
    vectors = heads.permute(1, 0, 2)
    # mmd compares them with those of images; structure wants one of every text
    texts = heads.permute(2, 0, 1) if loss.name == "structure" else vectors
    output = ModelOutput(heads.amax(dim=0), head_scores=heads, subembeddings=vectors,
                         residuals=vectors, text_subembeddings=texts.detach(),
                         mask=torch.ones(heads.shape[1], len(heads), device=device),
                         text_vectors=heads[0].T, joined_vectors=heads[1].T, joined_scores=heads[2])
    value = loss(output if loss.takes == "output" else output.scores, relevance.to(device))
    value.backward()
    return value.detach(), heads.grad


def assert_same(on_device, expected, **tolerance):
    assert isinstance(on_device, Sim) and on_device.dtype == expected.dtype
    torch.testing.assert_close(on_device.cpu(), expected, **tolerance)


# Losses

@pytest.mark.parametrize(("name", "arguments"), ALL_ARGUMENTS)
@pytest.mark.parametrize("make", [random_batch, graded_batch])
def test_losses(name, arguments, make):
    for seed in range(4):
        scores, relevance = make(seed)
        relevance = relevance.clamp(min=0) if ALL[name].relevance_scale == "unit" else relevance
        heads = torch.stack((scores, scores - 0.1, scores.roll(1, 0)))
        loss = ALL[name](**arguments)
        with gathered() as checks, syncs(most=0):
            found = gradients(loss, heads, relevance, NAME)
        for ours, expected in zip(found, gradients(loss, heads, relevance, "cpu"), strict=True):
            assert_same(ours, expected, rtol=1e-7, atol=1e-9)
        with syncs() as counted:
            assert checks.read() == []
        assert counted.total == 1


def test_diagnostics():
    scores, relevance = graded_batch(1)
    relevance[0], relevance[:, 1] = 0, 0  # an image and a text with nothing to find
    relevance = relevance.clamp(min=0)
    with gathered(), syncs(most=0):
        value, parts = LOSSES["smooth_ndcg"]().diagnose(scores.to(NAME), relevance.to(NAME))
    expected, others = LOSSES["smooth_ndcg"]().diagnose(scores, relevance)
    assert_same(value, expected)
    for name, part in parts.items():
        assert_same(part, others[name])


# Labels

@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_labels(source, split, folder):
    batches = [split.pair_batch(np.array([0, 1, 5, 71, 30, 3, 1]))]
    if "pair" not in source[1].values() and "negative" not in source[1].values():
        batches.append(rectangle([3, 20, 3], [9, 0, 60, 61], split))
    labels = made(source, folder)
    for batch in batches:
        there = batch.to(NAME)
        with syncs(most=0):
            found = labels(there, split)
        assert torch.equal(found.cpu(), labels(batch, split)) and isinstance(found, Sim)


def test_ids_of_a_batch_made_on_the_device_are_read():
    ids = torch.tensor([4, 2], device=NAME)
    made_there = loop.Batch(image_ids=ids, text_ids=ids, text_images=ids)
    with syncs() as counted:
        ids = made_there.ids
    assert ids.paired and ids.texts.tolist() == [4, 2] and counted.total == 3


# A step of training

def trained(objective, data, device, variant=VARIANTS[0], settings=SETTINGS, **more):
    model = small(*variant)
    with syncs() as counted:
        history = fit(model, objective, data, settings, seed=1, device=device, **more)
    return model, history, counted


def assert_trained_alike(objective, data, variant=VARIANTS[0], settings=SETTINGS, **tolerance):
    """On both devices, and the simulated one stopped exactly once a step."""
    here, expected, _ = trained(objective, data, "cpu", variant, settings)
    there, history, counted = trained(objective, data, NAME, variant, settings)
    assert counted.total == 6, counted.names
    assert device_of(there).type == NAME
    for (name, ours), other in zip(there.state_dict().items(), here.state_dict().values(),
                                   strict=True):
        torch.testing.assert_close(ours.cpu(), other, msg=lambda m, name=name: f"{name}: {m}",
                                   **({"rtol": 1e-4, "atol": 1e-5} | tolerance))
    for ours, other in zip(history.rows, expected.rows, strict=True):
        assert ours | {"seconds": 0} == pytest.approx(other | {"seconds": 0}, rel=1e-4, abs=1e-5)


def model_for(name):
    """A model that gives what an objective of this name reads."""
    if name == "dense_to_sparse":
        return "dvse", {"heads": 3}
    heads = {*OUTPUT_LOSSES, "dvse"}
    return ("pvse", {"heads": 2}) if name in heads else VARIANTS[0]


@pytest.mark.parametrize("source", SOURCES, ids=str)
@pytest.mark.parametrize("name", ALL)
def test_one_stop_a_step_for_every_loss_with_every_source(name, source, split, folder):
    labels = made(source, folder)
    if labels.scale not in MAPS[ALL[name].relevance_scale]:
        with pytest.raises(ValueError, match="compares graded labels"):
            Objective([Term(name, labels=labels)])
        return
    objective = Objective([Term(name, labels=labels)])
    settings = SETTINGS.model_copy(update={"batch_size": 72})
    _, _, counted = trained(objective, Data({"train": split}), NAME, model_for(name), settings)
    assert counted.total == 1, counted.names


@pytest.mark.parametrize("name", [*ALL, *OBJECTIVES])
def test_six_steps_give_the_weights_of_the_cpu(name, split):
    assert_trained_alike(Objective(name), Data({"train": split}), model_for(name))


def halved(split, folder):
    """The split with its regions, two views of each image, as float16 in a file that is mapped."""
    np.save(folder / "regions.npy", split.regions.astype(np.float16))
    return replace(split, regions=np.load(folder / "regions.npy", mmap_mode="r"))


def test_features_that_fit_are_copied_to_the_device_once(split, tmp_path, monkeypatch):
    train = halved(split, tmp_path)
    _, _, regions, size = train.regions.shape
    shapes = {(24, 2, regions, size), (72, 5), (12, regions, size), (12, 5)}  # all, and a batch's
    settings = SETTINGS.model_copy(update={"epochs": 2})
    four_times, models = 4 * (train.regions.nbytes + train.sentences.nbytes), []
    for free, expected in ((four_times + 1, [2, 2]), (four_times, [12, 24])):  # 6 batches an epoch
        monkeypatch.setattr(torch.sim, "free", free)
        models.append(model := small(*VARIANTS[0]))
        found = []
        with syncs() as counted:
            fit(model, Objective("triplet"), Data({"train": train}), settings, seed=1, device=NAME,
                on_epoch=lambda _, counted=counted, found=found: found.append(
                    sum(kind.is_floating_point and tuple(shape) in shapes
                        for kind, shape in counted.copied)))
        assert found == expected and counted.total == 12
    for ours, other in zip(*(model.state_dict().values() for model in models), strict=True):
        assert torch.equal(ours, other)


@pytest.mark.parametrize("change", [
    {}, {"sentences": None}, {"region_mask": None, "tokens": None},
    {"sentences": np.linspace(0, 1, 72 * 5, dtype=">f4").reshape(72, 5)},
    {"regions": np.random.default_rng(0).normal(size=(600, 2, 3, 4)).astype(">f2"),
     "region_mask": None}])  # more rows than are copied at a time
def test_a_batch_cut_on_the_device_is_that_of_the_host(change, split, tmp_path):
    train = replace(halved(split, tmp_path), **change)
    if len(train.regions) == 600:
        train.image_of_text = np.arange(72) * 8
    texts, views = np.array([70, 3, 3, 40, 0]), np.array([1, 0, 1, 1, 0])
    with syncs(most=0):
        found = train.pairs_on(torch.device(NAME))(texts, views)
    expected = train.pair_batch(texts, views)
    for name, tensor in vars(expected).items():
        if isinstance(tensor, Tensor):
            assert_same(getattr(found, name), tensor, rtol=0, atol=0)
        else:
            assert name == "host" or getattr(found, name) is None
    assert all(map(np.array_equal, found.ids, expected.ids))


def test_on_the_cpu_no_features_are_copied(split, monkeypatch):
    monkeypatch.setattr(torch.cpu, "mem_get_info", lambda _: (1 << 30, 1 << 30), raising=False)
    monkeypatch.setattr(batches, "_copied", None)
    texts, views = np.arange(12), np.zeros(12, np.int64)
    found = split.pairs_on(torch.device("cpu"))(texts, views)
    assert torch.equal(found.regions, split.pair_batch(texts, views).regions)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@pytest.mark.parametrize("optimizer", ["adamw", "adam", "sgd"])
def test_models_train(variant, optimizer, split):
    settings = SETTINGS.model_copy(update={"optimizer": optimizer, "learning_rate": 1e-3})
    assert_trained_alike(Objective("triplet_sum"), Data({"train": split}), variant, settings,
                         atol=1e-4)


def test_encoders_in_bfloat16(split):
    scores, kinds = [], []
    for device in ("cpu", NAME):
        model = small(*VARIANTS[0]).eval().to(device)
        model.image.register_forward_hook(lambda net, given, found: kinds.append(found.dtype))
        output = loop.forward(model, split.pair_batch(np.arange(9)).to(device), "bfloat16")
        output.scores.sum().backward()
        scores += [output.scores.detach().cpu(), model.image[0].weight.grad.cpu()]
    assert kinds == [torch.bfloat16] * 2 and scores[0].dtype == torch.float32
    torch.testing.assert_close(scores[:2], scores[2:], rtol=0.02, atol=0.01)


def test_training_with_dev_stops_and_resumes(split, tmp_path):
    """Checkpoints are read back on the device; the best epoch's weights are those of the CPU."""
    data = Data({"train": split, "dev": replace(split, name="dev")})
    settings = SETTINGS.model_copy(update={"epochs": 3, "select": "rsum"})

    def stop(history):
        if len(history.rows) == 2:
            raise RuntimeError("the machine is gone")

    here, expected, _ = trained(Objective("triplet"), data, "cpu", settings=settings)
    with pytest.raises(RuntimeError, match="is gone"):
        trained(Objective("triplet"), data, NAME, settings=settings, folder=tmp_path,
                save_seconds=0, on_epoch=stop)
    there, history, _ = trained(Objective("triplet"), data, NAME, settings=settings,
                                folder=tmp_path)
    assert [row["dev_rsum"] for row in history.rows] == [
        row["dev_rsum"] for row in expected.rows]
    for ours, other in zip(there.parameters(), here.parameters(), strict=True):
        assert_same(ours.detach(), other.detach(), rtol=1e-4, atol=1e-5)


# Evaluation

@pytest.mark.parametrize(("name", "arguments"), VARIANTS)
def test_evaluation_goes_where_the_model_is(name, arguments, split):
    here, there = small(name, arguments), small(name, arguments).to(NAME)
    codes, expected = encode(there, split), encode(here, split)
    for ours, other in zip(codes, expected, strict=True):
        torch.testing.assert_close(ours, other)  # on the CPU both
    torch.testing.assert_close(score(there, *codes), score(here, *expected))
    assert evaluate(there, split).table == evaluate(here, split).table


class Weighted(nn.Module):
    """A model whose `score` has a weight of its own, as those with attention have."""

    def __init__(self, parameter=True):
        super().__init__()
        factor = torch.tensor([2.0, 3.0])
        if parameter:
            self.factor = nn.Parameter(factor)
        else:
            self.register_buffer("factor", factor)

    def encode_images(self, batch):
        return batch.regions[:, 0, :2]

    def encode_texts(self, batch):
        return batch.sentences[:, :2]

    def score(self, images: Tensor, texts: Tensor) -> ModelOutput:
        return ModelOutput((images * self.factor) @ texts.T)


@pytest.mark.parametrize("parameter", [True, False])
def test_a_model_with_weights_in_its_score(parameter, split):
    here, there = Weighted(parameter), Weighted(parameter).to(NAME)
    assert device_of(there).type == NAME
    torch.testing.assert_close(score(there, *encode(there, split)),
                               score(here, *encode(here, split)))


def test_a_model_without_any_weight_is_on_the_cpu():
    assert device_of(nn.Identity()) == torch.device("cpu")


def test_search_goes_where_the_model_is():
    model, *data = weights(SMALL, device="cpu"), dataset_of(SMALL), encoded_data(SMALL)
    here, there = Searcher(model, *data), Searcher(deepcopy(model).to(NAME), *data)
    assert there.device.type == NAME
    image = there.split.image_ids[3]
    for ours, expected in ((there.search_text("a red ball"), here.search_text("a red ball")),
                           (there.search_image(image), here.search_image(image))):
        assert [hit.score for hit in ours] == pytest.approx([hit.score for hit in expected],
                                                            abs=1e-5)


@pytest.mark.parametrize("name", METRICS)
def test_metrics(name):
    metric = getattr(metrics, name)
    scores, owner = random_set(3, ties=True)
    there = torch.from_numpy(scores).to(NAME)
    assert metric(there, Truth(owner)) == metric(scores, Truth(owner))


def test_ranks():
    scores, owner = random_set(4, ties=True)
    there = torch.from_numpy(scores).to(NAME)
    for ours, expected in ((ranks(there, owner), ranks(scores, owner)),
                           (ranks(there, owner, block=3), ranks(scores, owner))):
        assert (ours.i2t == expected.i2t).all() and (ours.t2i == expected.t2i).all()
    images, texts = (np.random.default_rng(0).normal(size=(rows, 7)) for rows in scores.shape)
    ours = ranks_from_embeddings(*(torch.from_numpy(x).to(NAME) for x in (images, texts)), owner)
    expected = ranks_from_embeddings(images, texts, owner)
    assert (ours.i2t == expected.i2t).all() and (ours.t2i == expected.t2i).all()


def test_folds():
    scores, owner = random_set(5, images=20)
    assert five_fold(torch.from_numpy(scores).to(NAME), owner) == five_fold(scores, owner)


@pytest.mark.parametrize(("name", "banked"), [*((name, False) for name in RERANKERS),
                                              ("fast", True)])
def test_re_ranking(name, banked):
    scores, owner = cosines(6, images=20)
    here, there = (RERANKERS[name](given, **({"bank": Bank(given, given)} if banked else {}))
                   for given in (scores, torch.from_numpy(scores).to(NAME)))
    ours, expected = ranks(there, owner), ranks(here, owner)
    assert (ours.i2t == expected.i2t).all() and (ours.t2i == expected.t2i).all()
    for matrix, other in zip(there, here, strict=True):
        assert_same(matrix, torch.from_numpy(other))
    assert hubness(there) == hubness(here)
