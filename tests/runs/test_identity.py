"""Ids of runs: what they depend on."""

from itr_study.features.texts import LABEL_ENCODERS
from itr_study.lab.runs.config import training_vectors
from itr_study.lab.runs.data import encoded_data
from itr_study.lab.runs.identity import hash_run, identify, part_versions
from itr_study.losses import LOSSES
from itr_study.models import MODELS
from itr_study.relevance import RELEVANCE
from tests.small_runs import SMALL


def id_of(config, data="d", key="k", **versions):
    return hash_run(config, data, key, part_versions(config) | versions)


def test_an_id_depends_on_what_the_numbers_depend_on():
    others = [SMALL.with_(seed=1), SMALL.with_(**{"objective.0.arguments.k": 2}),
              SMALL.with_(**{"settings.precision": "bfloat16"}), SMALL.with_(tokens="words")]
    ids = [id_of(SMALL), *(id_of(other) for other in others), id_of(SMALL, data="e"),
           id_of(SMALL, key="l"), id_of(SMALL, loop=2)]
    assert len(set(ids)) == len(ids)
    assert all(len(i) == 16 and set(i) <= set("0123456789abcdef") for i in ids)


def test_a_default_written_out_is_the_same_run():
    """The id is pinned: it may change only with versions of parts, never with new options."""
    written = SMALL.with_(**{"objective.0.arguments.margin": 0.2, "settings.optimizer": "adamw",
                             "model_arguments.text_layers": 2})
    assert written != SMALL and id_of(written) == id_of(SMALL)
    assert id_of(SMALL.with_(dataset="flickr8k", data_options={})) == id_of(
        SMALL.with_(dataset="flickr8k", data_options={"skip_bad": False}))
    assert hash_run(SMALL, "d", "k", {"model:two_branch": 1}) == "199605e9093f816b"


def test_a_version_makes_another_id(monkeypatch):
    before = id_of(SMALL)
    monkeypatch.setattr(LOSSES["topk"], "version", 99)
    assert id_of(SMALL) != before
    monkeypatch.undo()
    monkeypatch.setattr(MODELS["two_branch"], "version", 99)
    assert id_of(SMALL) != before


def test_files_that_label_sources_read_are_part_of_the_id(tmp_path):
    term = {"loss": "smooth_ndcg", "labels": "clip", "label_arguments": {"folder": str(tmp_path)}}
    config, ids = SMALL.with_(objective=[term]), set()
    for content in (b"one", b"other"):
        (tmp_path / "train_images.npy").write_bytes(content)
        ids.add(id_of(config))
    assert len(ids) == 2


def test_files_that_a_label_source_does_not_read_change_no_id(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "2024"
    folder.mkdir()
    (folder / "train_images.npy").write_bytes(b"one")
    config = SMALL.with_(objective=[{"loss": "ladder", "labels": "features",
                                     "label_arguments": {"folder": 2024}}])
    before = id_of(config)
    for name in ("train_texts.npy", "train_ims.npy", "dev_images.npy"):
        (folder / name).write_bytes(b"other")
    assert id_of(config) == before
    (folder / "train_images.npy").write_bytes(b"other")
    assert id_of(config) != before


def test_ids_of_encoded_data_are_known_without_encoding(store):
    data = encoded_data(SMALL)
    assert identify(SMALL).encoded == data.key


def test_versions_of_the_parts_are_read_without_building_them(monkeypatch):
    config = SMALL.with_(objective=[
        {"loss": "topk"}, {"loss": "kendall", "labels": "sentence", "label_arguments": {
            "scale": "cosine"}}])
    monkeypatch.setattr(LOSSES["topk"], "__init__", None)
    parts = ["described:minilm", "labels:binary", "labels:sentence", "loss:kendall", "loss:topk",
             "model:two_branch"]
    versions = part_versions(config)
    assert sorted(versions) == parts
    assert versions["loss:topk"] == LOSSES["topk"].version
    assert versions["labels:sentence"] == RELEVANCE["sentence"].version


WARMED = SMALL.with_(**{"settings.warmup_epochs": 1, "warmup_objective": [
    {"loss": "smooth_ndcg", "labels": "sentence", "label_arguments": {"vectors": "fisher"}}]})


def test_terms_of_warm_up_epochs_and_what_describes_labels_have_versions_too(monkeypatch):
    parts = {"loss:smooth_ndcg": LOSSES["smooth_ndcg"], "labels:sentence": RELEVANCE["sentence"],
             "described:fisher": LABEL_ENCODERS["fisher"]}
    assert {name: version for name, version in part_versions(WARMED).items()
            if name in parts} == {name: part.version for name, part in parts.items()}
    before = id_of(WARMED)
    for part in parts.values():
        with monkeypatch.context() as patch:
            patch.setattr(part, "version", 99)
            assert id_of(WARMED) != before
    assert id_of(WARMED) == before


def test_label_vectors_are_those_that_the_sources_are_asked_for():
    assert training_vectors(SMALL) == set()
    assert training_vectors(WARMED) == {"fisher"}
    plain = WARMED.with_(**{"warmup_objective.0.label_arguments": {}})
    assert training_vectors(plain) == {"minilm"}
