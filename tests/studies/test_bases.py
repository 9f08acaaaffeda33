"""Base configs."""

import pytest

from itr_study.lab.runs.data import encoded_data
from itr_study.lab.studies import bases
from itr_study.lab.studies.bases import base
from tests.data import tiny

CHEAP = ('[cheap]\nimages = "lite0:pooled:flip"\nmodel = "two_branch"\nsentences = "fisher"\n'
         'objective = [{loss = "topk", arguments = {k = 4}}]\nsettings = {epochs = 3}\n')


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Write the common settings and those of scenes."""
    def write(common: str, scenes: str = "") -> None:
        (tmp_path / "settings.toml").write_text(common)
        (tmp_path / "scenes.toml").write_text(scenes)

    monkeypatch.setattr(bases, "BASES", tmp_path)
    return write


def test_base_configs_are_read_and_changed(files):
    files(CHEAP)
    assert base("scenes", "cheap", seed=2).objective[0].arguments == {"k": 4}
    assert base("coco", "cheap", seed=2).settings.epochs == 3
    with pytest.raises(ValueError, match="base config of scenes must be one of cheap"):
        base("scenes", "dear")
    with pytest.raises(ValueError, match="dataset must be one of .*coco"):
        base("coca", "cheap")


def test_a_setting_starts_from_another_then_all_then_the_data_set(files):
    files(CHEAP + '[dear]\nlike = "cheap"\nsentences = "minilm"\nsettings = {batch_size = 9}\n',
          '[all]\nimages = "detector"\nsettings = {epochs = 4, warmup_steps = 2}\n'
          '[cheap]\nsettings = {epochs = 5}\n'
          '[mine]\nlike = "dear"\nsettings = {batch_size = 8}\n')
    cheap, dear, mine = (base("scenes", name) for name in ("cheap", "dear", "mine"))
    assert (cheap.images, cheap.settings.epochs, dear.settings.epochs) == ("detector", 5, 4)
    assert (dear.sentences, dear.settings.batch_size, mine.settings.batch_size) == ("minilm", 9, 8)
    assert mine.sentences == "minilm" and mine.settings.warmup_steps == 2
    other = base("coco", "dear")
    assert (other.images, other.settings.epochs) == ("lite0:pooled:flip", 3)


def test_a_setting_that_starts_from_itself_is_refused(files):
    files(CHEAP + '[a]\nlike = "b"\n[b]\nlike = "a"\n')
    with pytest.raises(ValueError, match="like = 'a' of 'b' must name another setting"):
        base("scenes", "cheap")


def test_rates_that_nobody_searched_here_are_those_of_flickr8k():
    assert bases.frozen_rates("scenes")["vsepp+gru"]["sum"] == 2e-2
    for dataset in ("folder", "coco"):
        assert bases.frozen_rates(dataset) == bases.frozen_rates("flickr8k")
        assert bases.tuned_on(dataset, "two_branch") == "flickr8k"
    tuned = {name: bases.tuned_on("scenes", name) for name in ("saf", "sgr", "first", "clean_gru")}
    assert tuned == {"saf": "", "sgr": "", "first": "scenes", "clean_gru": "flickr8k"}


@pytest.mark.parametrize("tried, found", [("tried = []\n", r"found \[\]"),
                                          ("", "found no `tried`")])
def test_rates_without_the_grid_they_were_chosen_from_are_refused(tried, found, files):
    files("", f"[rates.a]\n{tried}hardest = 2.0\n")
    with pytest.raises(ValueError, match=rf"rates.\"a\". of scenes .* tried = \[.*{found}"):
        bases.tried_rates("scenes")


@pytest.mark.parametrize("dataset", ["flickr30k", "coco"])
def test_precomputed_features_go_with_the_bases_as_their_files_say(dataset, tmp_path, store):
    tiny.precomputed(tmp_path, dataset)
    config = base(dataset, "vsepp+gru",
                  **{"data_options.features": "precomputed", "images": "given"})
    assert encoded_data(config, tmp_path).inputs.region_size == 5
