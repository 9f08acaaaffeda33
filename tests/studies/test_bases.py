"""Base configs."""

import pytest

from itr_study.studies import bases
from itr_study.studies.bases import base


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
