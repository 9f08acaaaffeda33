import json
from types import SimpleNamespace

import pytest

from itr_study.data.picture_files import CheckCache


def test_remembers_over_instances_until_the_file_changes(tmp_path):
    file = tmp_path / "a"
    file.write_text("x")
    memory = CheckCache(tmp_path / "c", "check", tmp_path)
    assert not memory.knows("a", file.stat())
    memory.remember("a", file.stat())
    memory.save()
    again = CheckCache(tmp_path / "c", "check", tmp_path)
    assert again.knows("a", file.stat()) and not again.knows("b", file.stat())
    assert not CheckCache(tmp_path / "c", "other", tmp_path).knows("a", file.stat())
    file.write_text("xy")
    assert not again.knows("a", file.stat())


def test_files_of_one_size_and_one_moment_that_change_places_are_others(tmp_path):
    (tmp_path / "a").write_text("x")
    (tmp_path / "b").write_text("y")
    first, second = (tmp_path / "a").stat(), (tmp_path / "b").stat()
    memory = CheckCache(tmp_path / "c", "check", tmp_path)
    for name in ("a", "link/a"):  # its folder, or what it links to, is exchanged: no time is new
        memory.remember(name, first)
        other = SimpleNamespace(**{name: getattr(first, name) for name in dir(first)
                                   if name.startswith("st_")} | {"st_ino": second.st_ino})
        assert memory.knows(name, first) and not memory.knows(name, other)


@pytest.mark.parametrize("content", ["{broken", "[]", '{"version": 1, "good": 3}'])
def test_a_damaged_memory_only_costs_time(tmp_path, content):
    file = tmp_path / "a"
    file.write_text("x")
    memory = CheckCache(tmp_path / "c", "check", tmp_path)
    memory.remember("a", file.stat())
    memory.save()
    memory.path.write_text(content)
    again = CheckCache(tmp_path / "c", "check", tmp_path)
    assert not again.knows("a", file.stat())
    again.remember("a", file.stat())
    again.save()
    assert json.loads(again.path.read_text())["good"]["a"][0] == 1


def test_a_stricter_check_forgets_what_an_older_one_passed(tmp_path, monkeypatch):
    memory = CheckCache(tmp_path / "c", "check", tmp_path)
    memory.remember("a", tmp_path.stat())
    memory.save()
    monkeypatch.setattr("itr_study.data.picture_files.VERSION", 999)
    assert not CheckCache(tmp_path / "c", "check", tmp_path).good


def test_lies_in_the_home_by_default(tmp_path, monkeypatch):
    monkeypatch.setenv("ITR_STUDY_HOME", str(tmp_path / "home"))
    assert CheckCache(None, "check", tmp_path).path.parent == tmp_path / "home" / "checks"


def test_a_disk_that_cannot_be_written_is_a_warning(tmp_path, caplog):
    (tmp_path / "c").write_text("a file where the folder should be")
    memory = CheckCache(tmp_path / "c", "check", tmp_path)
    memory.remember("a", tmp_path.stat())
    memory.save()
    assert "checks again" in caplog.text
