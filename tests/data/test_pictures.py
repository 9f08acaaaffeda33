"""A folder of pictures without texts."""

import pytest

from itr_study.data.base import DataError
from itr_study.data.folder import load_pictures
from tests.data import tiny


def test_all_pictures_below_a_folder(tmp_path):
    tiny.picture(tmp_path / "b.png"), tiny.picture(tmp_path / "deep" / "a.jpg", seed=1)
    (tmp_path / "notes.txt").write_text("no picture")
    (tmp_path / "broken.png").write_bytes(b"")
    data = load_pictures(tmp_path, cache=tmp_path / "checks")
    (split,) = data.splits.values()
    assert split.image_ids == ("b.png", "deep/a.jpg") and split.texts == ()
    assert data.open_image("deep/a.jpg").size == (32, 24)
    assert [(p.kind, p.where) for p in data.report.excluded] == [("empty picture", "broken.png")]
    before = data.fingerprint
    tiny.picture(tmp_path / "c.png", seed=2)
    assert load_pictures(tmp_path, cache=tmp_path / "checks").fingerprint != before


def test_a_folder_without_pictures_is_refused(tmp_path):
    with pytest.raises(DataError, match="there is no folder .*nowhere"):
        load_pictures(tmp_path / "nowhere")
    (tmp_path / "broken.png").write_bytes(b"")
    with pytest.raises(DataError, match=r"holds no picture that can be decoded \(1 broken\)"):
        load_pictures(tmp_path, cache=tmp_path / "checks")
