"""JupyterLab on working copies: never overwritten, unseen by git, on the right kernel."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_server.services.config import ConfigManager
from jupyterlab.labapp import LabApp

from itr_study.files.paths import home, output_folder, project_root
from itr_study.lab.batch.declared import find_notebooks
from itr_study.lab.cli import lab
from itr_study.lab.cli.app import app


@pytest.fixture
def my(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(lab, "my_folder", lambda: tmp_path / "my")
    return tmp_path / "my"


def test_every_notebook_and_solution_is_copied_once_and_never_overwritten(my):
    copies = lab.working_copies()
    assert [copy.name for copy in copies] == [path.name for path in find_notebooks()]
    for path, copy in zip(find_notebooks(), copies, strict=True):
        assert copy.read_bytes() == path.read_bytes()
        assert (my / "solutions" / path.name).is_file()
    copies[0].write_text("mine")
    copies[1].unlink()
    lab.working_copies()
    assert copies[0].read_text() == "mine" and copies[1].is_file()


def test_fresh_renews_one_and_keeps_what_was_there(my):
    first, second, *_ = lab.working_copies()
    for attempt in ("mine", "mine again"):
        first.write_text(attempt)
        second.write_text(attempt)
        lab.working_copies(["00"])
        assert json.loads(first.read_text())["cells"] and second.read_text() == attempt
    assert (my / "00_start_here.before.ipynb").read_text() == "mine"
    assert (my / "00_start_here.before2.ipynb").read_text() == "mine again"
    with pytest.raises(ValueError, match="no notebook '77'"):
        lab.working_copies(["77"])


@pytest.fixture
def sources(tmp_path, monkeypatch) -> Path:
    """Two notebooks, one with a solution, that may be changed."""
    folder = tmp_path / "notebooks"
    (folder / "solutions").mkdir(parents=True)
    for name in ("00_a.ipynb", "01_b.ipynb", "solutions/01_b.ipynb"):
        (folder / name).write_text(f"first {name}")
    paths = sorted(folder.glob("*.ipynb"))
    monkeypatch.setattr(lab, "find_notebooks", lambda names=(): [
        path for path in paths if not names or path.name[:2] in names])
    return folder


def test_copies_behind_their_source_are_named_and_not_touched(my, sources):
    lab.working_copies()
    assert lab.advice() == ""
    (my / "00_a.ipynb").write_text("mine")  # changed by its reader: not behind
    (sources / "00_a.ipynb").touch()
    assert lab.advice() == ""
    (sources / "01_b.ipynb").write_text("second")
    (sources / "solutions" / "01_b.ipynb").write_text("second solution")
    for _ in range(2):  # it is said at every start
        lab.working_copies()
        assert lab.advice() == (
            "Changed in notebooks/ since you have your copy: 01_b.ipynb, solutions/01_b.ipynb\n"
            "To copy again (yours is kept): itr-study lab --fresh 01_b")
    assert (my / "01_b.ipynb").read_text() == "first 01_b.ipynb"
    lab.working_copies(["01"])
    assert lab.advice() == "" and (my / "01_b.ipynb").read_text() == "second"
    assert (my / "solutions" / "01_b.ipynb").read_text() == "second solution"
    assert (my / "01_b.before.ipynb").read_text() == "first 01_b.ipynb"
    assert (my / "solutions" / "01_b.before.ipynb").is_file()
    lab.working_copies(["01"])  # the solution is the newest: no copy of it beside
    assert not (my / "solutions" / "01_b.before2.ipynb").exists()


def test_a_copy_of_unknown_origin_is_named_where_it_differs(my, sources):
    lab.working_copies()
    (my / lab.ORIGINS).unlink()
    assert lab.advice() == ""  # the same bytes
    (sources / "00_a.ipynb").write_text("second")
    assert "have your copy: 00_a.ipynb\n" in lab.advice()


def test_lab_says_at_its_start_what_is_behind(my, sources, monkeypatch, capsys):
    lab.working_copies()
    (sources / "00_a.ipynb").write_text("second")
    monkeypatch.setattr(LabApp, "launch_instance", lambda arguments: None)
    monkeypatch.setattr(lab, "lab_environment", dict)
    monkeypatch.setattr(lab, "project_root", lambda: my.parent)
    lab.open_lab()
    assert "since you have your copy: 00_a.ipynb\nTo copy again" in capsys.readouterr().out


def test_git_sees_none_of_it():
    for path in ("my/00_start_here.ipynb", "my/figures/common/03_topk__loss_drawn.png",
                 "figures/scenes/00_start_here__examples.png", "figures/scenes/index.html"):
        done = subprocess.run(["git", "check-ignore", "-q", path], cwd=project_root())
        assert done.returncode == 0, path


def test_options_go_on_to_jupyterlab(store, monkeypatch):
    calls = []
    monkeypatch.setattr(lab, "working_copies", lambda fresh: calls.append(fresh) or [
        project_root() / "my" / "00_start_here.ipynb"])
    monkeypatch.setattr(LabApp, "launch_instance", calls.append)
    for name in ("JUPYTER_PATH", "JUPYTER_CONFIG_PATH"):
        monkeypatch.setenv(name, "")  # restored at the end
    with pytest.raises(SystemExit) as ended:
        app(["lab", "--no-browser", "--port", "8899", "--fresh", "03", "--ip=0.0.0.0",
             "--allow-root"])
    assert not ended.value.code and calls[0] == ["03"]
    assert f"--ServerApp.root_dir={project_root()}" in calls[1]
    assert "--LabApp.default_url=/lab/tree/my/00_start_here.ipynb" in calls[1]
    assert calls[1][-5:] == ["--no-browser", "--port", "8899", "--ip=0.0.0.0", "--allow-root"]


def test_copies_go_elsewhere_where_the_project_cannot_be_written(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("ITR_STUDY_MY", raising=False)
    monkeypatch.setenv("ITR_STUDY_MY", "")  # restored at the end
    monkeypatch.setattr(LabApp, "launch_instance", lambda arguments: print(*arguments))
    monkeypatch.setattr(lab, "lab_environment", dict)
    (tmp_path / "file").write_text("")
    for folder, code, said in (
            (tmp_path / "file", 2, f"{tmp_path / 'file'} cannot be written: File exists. Name a "
             "folder you may write to: itr-study lab --folder"),
            (tmp_path / "mine", 0, f"--ServerApp.root_dir={tmp_path / 'mine'}")):
        with pytest.raises(SystemExit) as ended:
            app(["lab", "--folder", str(folder)])
        assert (ended.value.code or 0) == code and said in "".join(capsys.readouterr())
    assert (tmp_path / "mine" / "00_start_here.ipynb").is_file()
    assert output_folder(True) == output_folder(False) == tmp_path / "mine" / "figures"


def test_an_option_of_the_users_takes_the_place_of_ours():
    """JupyterLab refuses two values of one option."""
    first = project_root() / "my" / "00_start_here.ipynb"
    for option in ("--ServerApp.root_dir=/data", "--notebook-dir=/data"):
        command = lab.lab_arguments(first, [option])
        assert [part for part in command if "dir=" in part] == [option]
    command = lab.lab_arguments(first, ["--LabApp.default_url=/lab"])
    assert [part for part in command if "default_url" in part] == ["--LabApp.default_url=/lab"]


def test_its_kernel_is_this_interpreter_whatever_else_is_called_python3(store, tmp_path,
                                                                       monkeypatch):
    other = tmp_path / "other" / "kernels" / "python3"
    other.mkdir(parents=True)
    spec = {"argv": ["/elsewhere/python"], "display_name": "Python 3", "language": "python"}
    (other / "kernel.json").write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "other"))
    assert KernelSpecManager().get_kernel_spec("python3").argv[0] == "/elsewhere/python"
    for name, value in lab.lab_environment().items():
        monkeypatch.setenv(name, value)
    assert KernelSpecManager().get_kernel_spec("python3").argv[0] == sys.executable


SERVER = """
from jupyter_server.extension.application import ExtensionApp
from itr_study.lab.cli import lab
lab.working_copies = lambda fresh: [lab.project_root() / "my" / "00_start_here.ipynb"]
ExtensionApp.launch_instance = classmethod(lambda cls, argv: print(cls().workspaces_dir))
lab.open_lab()
"""


@pytest.mark.slow
def test_open_tabs_are_remembered_for_this_project_alone(store):
    """JupyterLab reads where they lie while it is imported: in a process of its own, as `lab` is.
    """
    environment = {k: v for k, v in os.environ.items() if k != "JUPYTERLAB_WORKSPACES_DIR"}
    done = subprocess.run([sys.executable, "-c", SERVER], capture_output=True, text=True,
                          env=environment)
    assert done.stdout.splitlines()[-1] == str(home() / "jupyter" / "workspaces"), done.stderr


def test_it_asks_nobody_about_news_and_keeps_the_state_of_controls(store, monkeypatch):
    for name, value in lab.lab_environment().items():
        monkeypatch.setenv(name, value)
    changed = ConfigManager(config_dir_name="labconfig").get("default_setting_overrides")
    assert changed["@jupyterlab/apputils-extension:notification"]["fetchNews"] == "false"
    assert changed["@jupyter-widgets/jupyterlab-manager:plugin"]["saveState"] is True


def test_a_site_without_its_packages_is_refused_with_the_remedy(monkeypatch, tmp_path):
    called = []
    monkeypatch.setattr(lab.subprocess, "call", lambda command, cwd: called.append(command) or 3)
    monkeypatch.setattr(lab, "find_spec", lambda name: None if name == "furo" else name)
    with pytest.raises(ValueError, match="the site needs furo: pip install -r tools/site/"):
        lab.make_site("scenes", tmp_path)
    monkeypatch.setattr(lab, "find_spec", str)
    assert lab.make_site("scenes", tmp_path) == 3
    assert called[0][1:] == ["-m", "tools.site", "--dataset", "scenes", "--folder", str(tmp_path)]
