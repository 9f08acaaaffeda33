from pathlib import Path

from itr_study.files.paths import home, project_root, shipped_copy, shipped_folder


def test_home_is_beside_pyproject_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("ITR_STUDY_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    assert (project_root() / "pyproject.toml").is_file()
    assert home() == project_root() / ".itr_study"


def test_home_follows_the_environment_at_every_call(tmp_path, monkeypatch):
    monkeypatch.setenv("ITR_STUDY_HOME", str(tmp_path / "here"))
    assert home() == tmp_path / "here"
    monkeypatch.setenv("ITR_STUDY_HOME", "~/there")
    assert home() == Path.home() / "there"
    assert not (tmp_path / "here").exists()


def test_notebooks_come_with_an_installed_package(tmp_path, monkeypatch):
    """A folder of the project counts first; away from its source the copy above the package, as
    after `pip install --user`; sys.prefix where there is none."""
    copy, project = tmp_path / "user/share/itr_study/notebooks", tmp_path / "project"
    monkeypatch.setattr("sys.prefix", str(tmp_path / "prefix"))
    assert shipped_copy("notebooks") == tmp_path / "prefix/share/itr_study/notebooks"
    copy.mkdir(parents=True)
    installed = tmp_path / "user/lib/python3.12/site-packages/itr_study/files/paths.py"
    monkeypatch.setattr("itr_study.files.paths.__file__", str(installed))
    monkeypatch.setattr("itr_study.files.paths.project_root", lambda: project)
    assert shipped_folder("notebooks") == copy
    assert shipped_folder("evidence") == project / "evidence"
    (project / "notebooks").mkdir(parents=True)
    assert shipped_folder("notebooks") == project / "notebooks"
