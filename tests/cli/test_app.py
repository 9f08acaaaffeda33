"""The commands: what they print, their exit codes, and errors that say what to do."""

import json
from pathlib import Path

import pytest

from itr_study.cli.app import app
from tests.data import tiny
from tests.small_notebooks import write_notebook
from tests.small_runs import SMALL

COMMON = """\
profile: str = "quick"  # smoke, quick or full
dataset: str = "scenes"  # name of a data set
data: str | None = None  # root of real data
k: int = 5  # negatives in the mean, 1 and up"""


@pytest.fixture
def run(capsys):
    """Run a command; (exit code, output, errors)."""

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            app(list(map(str, arguments)))
        told = capsys.readouterr()
        return ended.value.code or 0, told.out, told.err

    return call


@pytest.fixture
def config(tmp_path) -> Path:
    path = tmp_path / "small.json"
    path.write_text(SMALL.model_dump_json())
    return path


def test_help_names_every_command(run):
    code, told, _ = run("--help")
    assert code == 0
    for name in ("doctor", "data", "features", "train", "evaluate", "search", "reproduce", "html",
                 "audit", "lab"):
        assert f"\n  {name} " in told


def test_data_takes_options_and_says_what_is_worth_knowing(run, tmp_path, store):
    folder = tiny.own_folder(tmp_path)
    tiny.add_line(folder / "captions.csv", "p4.png,Once more,test")  # also of p0.png, in train
    (folder / "images" / "p2.png").write_bytes(b"")
    code, _, error = run("data", "folder", "--data", folder)
    assert code == 2 and "--set data_options.skip_bad=true" in error
    code, told, _ = run("data", "folder", "--data", folder, "--set", "data_options.skip_bad=true")
    assert code == 0 and "left out: 1 x empty picture" in told
    assert "note: 1 x caption in two splits\n    Once more: of train and of test" in told
    code, _, error = run("features", "folder", "--data", folder, "--set", "skip=true")
    assert code == 2 and "did you mean 'skip_bad'" in error


def test_train_evaluate_search(run, config, store):
    """A finished run is not trained again; its tables and its test split can be asked for."""
    code, told, _ = run("train", config)
    assert code == 0 and "done, 2 epochs" in told and "rsum" in told
    assert told.index("i2t_r1 ") < told.index("i2t_r5 ") < told.index("i2t_r10 ")
    (folder,) = (store / "runs").glob("*/manifest.json")
    before = folder.stat().st_mtime_ns
    again = run("train", config)
    assert again[0] == 0 and folder.stat().st_mtime_ns == before
    code, tables, _ = run("evaluate", config)
    assert code == 0 and tables.strip() in told
    code, hits, _ = run("search", config, "--text", "a red boat", "--top", 3)
    *lines, searched = hits.splitlines()
    assert code == 0 and [line.split()[0] for line in lines] == ["1", "2", "3"]
    assert searched == "(10 images, test)"
    image = hits.split()[2]
    code, hits, _ = run("search", config, "--image", image, "--top", 50)
    assert code == 0 and hits.count("match") == 5  # each picture has five texts of its own


@pytest.mark.parametrize(("arguments", "told"), [
    (("train", "{}", "--set", "settings.epoch=3"), "did you mean 'epochs'?"),
    (("train", "{}", "--set", "modell=3"), "did you mean 'model'?"),
    (("train", "{}", "--set", "seed"), "--set takes key=value, got 'seed'"),
    (("train", "{}", "--set", "objective.3.weight=1"), "config has no 'objective.3.weight'"),
    (("train", "{}", "--set", "settings.epochs=many"), "settings.epochs: "),
    (("train", "nowhere.toml"), "no config file nowhere.toml"),
    (("evaluate", "{}"), "is not finished on this machine"),
    (("search", "{}"), "--text WORDS or --image"),
    (("data", "flickr8k"), "say where it lies with --data"),
    (("data", "flikr8k"), "must be one of scenes, flickr8k"),
    (("features", "scenes", "--images", "lite9:pooled:one"), "lite"),
    (("reproduce", "nowhere"), "no notebook 'nowhere'"),
    (("audit",), "flickr8k is real data"),
    (("html",), "no executed notebooks"),
])
def test_errors_are_one_message_with_a_remedy(run, config, store, monkeypatch, arguments, told):
    monkeypatch.delenv("ITR_DATA", raising=False)
    code, _, error = run(*(a.format(config) for a in arguments))
    assert code == 2 and error.startswith("error: ") and told in error
    assert "Traceback" not in error and "pydantic" not in error


def test_a_file_that_is_no_config_is_named(run, tmp_path):
    for name in ("bad.toml", "bad.json"):
        (tmp_path / name).write_text("{{{")
        code, _, error = run("train", tmp_path / name)
        assert code == 2 and f"{name} cannot be read" in error


def test_data_prints_splits_and_terms(run, store):
    code, told, _ = run("data", "scenes")
    assert code == 0 and "2,000 images" in told and "5 to 5 an image" in told and "terms:" in told


@pytest.mark.notebooks
def test_reproduce_prints_a_table_the_retry_and_the_truth(run, tmp_path, store):
    good = write_notebook(tmp_path / "00_good.ipynb", "assert (k, dataset) == (7, 'scenes')",
                          parameters=COMMON)
    bad = write_notebook(tmp_path / "01_bad.ipynb", "raise RuntimeError(profile)",
                         parameters=COMMON)
    code, told, _ = run("reproduce", good, bad, "-p", "k=7", "--workers", 2)
    assert code == 1 and "01_bad    failed" in told and "RuntimeError: quick" in told
    assert f"Retry just those: itr-study reproduce {bad} --dataset scenes --profile quick" in told
    assert "-p k=7" in told
    code, told, _ = run("reproduce", good, "-p", "k=7", "--yes")
    assert code == 0 and "Retry" not in told
    code, told, _ = run("html", "--folder", tmp_path / "pages")
    assert code == 0 and (tmp_path / "pages" / "scenes" / "00_good.html").is_file()
    assert not (tmp_path / "pages" / "scenes" / "01_bad.html").exists()


@pytest.mark.parametrize(("given", "told"), [
    (("-p", "k=many"), "k must be int, got 'many'"),
    (("-p", "kk=1"), "has no parameter 'kk'"),
    (("-p", "k"), "given as name=value"),
    (("--profile", "fast"), "profile must be one of smoke, quick, full"),
])
def test_reproduce_refuses_before_it_starts(run, tmp_path, store, given, told):
    path = write_notebook(tmp_path / "00_good.ipynb", "1", parameters=COMMON)
    code, _, error = run("reproduce", path, *given)
    assert code == 2 and told in error and not (store / "executed").exists()


def test_doctor_answers(run, store):
    code, told, _ = run("doctor")
    assert code == 0 and "device" in told


def test_a_stopped_training_says_how_to_go_on(run, config, store, monkeypatch):
    from itr_study.cli import commands
    from itr_study.training.interrupts import Interrupted, OutOfMemory

    def stop(error: BaseException):
        def execute(*_, **__):
            raise error
        return execute

    monkeypatch.setattr(commands, "execute", stop(Interrupted("stopped in epoch 1")))
    code, _, error = run("train", config)
    assert code == 130 and "The same command goes on from here" in error
    monkeypatch.setattr(commands, "execute", stop(OutOfMemory("out of memory at batch_size=128")))
    assert run("train", config)[0] == 1


def test_base_configs_are_found_by_name(run, tmp_path, store, monkeypatch):
    from itr_study.studies import bases

    folder = tmp_path / "bases"
    folder.mkdir()
    (folder / "scenes.toml").write_text(
        '[small]\nimages = "detector"\nsentences = "glove-mean"\nmodel = "two_branch"\n'
        'objective = [{loss = "topk", arguments = {k = 2}}]\n')
    monkeypatch.setattr(bases, "BASES", folder)
    from itr_study.cli.commands import read_config

    found = read_config("small", "scenes", ["objective.0.arguments.k=3", "seed=4"])
    assert (found.objective[0].arguments, found.seed) == ({"k": 3}, 4)
    code, _, error = run("train", "big")
    assert code == 2 and "must be one of small" in error


def test_json_of_a_run_is_a_config(config):
    from itr_study.cli.commands import read_config

    assert read_config(str(config), "scenes", []) == SMALL
    assert json.loads(config.read_text())["dataset"] == "scenes"
