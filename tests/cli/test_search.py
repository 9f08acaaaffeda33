"""Own pictures end to end: from images/ and captions.csv to a picture of what was found. What
nobody can know is said."""

import csv
from io import BytesIO, TextIOWrapper
from shutil import copytree
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from itr_study.data import load_dataset
from itr_study.data.base import DataReport
from itr_study.encoders import IMAGE_ENCODERS
from itr_study.evaluation.search import Hits
from itr_study.lab.cli import search
from itr_study.lab.studies.bases import base
from itr_study.metrics.answers import Level
from tests.cli.test_app import run  # noqa: F401
from tests.features.test_dataset import Tiny
from tests.posix import posix_only

CHEAP = ("--set", "images=tiny:pooled:one", "--set", "sentences=glove-mean",
         "--set", "settings.epochs=2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Twenty pictures of scenes with their captions, and no splits."""
    root = tmp_path_factory.mktemp("mine") / "folder"
    (root / "images").mkdir(parents=True)
    scenes = load_dataset("scenes", train=20, dev=1, test=1, texts_per_image=2)
    split = scenes.splits["train"]
    for image in split.image_ids:
        scenes.open_image(image).save(root / "images" / f"{image}.png")
    with open(root / "captions.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["image", "text"])
        writer.writerows((f"{split.image_ids[i]}.png", text)
                         for i, text in zip(split.image_of_text, split.texts, strict=True))
    return root


@pytest.fixture
def trained(run, folder, store, monkeypatch):  # noqa: F811
    """Runs a command on a finished run of the folder."""
    monkeypatch.setitem(IMAGE_ENCODERS, "tiny", Tiny)
    own = ("first", "--dataset", "folder", "--data", folder, *CHEAP)
    code, _, errors = run("train", *own)
    assert code == 0, errors
    assert "warning: test has 2 images: R@10 is 100 % by chance" in errors
    return lambda command, *arguments: run(command, *own, *arguments)


def test_all_own_pictures_are_searched(trained, tmp_path, monkeypatch):
    monkeypatch.setattr(search.Searcher, "level", Level(np.inf, 0.5, 0.0, 8))
    code, found, _ = trained("search", "--text", "a red boat", "--top", 50)
    lines = found.splitlines()
    assert code == 0 and len(lines) == 23 and lines[-1] == "(20 images, all)"
    assert lines[0] == ("nothing here can be said to fit: at no score do half of the answers hold "
                        "(tried with 8 captions of dev)")
    assert {line.split()[2] for line in lines[2:-1]} == {
        f"scene-{n:06}.png" for n in range(20)}
    assert trained("search", "--text", "a red boat", "--split", "test")[1].count("scene-") == 2
    code, _, error = trained("search", "--text", "a red boat", "--split", "tests")
    assert code == 2 and "split to search must be one of train, dev, test, all" in error
    code, found, _ = trained("search", "--image", "scene-000003.png", "--top", 40)
    assert code == 0 and found.count(" match ") == 2  # its own two texts


def test_new_pictures_without_captions_are_searched(trained, folder, tmp_path):
    others = tmp_path / "others"
    (others / "deep").mkdir(parents=True)
    for name, colour in (("red.png", "red"), ("deep/blue.jpg", "blue")):
        Image.new("RGB", (32, 32), colour).save(others / name)
    (others / "broken.png").write_bytes(b"")
    Image.fromarray(np.full((32, 32), 4095, np.uint16)).save(others / "dim.png")
    code, found, told = trained("search", "--text", "a red boat", "--pictures", others)
    lines = found.splitlines()
    assert code == 0 and lines[-1] == "(3 images, pictures; 1 left out, which cannot be read)"
    assert {line.split()[2] for line in lines[-4:-1]} == {"red.png", "deep/blue.jpg", "dim.png"}
    assert f"note: {others / 'dim.png'}: no value of its 16-bit channels reaches a quarter" in told
    code, found, _ = trained("search", "--image", others / "red.png", "--top", 3)
    assert code == 0 and found.count("scene-") == 3
    for arguments, message in (
            (("--image", "red.png", "--pictures", others), "pictures has no texts to find"),
            (("--text", "a", "--pictures", others, "--split", "test"), "leave --split out"),
            (("--text", "a", "--pictures", others / "none"), "there is no folder")):
        code, _, error = trained("search", *arguments)
        assert code == 2 and message in error


def test_unknown_words_are_said_and_an_empty_query_is_refused(trained, run):  # noqa: F811
    found = trained("search", "--text", "a red zzxqw and a QWRTZ zzxqw")[1]
    assert "not known to the model, which cannot read it: zzxqw, qwrtz\n" in found
    assert "the model knows no word of it (qwrtz): this order means nothing\n" in trained(
        "search", "--text", "Qwrtz!")[1]
    found = trained("search", "--text", "a red boat")[1]
    assert "known to the model" not in found and "the model knows" not in found
    for empty in ("", "  ", "?!"):
        code, _, error = trained("search", "--text", empty)
        assert code == 2 and "holds no word" in error
        code, _, error = run("search", "first", "--text", empty)  # before any run is looked for
        assert code == 2 and "holds no word" in error


def test_what_was_found_is_a_picture(trained, folder, store, tmp_path, monkeypatch):
    target = tmp_path / "new" / "found.png"
    code, found, _ = trained("search", "--text", "a red boat", "--save", target)
    assert code == 0 and f"picture: {target}" in found
    width, height = Image.open(target).size
    assert width > height > 600
    notes, draw = [], search.answer_grid
    monkeypatch.setattr(search, "answer_grid",
                        lambda *given: notes.append(given[-1]) or draw(*given))
    monkeypatch.setattr(Hits, "refusal", "nothing here fits")
    for text in ("a red boat", "stone owl clouds"):
        refused = "nothing here fits" in trained("search", "--text", text, "--save", target)[1]
        assert notes[-1].startswith("nothing here fits · ") == refused
    assert refused
    image = folder / "images" / "scene-000004.png"
    for query in (image, image.name):
        target.unlink()
        assert trained("search", "--image", query, "--top", 3, "--save", target)[0] == 0
        assert Image.open(target).width > 600
    code, _, error = trained("search", "--text", "a", "--save", tmp_path / "found.jpg")
    assert code == 2 and "--save takes a .png file" in error
    opened = []
    monkeypatch.setattr(search, "opened", lambda path: opened.append(path) or False)
    found = trained("search", "--text", "a red boat", "--open")[1]
    assert opened == [store / "search.png"] and (store / "search.png").is_file()
    assert "no program to open it was found here" in found


def typed(monkeypatch, lines):
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(lines), encoding="utf-8"))


def test_whatever_is_typed_at_the_prompt_is_answered(trained, folder, tmp_path, monkeypatch):
    """A text longer than a name may be, bytes of another encoding, a name of a file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "boat").write_text("no picture")
    (tmp_path / "cut.png").write_bytes((folder / "images/scene-000001.png").read_bytes()[:-40])
    own = folder / "images" / "scene-000002.png"
    typed(monkeypatch, "\n".join(["a red boat " * 300, "boat", "cut.png", "x\0y"]).encode()
          + b"\nun caf\xe9 rouge\n" + f"{own}\n{own.name}\n".encode())
    code, found, told = trained("search", "--top", 1)
    assert code == 0 and found.count("(20 images, all)") == 5
    assert "note: the file boat is no picture of a format that is read: JPEG, PNG" in told
    assert "error: the picture cut.png cannot be read: " in told
    assert "it holds bytes that are not UTF-8" in told


@pytest.mark.parametrize("typed", ["{}", "'{}'", '"{}"', "~/my dog 1.png", "my\\ dog\\ 1.png"])
def test_a_file_may_be_named_as_a_terminal_pastes_it(tmp_path, monkeypatch, typed):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    Image.new("RGB", (8, 9)).save("my dog 1.png")
    assert search.picture_at(typed.format(tmp_path / "my dog 1.png")).size == (8, 9)
    assert search.picture_at("'a dog'") is search.picture_at("~" + "x" * 5000) is None


def test_without_standard_input_nothing_is_prompted_for(trained, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    code, _, error = trained("search")
    assert code == 2 and "standard input is closed" in error and "--text WORDS" in error
    assert trained("search", "--text", "a boat")[0] == 0


@pytest.mark.parametrize("image, said", [
    ("nowhere" * 50, "is neither a picture file nor an image of the all split"),
    ("photo.HEIC", "note: the file photo.HEIC is no picture of a format that is read: JPEG"),
    ("cut.webp", "error: the picture cut.webp cannot be read: ")])
def test_an_image_that_cannot_be_read_is_named(trained, tmp_path, monkeypatch, image, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photo.HEIC").write_bytes(b"\0\0\0\x18ftypheic")
    Image.effect_noise((64, 64), 50).save(tmp_path / "cut.webp")
    (tmp_path / "cut.webp").write_bytes((tmp_path / "cut.webp").read_bytes()[:200])
    code, _, told = trained("search", "--image", image)
    assert code == 2 and said in told


def test_what_was_computed_is_printed_before_it_is_drawn(trained, tmp_path, monkeypatch):
    def failing(*_):
        raise ValueError("this cannot be drawn")

    monkeypatch.setattr(search, "drawn", failing)
    code, found, told = trained("search", "--text", "a boat", "--save", tmp_path / "x.png")
    assert code == 2 and "(20 images, all)" in found and "cannot be drawn" in told
    (tmp_path / "file").write_text("")
    code, found, told = trained("search", "--text", "a boat", "--save", tmp_path / "file" / "x.png")
    assert code == 2 and not found and f"{tmp_path / 'file'} cannot be written" in told


@pytest.fixture
def grown(trained, folder, tmp_path):
    """The folder with one more picture than a run of it was trained on."""
    root = copytree(folder, tmp_path / "folder")
    Image.new("RGB", (32, 32), "red").save(root / "images" / "new.png")
    with open(root / "captions.csv", "a", encoding="utf-8") as file:
        file.write("new.png,a red square\n")
    return root


def test_a_run_is_found_when_its_data_moved_on(run, trained, grown, store):  # noqa: F811
    (run_id,) = (path.parent.name for path in (store / "runs").glob("*/manifest.json"))
    own = ("first", "--dataset", "folder", "--data", grown, *CHEAP)
    for command in (("search", *own, "--text", "a boat"), ("evaluate", *own)):
        code, _, told = run(*command)
        assert code == 2 and f"run {run_id} was trained when folder held 20 images" in told
        assert "it holds 21 now" in told
        assert "Train again" in told and f"itr-study search {run_id}" in told
    code, found, told = run("search", run_id[:7], "--data", grown, "--text", "a boat")
    assert code == 0 and "(21 images, all)" in found and "it is searched as it is" in told
    later = run("train", *own)[1].split()[1]
    again = copytree(grown, grown.parent / "again")
    (again / "captions.csv").write_text((again / "captions.csv").read_text() + "new.png,A ball\n")
    told = run("search", *own[:3], "--data", again, *CHEAP, "--text", "a boat")[2]
    assert f"run {later} was trained" in told and "--data: " in told
    code, _, told = run("search", *own[:5], "--text", "a boat")  # another config
    assert code == 2 and "is not finished on this machine; train it: itr-study train first" in told


def test_words_learnt_from_former_captions_are_not_read_from_others(run, trained, grown, folder,  # noqa: F811
                                                                    store):
    learnt = ("vsepp+gru", "--dataset", "folder", "--set", "images=tiny:pooled:one",
              "--set", "settings.epochs=1", "--set", "settings.warmup_epochs=0",
              "--set", "warmup_objective=[]")
    code, told, error = run("train", *learnt, "--data", folder)
    assert code == 0, error
    run_id = told.split()[1]
    assert run("search", run_id, "--data", folder, "--text", "a boat")[0] == 0
    code, _, error = run("search", run_id, "--data", grown, "--text", "a boat")
    assert code == 2 and f"run {run_id} learnt the words of the captions" in error


def test_captions_that_are_not_read_are_counted(run, tmp_path, store, monkeypatch):  # noqa: F811
    monkeypatch.setitem(IMAGE_ENCODERS, "tiny", Tiny)
    folder = tmp_path / "folder"
    (folder / "images").mkdir(parents=True)
    texts = ["中国 一", "厨房", "蝴蝶 a", "so " * 300, "a boat"] * 4
    for n in range(20):
        Image.new("RGB", (32, 32), (12 * n, 0, 0)).save(folder / "images" / f"{n}.png")
    (folder / "captions.csv").write_text("image,text\n" + "".join(
        f"{n}.png,{text}\n" for n, text in enumerate(texts)), encoding="utf-8")
    code, told, _ = run("data", "folder", "--data", folder)
    assert code == 0 and "4 of 20 captions hold no word that minilm knows, such as '厨房'" in told
    assert "4 of 20 captions are cut at 256 pieces of words: minilm does not read" in told
    _, _, told = run("train", "first", "--dataset", "folder", "--data", folder, *CHEAP)
    assert "4 of 20 captions hold no word that the model knows" in told and "cut at" not in told


def test_one_image_is_not_said_to_be_several():
    alone = SimpleNamespace(split=SimpleNamespace(image_ids=["a"], name="test"),
                            dataset=SimpleNamespace(report=DataReport()))
    assert search.searched(alone) == "1 image, test"


@posix_only
@pytest.mark.parametrize("does, shown", [
    ("exit 0", True), ("exec sleep 0.5", True), ("echo no method >&2; exit 3", False),
    (None, False)], ids=["it ended well", "it still runs", "it knows no viewer", "there is none"])
def test_an_opener_that_finds_no_viewer_is_found_out(tmp_path, monkeypatch, capfd, does, shown):
    """It starts as well as any; only its end tells, and its own words help nobody."""
    if does is not None:
        for name in ("xdg-open", "open"):
            (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
            (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin" if does else str(tmp_path))
    monkeypatch.setattr(search, "SECONDS_TO_FAIL", 0.2 if "sleep" in str(does) else 30)
    assert search.opened(tmp_path / "found.png") is shown
    assert capfd.readouterr() == ("", "")


def test_data_warns_of_splits_that_mean_nothing(run, folder):  # noqa: F811
    code, found, _ = run("data", "folder", "--data", folder)
    assert code == 0 and "warning: dev has" in found and "moves R@K by" in found
    assert "train_" not in found  # the counts of a split stand once, in its line


@pytest.mark.parametrize(("dataset", "names"), [
    ("folder", ("first", "words")),
    ("flickr30k", ("two_branch", "two_branch+sentence", "vsepp+gru")),
    ("coco", ("two_branch", "two_branch+sentence", "vsepp+gru")),
    ("cub", ("two_branch", "vsepp+gru")),
])
def test_every_data_set_has_base_configs(dataset, names):
    for name in names:
        assert base(dataset, name).dataset == dataset
    with pytest.raises(ValueError, match=f"base config of {dataset} must be one of two_branch"):
        base(dataset, "nosuch")
