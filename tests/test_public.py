"""The public face: every name is there, none costs anything before it is used, and the README's
lines do what they say."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import typer

import itr_study
from itr_study.batch.declared import find_notebooks
from itr_study.cli.app import app
from itr_study.data import load_dataset
from tests.data.tiny import picture

README = Path(__file__).resolve().parent.parent / "README.md"


@pytest.mark.parametrize("name", itr_study.PUBLIC)
def test_a_public_name_is_the_thing_itself(name):
    found = vars(itr_study)["__getattr__"](name)
    assert found is not None and name in dir(itr_study)
    if hasattr(found, "__module__"):  # of a registry's name the module tells nothing
        assert found.__module__.startswith("itr_study.")


def test_an_unknown_name_is_refused_with_those_there_are():
    with pytest.raises(AttributeError, match="one of DATASETS, .*'fitt'; did you mean 'fit'"):
        itr_study.fitt  # noqa: B018


def test_nothing_heavy_is_loaded_before_a_name_is_asked_for():
    code = "import sys, itr_study; dir(itr_study); assert not {'torch', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_is_shown_to_readers_and_no_other():
    """In the README or in a notebook, written as one uses it: `itr.fit`."""
    texts = [README.read_text(encoding="utf-8")]
    for path in find_notebooks():
        texts += [cell.source for cell in nbformat.read(path, as_version=4).cells]
    shown = {name for text in texts for name in re.findall(r"\bitr\.(\w+)", text)}
    assert set(itr_study.__all__) - shown == set()
    assert shown - set(dir(itr_study)) == set()


def blocks() -> list[str]:
    """The README's blocks of Python."""
    return re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.S | re.M)


def fenced(kind: str) -> int:
    return len(re.findall(rf"^ *```{kind}\b", README.read_text(encoding="utf-8"), re.M))


def ran(block: str) -> dict:
    """What the names of a block mean after it was executed, as a reader would paste it: alone."""
    space: dict = {"__name__": "pasted"}
    exec(block, space)
    return space


def test_the_first_block_of_the_readme_trains_a_model(store):
    space = ran(blocks()[0])
    losses = [row["loss"] for row in space["history"].rows]
    assert losses[-1] < losses[0]
    table = space["itr"].evaluate(space["model"], space["data"].splits["test"]).table
    assert table["rsum"] > 150  # chance with 60 images: 70
    assert space["scores"].shape == (8, 8)


def test_the_second_block_of_the_readme_trains_a_model_and_a_loss_of_ones_own(store):
    space = ran(blocks()[1])
    losses = [row["own_loss"] for row in space["history"].rows]
    assert len(losses) == 4 and losses[-1] < losses[0]
    assert space["table"]["rsum"] > 150
    batch = space["data"].splits["train"].pair_batch(range(4))
    named = re.findall(r"`(\w+)` \((?:I|T)\b", README.read_text(encoding="utf-8"))
    named = [name for name in named if hasattr(batch, name)]
    assert named == ["regions", "region_mask", "tokens", "lengths", "sentences", "match"]


def test_the_settings_of_a_paper_are_had_as_the_readme_says():
    imported, called = re.search(r"`(from \S+presets import preset)`, then\s+`(preset\(.*?\))`",
                                 README.read_text(encoding="utf-8")).groups()
    config = ran(f"{imported}\nconfig = {called}")["config"]
    assert isinstance(config, itr_study.RunConfig)
    assert (config.dataset, config.model, config.images) == ("flickr8k", "dvse", "lite0:grid:one")


def test_no_block_of_the_readme_is_left_out():
    assert len(blocks()) == fenced("python") == 2, "give the new block a test of its own"


def test_the_readme_s_table_of_own_pictures_can_be_read(tmp_path):
    """Its captions.csv, with those pictures and one more of dev, is a data set."""
    (table,) = re.findall(r"^```\n(image,text,split\n.*?)^```", README.read_text(encoding="utf-8"),
                          re.S | re.M)
    folder = tmp_path / "folder"
    for seed, name in enumerate(("beach.jpg", "trips/rome.jpg", "more.png")):
        picture(folder / "images" / name, seed)
    (folder / "captions.csv").write_text(table + "more.png,One of dev,dev\n", encoding="utf-8")
    data = load_dataset("folder", tmp_path, cache=tmp_path / "checks")
    assert data.splits["train"].texts == ("A dog runs along the beach",
                                          "Two people, a dog and the sea")
    assert data.splits["test"].image_ids == ("trips/rome.jpg",)


def test_the_readme_s_commands_have_these_options():
    """Every `itr-study` line of the README is understood; none is executed."""
    command = typer.main.get_command(app)
    lines = re.findall(r"^itr-study (.*)$", README.read_text(encoding="utf-8"), re.M)
    assert len(lines) >= 7
    for line in lines:
        name, *arguments = shlex.split(line, comments=True)
        command.commands[name].make_context(name, arguments)  # raises for an unknown option
