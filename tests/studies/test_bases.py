"""Base configs."""

import pytest

from itr_study.lab.runs.data import encoded_data
from itr_study.lab.studies import bases
from itr_study.lab.studies.bases import base
from tests.data import tiny


def test_base_configs_are_read_and_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(bases, "BASES", tmp_path)
    (tmp_path / "scenes.toml").write_text(
        '[cheap]\nimages = "detector"\nmodel = "two_branch"\nsentences = "fisher"\n'
        'objective = [{loss = "topk", arguments = {k = 4}}]\nsettings = {epochs = 3}\n')
    assert base("scenes", "cheap", seed=2).objective[0].arguments == {"k": 4}
    assert base("scenes", "cheap", seed=2).settings.epochs == 3
    with pytest.raises(ValueError, match="base config of scenes must be one of cheap"):
        base("scenes", "dear")
    with pytest.raises(ValueError, match="must be one of scenes; got 'coco'"):
        base("coco", "cheap")


def test_learning_rates_that_nobody_searched_are_refused():
    assert bases.frozen_rates("scenes")["vsepp+gru"]["sum"] == 5e-3
    with pytest.raises(ValueError, match="nobody has searched the learning rates of folder"):
        bases.frozen_rates("folder")


def test_an_arm_without_a_rate_of_its_own_lies_where_that_of_the_hardest_lies(tmp_path,
                                                                              monkeypatch):
    monkeypatch.setattr(bases, "BASES", tmp_path)
    (tmp_path / "scenes.toml").write_text(
        "[rates.a]\ntried = [1.0, 2.0, 3.0]\nsum = 3.0\nhardest = 2.0\n")
    assert bases.at_edge("scenes", "a/sum") and not bases.at_edge("scenes", "a/soft")


@pytest.mark.parametrize("tried, found", [("tried = []\n", r"found \[\]"),
                                          ("", "found no `tried`")])
def test_rates_without_the_grid_they_were_chosen_from_are_refused(tried, found, tmp_path,
                                                                  monkeypatch):
    monkeypatch.setattr(bases, "BASES", tmp_path)
    (tmp_path / "scenes.toml").write_text(f"[rates.a]\n{tried}hardest = 2.0\n")
    for read in (lambda: bases.at_edge("scenes", "a/sum"), lambda: bases.tried_rates("scenes")):
        with pytest.raises(ValueError, match=rf"scenes.toml.*rates.\"a\".* tried = \[.*{found}"):
            read()


@pytest.mark.parametrize("dataset", ["flickr30k", "coco"])
def test_precomputed_features_go_with_the_bases_as_their_files_say(dataset, tmp_path, store):
    tiny.precomputed(tmp_path, dataset)
    config = base(dataset, "vsepp+gru",
                  **{"data_options.features": "precomputed", "images": "given"})
    assert encoded_data(config, tmp_path).inputs.region_size == 5
