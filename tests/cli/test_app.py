"""The commands: what they print, their exit codes, and errors that say what to do."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from shutil import rmtree
from types import SimpleNamespace

import pytest

from itr_study.data import DATASETS
from itr_study.data.base import SPLITS, Problem
from itr_study.evaluation.evaluate import columns
from itr_study.files.atomic import write_json
from itr_study.files.paths import figures_folder, project_root
from itr_study.lab.batch.schedule import Request
from itr_study.lab.cli import commands, lab, search
from itr_study.lab.cli.app import app
from itr_study.lab.cli.chosen import choose, class_names, plain
from itr_study.lab.cli.commands import LEGEND, metric_lines, words_in
from itr_study.lab.runs.config import RunConfig
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.published import Published
from itr_study.lab.runs.run import execute
from itr_study.lab.studies import plans
from itr_study.lab.studies.arms import ArmRun
from itr_study.lab.studies.bases import base_tables
from itr_study.losses import LOSSES, OUTPUT_LOSSES
from itr_study.models import MODELS
from itr_study.relevance import RELEVANCE
from tests.data import tiny
from tests.fakes import make
from tests.small_notebooks import write_notebook
from tests.small_runs import SMALL, photos

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
    for name in ("doctor", "data", "features", "configs", "runs", "train", "evaluate", "search",
                 "reproduce", "cluster", "site", "audit", "audit-captions", "score", "verdict",
                 "compare", "claim", "lab", "student", "test", "bench", "tune"):
        assert f"\n  {name} " in told
    assert "..." not in told.partition("Commands:")[2]  # every sentence whole


def test_data_takes_options_and_says_what_is_worth_knowing(run, tmp_path, store):
    folder = tiny.own_folder(tmp_path)
    tiny.add_line(folder / "captions.csv", "p4.png,Once more,test")  # also of p0.png, in train
    (folder / "images" / "p2.png").write_bytes(b"")
    code, _, error = run("data", "folder", "--data", folder)
    assert code == 2 and "--set data_options.skip_bad=true" in error
    code, told, _ = run("data", "folder", "--data", folder, "--set", "data_options.skip_bad=true")
    assert code == 0 and "left out: 1 x empty picture" in told
    assert "note: 1 x caption in two splits\n    Once more: of train and of test" in told
    code, _, error = run("features", "folder", "--data", folder, "--set", "data_options.skip=true")
    assert code == 2 and "did you mean 'skip_bad'" in error
    code, _, error = run("data", "folder", "--data", folder, "--set", "data_options.skip_bad=no")
    assert code == 2 and "skip_bad of dataset 'folder' must be true or false, got 'no'" in error


def test_data_reads_features_where_a_run_does(run, tmp_path, store):
    """Features beside the JSON of pictures that are not there."""
    make("karpathy", tmp_path)
    make("pooled", tmp_path)
    rmtree(tmp_path / "flickr30k" / "images")
    code, told, _ = run("data", "flickr30k", "--data", tmp_path)
    assert code == 0 and "features with the data" in told
    assert run("configs", "flickr30k", "--data", tmp_path)[0] == 0
    code, _, error = run("features", "flickr30k", "--data", tmp_path, "--images", "lite0:grid:one")
    assert code == 2 and "missing picture" in error


def test_a_new_line_in_a_name_makes_no_line_of_its_own():
    lines = commands.by_kind("note", [Problem("odd name", "a\nb.jpg", "its name\thas two lines")])
    assert lines == ["  note: 1 x odd name", "    a\\nb.jpg: its name\\thas two lines"]


def test_matplotlib_has_a_folder_where_the_users_own_cannot_be_written(run, store, monkeypatch):
    monkeypatch.setenv("MPLCONFIGDIR", "")  # restored at the end
    monkeypatch.delenv("MPLCONFIGDIR")
    assert run("configs")[0] == 0 and "MPLCONFIGDIR" not in os.environ
    monkeypatch.setenv("HOME", str(store / "nowhere"))
    monkeypatch.setenv("USERPROFILE", str(store / "nowhere"))
    assert run("configs")[0] == 0 and os.environ["MPLCONFIGDIR"] == str(store / "matplotlib")


def test_nobody_is_asked_where_standard_input_is_closed(run, store, monkeypatch):
    monkeypatch.setattr(Request, "hours", lambda self: 12.0)
    monkeypatch.setattr(sys, "stdin", None)
    code, plan, error = run("reproduce", "00")
    assert code == 2 and "12.0 hours" in error and "add --yes" in error and "Runs: " in plan
    monkeypatch.setattr(Request, "hours", lambda self: float("nan"))
    assert "this takes an unknown time" in run("reproduce", "00")[2]


@pytest.mark.parametrize("name", ["data", "train", "evaluate", "search", "reproduce", "audit"])
def test_help_has_examples_and_speaks_no_python(run, name):
    _, told, _ = run(name, "--help")
    assert "For example: itr-study" in told
    assert not re.search(r"<\w+|range", told.partition("Options:")[2]), told


def test_train_evaluate_search(run, config, store, monkeypatch):
    """A finished run is not trained again; its tables and its test split can be asked for."""
    code, told, _ = run("train", config)
    assert code == 0 and "done, 2 epochs" in told and "rsum" in told
    assert told.index("i2t_r1 ") < told.index("i2t_r5 ") < told.index("i2t_r10 ")
    (folder,) = (store / "runs").glob("*/manifest.json")
    before = folder.stat().st_mtime_ns
    assert "finished before" not in told and "In percent, but for ranks" in told
    again = run("train", config)
    assert again[0] == 0 and folder.stat().st_mtime_ns == before
    assert "It was finished before; nothing was trained." in again[1]
    code, tables, _ = run("evaluate", config)
    assert code == 0 and tables.strip() in told
    run_id = folder.parent.name
    assert run("evaluate", run_id)[1] == run("evaluate", run_id[:6])[1] == tables
    code, listed, _ = run("runs", "scenes")
    assert code == 0 and re.search(
        rf"^{run_id}  done, scenes, two_branch, detector\+glove-mean, topk\(k=1\), seed 0, "
        "test RSUM", listed, re.M)
    assert run_id not in run("runs", "flickr8k")[1]
    assert "finished before" in run("train", run_id)[1]
    code, hits, _ = run("search", config, "--text", "a red boat", "--top", 3)
    *_, head, first, second, third, searched = hits.splitlines()  # above: whether something fits
    lines = [first, second, third]
    assert code == 0 and head.startswith("rank")
    assert [line.split()[0] for line in lines] == ["1", "2", "3"]
    assert searched == "(10 images, test)"
    image = lines[0].split()[2]
    code, hits, _ = run("search", config, "--image", image, "--top", 50)
    assert code == 0 and hits.count("match") == 5  # each picture has five texts of its own
    questions = f"a red boat\n{image}\n\nnever asked\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO(questions))
    code, hits, _ = run("search", run_id[:6], "--top", 4)
    ranks = [line.split()[0] for line in hits.splitlines() if not line.startswith("whether")]
    assert code == 0 and ranks == ["rank", "1", "2", "3", "4", "(10"] * 2


def test_search_goes_on_after_a_bad_question(monkeypatch, capsys):
    def answer(searcher, text, image, shown):
        if text == "bad":
            raise ValueError("no such word")
        print(f"{text} {image} {shown.top}")

    monkeypatch.setattr(search, "answer", answer)
    monkeypatch.setattr(sys, "stdin", io.StringIO("bad\ngood\nan-id\n\nafter the end\n"))
    search.ask_again(SimpleNamespace(split=SimpleNamespace(image_ids=("an-id",))), search.Shown(1))
    said = capsys.readouterr()
    assert "error: no such word" in said.err and said.out == "good None 1\nNone an-id 1\n"


@pytest.mark.parametrize(("arguments", "told"), [
    (("train", "{}", "--set", "settings.epoch=3"), "did you mean 'epochs'?"),
    (("train", "{}", "--set", "modell=3"), "did you mean 'model'?"),
    (("train", "{}", "--set", "seed"), "--set takes name=value, got 'seed'"),
    (("train", "{}", "--set", "objective.3.weight=1"), "config has no 'objective.3.weight'"),
    (("train", "{}", "--set", "settings.epochs=many"), "settings.epochs must be "),
    (("train", "nowhere.toml"), "no config file nowhere.toml"),
    (("evaluate", "{}"), "is not finished on this machine; train it: itr-study train"),
    (("search", "{}", "--text", "a", "--image", "b"), "--text WORDS or --image"),
    (("train", "{}", "--set", "dataset=coco"), "--set dataset: use --dataset"),
    (("search", "{}"), "; train it: itr-study train CONFIG --dataset scenes"),
    (("train", "{}", "--set", "epoch=2"), "did you mean 'settings.epochs'?"),
    (("train", "{}", "--set", "seed=2", "--set", "seed=3"), "--set gives seed twice"),
    (("train", "{}", "--dataset", "bogus"), "dataset must be one of scenes, flickr8k"),
    (("train", "{}", "--dataset", "flickr8k"), "small.json is for scenes, --dataset says flickr8k"),
    (("train", "{}", "--device", "bogus"), "device must be one of auto, cpu, cuda"),
    (("train", "{}", "--device", "meta"), "device must be one of auto, cpu, cuda"),
    (("train", "{}", "--device", "cuda:99"), "is not here, or torch is not built for it"),
    (("train", "two_brunch"), "did you mean 'two_branch'?"), (("train", "rates"), "base config of"),
    (("train", "0123abc"), "'0123abc' is the id of no finished run"),
    (("configs", "flickr9k"), "did you mean 'flickr8k'?"),
    (("bench", "losess"), "no benchmark 'losess'; there are adapters, batch, captions"),
    (("data", "flickr8k"), "say where it lies with --data"),
    (("data", "flikr8k"), "must be one of scenes, flickr8k"),
    (("features", "scenes", "--images", "lite9:pooled:one"), "lite"),
    (("reproduce", "nowhere"), "no notebook 'nowhere'"),
    (("audit",), "flickr8k is real data"),
])
def test_errors_are_one_message_with_a_remedy(run, config, store, monkeypatch, arguments, told):
    monkeypatch.delenv("ITR_DATA", raising=False)
    code, _, error = run(*(a.format(config) for a in arguments))
    assert code == 2 and error.startswith("error: ") and told in error
    assert "Traceback" not in error and "pydantic" not in error


def test_a_file_that_is_no_config_is_named(run, tmp_path):
    for name, content in (("bad.toml", b"{{{"), ("bad.json", b"{{{"), ("binary.toml", b"\xff\xfe"),
                          ("latin.json", b'{"model": "\xe9"}')):
        (tmp_path / name).write_bytes(content)
        code, _, error = run("train", tmp_path / name)
        assert code == 2 and f"{name} cannot be read" in error
    for name, content, kind in (("list.json", "[1]", "list"), ("null.json", "null", "NoneType")):
        (tmp_path / name).write_text(content)
        code, _, error = run("train", tmp_path / name)
        assert code == 2 and f"{name} must hold a table" in error and f"found {kind}" in error


def test_a_finished_run_does_not_hide_a_wrong_device(run, config, store):
    assert run("train", config)[0] == 0
    code, _, error = run("train", config, "--device", "bogus")
    assert code == 2 and "device must be one of" in error


def test_a_warning_is_one_message_without_a_line_of_code(run, config, store):
    assert run("train", config)[0] == 0
    (weights,) = (store / "runs").glob("*/weights.safetensors")
    weights.write_bytes(weights.read_bytes()[:-9])
    error = run("evaluate", config)[2]
    assert f"warning: run {weights.parent.name}: {weights} is damaged" in error
    assert "UserWarning" not in error and "set_aside(" not in error


def unread(*_arguments, **_named):
    raise AssertionError("the data was read before what was wrong was told")


@pytest.mark.skipif(os.name == "nt", reason="other errors there")
def test_a_home_that_cannot_be_written_names_the_variable(run, config, tmp_path, monkeypatch):
    """Before the data is read; below /proc the system says no more than "No such file"."""
    monkeypatch.setattr(commands, "identify", unread)
    monkeypatch.setattr(commands, "load_dataset", unread)
    (tmp_path / "file").write_text("")
    proc = ["/proc/none"] if Path("/proc").is_dir() else []
    for home in ("file", "x" * 300, *proc):
        monkeypatch.setenv("ITR_STUDY_HOME", str(tmp_path / home))
        for command in (("train", config), ("features", "scenes")):
            code, _, error = run(*command)
            assert code == 2 and error.count("set ITR_STUDY_HOME to a folder you may write") == 1
            assert str(tmp_path / home) in error
    assert "set ITR_STUDY_HOME" in plain(OSError(2, "No such file", str(tmp_path / home / "logs")))
    assert "ITR_STUDY_HOME" not in plain(OSError(2, "gone", str(tmp_path / "elsewhere")))


@pytest.mark.parametrize(("change", "told"), [
    ("model_arguments.size=0", "size must be an integer >= 1, got 0"),
    ("model_arguments.dropout=2", "{'size': 8, 'hidden': 16, 'dropout': 2}: dropout probability"),
    ("model_arguments.dropout=much", "'dropout': 'much'}: "),
    ("sentences=null", "two_branch needs region features and sentence vectors; set sentences=")])
def test_a_model_that_cannot_be_built_is_refused_before_the_data_is_read(
        run, config, change, told, store, monkeypatch):
    monkeypatch.setattr(commands, "identify", unread)
    code, _, error = run("train", config, "--set", change)
    assert code == 2 and "model 'two_branch' cannot be built with model_arguments {" in error
    assert told in error


def test_a_model_that_no_memory_holds_is_refused_before_the_data_is_read(run, config, store,
                                                                         monkeypatch):
    monkeypatch.setattr(commands, "identify", unread)
    code, _, error = run("train", config, "--set", f"model_arguments.size={2 ** 40}")
    assert code == 1 and error.startswith("error: out of memory")


@pytest.mark.parametrize("command", [
    "data", "tune first", "configs", "reproduce 03", "train first", "evaluate first",
    "audit-captions --dataset scenes", "search first --text a",
    "compare --dataset scenes --against hardest"])
def test_a_folder_of_data_needs_the_name_of_its_data_set(run, command):
    code, _, error = run(*command.split(), "--data", "mine")
    assert (code, error) == (2, "error: scenes is generated and takes no folder of data, got mine; "
                             "name the data set that lies there: --dataset folder (own pictures), "
                             "coco, ...\n")


WRONG = [  # arguments, what the error names; "" where nothing is wrong
    (("train", "nosuch"), "'nosuch'"), (("train", "0123abcd"), "'0123abcd'"),
    (("train", "two_branch", "--dataset", "nosuch"), "'nosuch'"),
    (("train", "first", "--set", "epoch=2"), "did you mean 'settings.epochs'"),
    (("train", "first", "--set", "settings.epoch=2"), "did you mean 'epochs'"),
    (("train", "first", "--set", "settings.epochs=many"), "settings.epochs must be "),
    (("train", "first", "--set", "model=vsep"), "did you mean 'vsepp'"),
    (("train", "first", "--set", "objective.0.loss=top_k"), "did you mean 'topk'"),
    (("train", "first", "--set", "objective.0.labels=binery"), "did you mean 'binary'"),
    (("train", "first", "--set", "data_options.trian=2"), "did you mean 'train'"),
    (("train", "first", "--set", "seed"), "--set takes name=value"),
    (("compare", "soft", "--set", "seed=1"), "data_options.skip_bad=true, got seed"),
    (("train", "first", "--device", "cudda"), "did you mean 'cuda'"),
    (("evaluate", "nosuch"), "'nosuch'"), (("search", "no.toml"), "no.toml"),
    (("search", "first", "--text", ""), "holds no word"),
    (("search", "first", "--text", "?!"), "holds no word"),
    (("search", "first", "--text", "a", "--image", "b"), "not both"),
    (("search", "first", "--text", "a", "--save", "a.jpg"), ".png"),
    (("search", "first", "--text", "a", "--split", "tests"), "did you mean 'test'"),
    (("search", "first", "--text", "a", "--pictures", "nowhere"), "no folder nowhere"),
    (("data", "nosuch"), "'nosuch'"),
    (("data", "scenes", "--set", "data_options.trian=2"), "'train'"),
    (("features", "nosuch"), "'nosuch'"), (("features", "scenes", "--device", "gpu"), "'gpu'"),
    (("reproduce", "nosuch"), "'nosuch'"), (("reproduce", "--dataset", "nosuch"), "'nosuch'"),
    (("reproduce", "00", "-p", "profil=quick"), "did you mean 'profile'"),
    (("audit", "--dataset", "nosuch"), "'nosuch'"), (("site", "--dataset", "nosuch"), "'nosuch'"),
    (("configs", "nosuch"), "'nosuch'"), (("runs", "nosuch"), "'nosuch'"),
    (("configs",), ""), (("runs",), "")]
ANSWER = """
import contextlib, io, json, sys
from itr_study.lab.cli.app import app
for arguments in json.load(sys.stdin):
    with contextlib.redirect_stderr(io.StringIO()) as errors, \\
            contextlib.redirect_stdout(io.StringIO()):
        try:
            app(arguments)
        except SystemExit as ended:
            code = ended.code or 0
    print(json.dumps([code, errors.getvalue(), "torch" in sys.modules]))
"""


def test_wrong_names_are_answered_without_torch(store):
    """A typo was answered after ten seconds."""
    done = subprocess.run([sys.executable, "-c", ANSWER], capture_output=True, text=True,
                          input=json.dumps([arguments for arguments, _ in WRONG]), timeout=120)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(WRONG), done.stderr
    assert not [(arguments, *answer) for (arguments, message), answer in zip(
        WRONG, answers, strict=True) if answer[2] or message not in answer[1]
        or (answer[0], "error: " in answer[1]) != ((2, True) if message else (0, False))]


def test_names_read_in_the_source_are_those_of_the_registries():
    for room, registry in (("models", MODELS), ("losses", LOSSES | OUTPUT_LOSSES),
                           ("relevance", RELEVANCE)):
        assert sorted(class_names(room)) == sorted(registry)


def test_every_measure_that_is_printed_is_explained_in_words():
    """`i2t_cs100` meant nothing to who read it."""
    for dataset in DATASETS:
        for split in SPLITS:
            names = columns(dataset, split)
            for name in names:
                assert set(words_in(name)) <= set(LEGEND), f"{name} has words without a meaning"
            lines = metric_lines(dataset, {split: dict.fromkeys(names, 1.0)})
            explained = {line.split()[0] for line in lines[lines.index(next(
                line for line in lines if line.startswith("In percent"))) + 1:]}
            assert explained == {word for name in names for word in words_in(name)}
    assert set(DATASETS["coco"].in_folds) and "1k" in words_in("1k_rsum")
    few = "\n".join(metric_lines("scenes", {"test": {"rsum": 3.0}}))
    assert "rsum  sum of r1" in few and "cs100" not in few and "train" not in few
    tables = {"train": {"rsum": 3.0}}
    assert "train: its first 1,000 images at most" in "\n".join(metric_lines("scenes", tables))
    assert "train: its first 200 images" in "\n".join(metric_lines("scenes", tables, 200.0))


@pytest.mark.evidence
def test_evaluate_prints_a_published_row_where_the_run_is_not_here(run, store, monkeypatch):
    """Neither its data nor its weights are on this machine."""
    monkeypatch.delenv("ITR_DATA", raising=False)
    code, told, _ = run("evaluate", "two_branch", "--dataset", "flickr8k")
    run_id = told.split()[1].rstrip(":")
    assert code == 0 and f"{Published('flickr8k').table.row(run_id)['test_rsum']:.2f}" in told
    assert "This is its published row; only its weights are not on this machine" in told
    assert run("evaluate", run_id)[1] == run("evaluate", run_id[:9])[1] == told
    code, _, error = run("evaluate", run_id, "--dataset", "scenes")
    assert code == 2 and f"run {run_id} is for flickr8k, --dataset says scenes" in error


def test_runs_are_published_by_command(run, store, evidence, monkeypatch):
    """By the first digits of an id, or all of a data set, or those of a notebook."""
    config = photos(monkeypatch)
    first, second = (execute(identify(config.with_(seed=seed), "anywhere"), "anywhere").id
                     for seed in (0, 1))
    code, told, _ = run("runs", first[:9], "--publish", "--ranks")
    assert code == 0 and told.splitlines() == [
        first, f"1 runs published in {evidence}; to keep them: git add evidence"]
    monkeypatch.setitem(plans.PLANS, "03_topk", lambda dataset, profile: [ArmRun("k=1", config)])
    assert "Nothing to publish" in run("runs", "photos", "--publish", "--notebook", "03")[1]
    assert run("runs", "photos", "--publish")[1].startswith(second)
    assert f"2 published rows of photos: {evidence}" in run("runs", "photos")[1]
    assert second not in run("runs", first)[1]
    for wrong, why in ((("--publish",), "--publish needs ids of runs, or a data set"),
                       (("--publish", "--notebook", "03"), "--publish needs ids of runs"),
                       (("--ranks",), "--notebook and --ranks go with --publish"),
                       (("photo", "--publish"), "dataset must be one of"),
                       (("0000", "--publish"), "'0000' is the id of no finished run")):
        code, _, error = run("runs", *wrong)
        assert code == 2 and why in error


def test_runs_says_that_a_damaged_table_is_refused(run, store, evidence):
    """It counted the rows that it could make out, 0 in a table of conflict markers."""
    rows = evidence / "flickr8k" / "runs.csv"
    rows.parent.mkdir(parents=True)
    rows.write_text("run,status\n01,done\n02,done\n")
    assert "2 published rows of flickr8k: " in run("runs")[1]
    for damaged, why in (("<<<<<<< HEAD\n", "no column 'run'"), ("", "not a whole table"),
                         ("run,status\n01,done\n01,done\n", "has runs twice: 01"),
                         ("run,test_rsum\n01,NaN\n", "must be a finite number, found 'NaN'")):
        rows.write_text(damaged)
        code, told, _ = run("runs")
        assert code == 0 and "published rows of flickr8k are refused: " in told
        assert why in told and "restore it: git checkout -- " in told


def test_digits_of_several_runs_are_refused(run, store):
    for run_id in ("ab12" + "0" * 12, "ab13" + "0" * 12):
        write_json(store / "runs" / run_id / "config.json", {})
    code, _, error = run("evaluate", "ab1200")
    assert "digits" not in error  # one run has these
    code, _, error = run("evaluate", "ab1")
    assert code == 2 and "base config of scenes must be one of" in error  # too few for an id
    write_json(store / "runs" / ("ab1200" + "1" * 10) / "config.json", {})
    code, _, error = run("evaluate", "ab12")
    assert code == 2 and "'ab12' is the digits of 2 runs: ab120" in error


def test_configs_are_listed_with_a_sentence_each(run):
    code, told, _ = run("configs", "scenes")
    assert code == 0 and re.search(r"^  two_branch +two branches over fixed", told, re.M)
    assert re.search(r"^  clean_gru .*; learning rates tuned on flickr8k$", told, re.M)
    assert all(table.get("about") for table in base_tables("scenes").values())


def test_every_make_target_has_its_twin(run):
    """So that nobody needs make, which Windows has not."""
    makefile = (project_root() / "Makefile").read_text()
    targets = set(re.search(r"^\.PHONY: (.*)$", makefile, re.M)[1].split())
    twins = {"figures": ("reproduce",), "test": ("test",), "lab": ("lab",), "site": ("site",),
             "test-all": ("test",),
             "check-evidence": ("test",), "bench": ("bench",), "soak": ("bench",)}
    assert targets - {"help", "venv", "clean-venv"} == set(twins)
    for (command,) in twins.values():
        assert run(command, "--help")[0] == 0


def test_tests_and_benchmarks_are_started_as_make_does(monkeypatch):
    called, codes = [], {"ruff": 0, "pytest": 3}

    def call(command, cwd, env=None):
        called.append([*map(str, command[1:])])
        return codes.get(command[-1 if len(command) == 2 else 2], 0)

    monkeypatch.setattr(lab.subprocess, "call", call)
    assert lab.run_tests(["tests/cli"]) == 3
    assert [c[1] for c in called] == ["ruff", "pytest"] and called[1][-1] == "tests/cli"
    codes["pytest"] = 0
    for tier, marks in (("all", ["not slow and not evidence", "slow and not evidence"]),
                        ("evidence", ["evidence"])):
        called.clear()
        assert lab.run_tests([], tier) == 0
        assert [c[-2:] for c in called[1:]] == [[each, "tests"] for each in marks]
    with pytest.raises(ValueError, match="tier must be one of fast, all, evidence; got 'slow'"):
        lab.run_tests([], "slow")
    called.clear()
    assert lab.run_benchmarks([]) == 0
    names = [Path(c[0]).stem for c in called]
    assert "losses" in names and "soak" not in names
    assert lab.run_benchmarks(["soak"]) == 0 and Path(called[-1][0]).stem == "soak"


def test_help_of_lab_speaks_no_python(run):
    assert "--fresh NOTEBOOK" in run("lab", "--help")[1]


def test_data_prints_splits_and_terms(run, store):
    code, told, _ = run("data", "scenes")
    assert code == 0 and "2,000 images" in told and "5 to 5 an image" in told and "terms:" in told
    assert "features with the data: detector, 8 regions of 128 numbers" in told


@pytest.mark.slow
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


@pytest.mark.parametrize(("given", "told"), [
    (("-p", "k=many"), "k must be a valid integer, got 'many'"),
    (("-p", "kk=1"), "parameter of 00_good must be one of profile, dataset, data, k; got 'kk'"),
    (("-p", "k"), "-p takes name=value, got 'k'"),
    (("-p", "k=1", "-p", "k=2"), "-p gives k twice"),
    (("--timeout", "nan"), "--timeout (minutes) must be a finite number"),
    (("--timeout", "-1"), "--timeout (minutes) must be > 0"),
    (("--profile", "fast"), "profile must be one of smoke, quick, full"),
    (("--device", "gpu"), "device must be one of auto, cpu, cuda; got 'gpu'"),
    (("--device", "cuda:99"), "device 'cuda:99' is not here"),
])
def test_reproduce_refuses_before_it_starts(run, tmp_path, store, given, told):
    path = write_notebook(tmp_path / "00_good.ipynb", "1", parameters=COMMON)
    code, _, error = run("reproduce", path, *given)
    assert code == 2 and told in error and not (store / "executed").exists()


def test_reproduce_hands_options_of_the_data_to_the_notebooks(run, tmp_path, store, monkeypatch):
    parameters = COMMON + "\ndata_options: dict[str, bool | int] | None = None  # of the data"
    path = write_notebook(tmp_path / "00_good.ipynb", "1", parameters=parameters)
    asked = []
    monkeypatch.setattr(Request, "run", lambda request: asked.append(request) or 0)
    given = ("--set", "data_options.texts_per_image=2")
    assert run("reproduce", path, *given)[0] == 0
    assert run("reproduce", path, "-p", "data_options={'texts_per_image': 2}")[0] == 0
    for request in asked:
        assert request.parameters["data_options"] == {"texts_per_image": 2}
    assert """-p 'data_options={"texts_per_image": 2}'""" in asked[0].retry([])
    assert run("reproduce", path, "--device", "cpu")[0] == 0
    assert asked.pop().parameters["device"] == "cpu"
    code, _, error = run("reproduce", path, "--set", "data_options.skip=true")
    assert code == 2 and "argument of dataset 'scenes' must be one of" in error
    plain = write_notebook(tmp_path / "01_plain.ipynb", "1", parameters=COMMON)
    code, _, error = run("reproduce", plain, *given)
    assert code == 2 and "parameter of 01_plain must be one of profile, " in error
    assert "got 'data_options'" in error and len(asked) == 2
    assert not asked[0].publish and run("reproduce", path, "--publish")[0] == 0
    assert asked[2].publish and asked[2].parameters["figures"] == str(figures_folder())


def test_doctor_answers(run, store):
    code, told, _ = run("doctor")
    assert code == 0 and "device" in told


def test_a_stopped_training_says_how_to_go_on(run, config, store, monkeypatch):
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
    from itr_study.lab.studies import bases

    folder = tmp_path / "bases"
    folder.mkdir()
    (folder / "settings.toml").write_text(
        '[small]\nimages = "detector"\nsentences = "glove-mean"\nmodel = "two_branch"\n'
        'objective = [{loss = "topk", arguments = {k = 2}}]\n')
    monkeypatch.setattr(bases, "BASES", folder)
    found = choose("small", "scenes", ["objective.0.arguments.k=3", "seed=4"]).values
    assert (found["objective"][0]["arguments"], found["seed"]) == ({"k": 3}, 4)
    code, _, error = run("train", "big")
    assert code == 2 and "must be one of small" in error


def test_json_of_a_run_is_a_config(config):
    assert RunConfig.model_validate(choose(str(config), "scenes").values) == SMALL
    assert json.loads(config.read_text())["dataset"] == "scenes"
