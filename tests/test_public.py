"""The public face: every name is there, none costs anything before it is used, and what README and
docs/ print can be executed."""

import ast
import re
import shlex
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import typer

import itr_study
from itr_study.data import load_dataset
from itr_study.lab.batch.declared import find_notebooks
from itr_study.lab.cli.app import app
from tests.data.tiny import picture
from tests.tiny_clip import save_tiny_clip

ROOT = Path(__file__).resolve().parent.parent
PAGES = {path.stem: path.read_text(encoding="utf-8")
         for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))}
BLOCKS = [pytest.param(block, id=f"{name}-{place}") for name, page in PAGES.items()
          for place, block in enumerate(re.findall(r"^```python\n(.*?)^```", page, re.S | re.M))]


@pytest.mark.parametrize("name", itr_study.PUBLIC)
def test_a_public_name_is_the_thing_itself(name):
    found = vars(itr_study)["__getattr__"](name)
    assert found is not None and name in dir(itr_study)
    if hasattr(found, "__module__"):  # of a registry's name the module tells nothing
        assert found.__module__.startswith("itr_study.")


def test_packages_are_attributes_that_give_their_classes_and_functions():
    """Without imports of their own, in a fresh interpreter."""
    parts = {"adapters": "contrastive", "data": "RetrievalDataset", "encoders": "word_vectors",
             "explorers": "PushPull", "losses": "TopKLoss", "metrics": "ndcg",
             "models": "TwoBranch", "plots": "learning_curves", "relevance": "Sentence",
             "rerank": "fast"}
    assert tuple(parts) == itr_study.PACKAGES and set(parts) <= set(dir(itr_study))
    used = " and ".join(f"callable(itr.{package}.{part})" for package, part in parts.items())
    subprocess.run([sys.executable, "-c", f"import itr_study as itr; assert {used}"], check=True)


def test_an_unknown_name_is_refused_with_those_there_are():
    with pytest.raises(AttributeError, match="one of DATASETS, .*'fitt'; did you mean 'fit'"):
        itr_study.fitt  # noqa: B018


def test_nothing_heavy_is_loaded_before_a_name_is_asked_for():
    code = "import sys, itr_study; dir(itr_study); assert not {'torch', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_is_shown_to_readers_and_no_other():
    """In README, docs or a notebook, written as one uses it: `itr.fit`."""
    texts = list(PAGES.values())
    for path in find_notebooks():
        texts += [cell.source for cell in nbformat.read(path, as_version=4).cells]
    shown = {name for text in texts for name in re.findall(r"\bitr\.(\w+)", text)}
    assert set(itr_study.__all__) - shown == set()
    assert shown - set(dir(itr_study)) == set()


def ran(block: str) -> dict:
    """What the names of a block mean after it was executed, as a reader would paste it: alone."""
    space: dict = {"__name__": "pasted"}
    exec(block, space)
    return space


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_of_python_runs_alone(block, store, capsys):
    """What it trains learns; what it prints is what the page prints behind it."""
    if "clip:my-clip" in block:
        save_tiny_clip(store / "weights" / "my-clip")
    space = ran(block)
    if "history" in space:
        losses = [row.get("own_loss", row.get("loss")) for row in space["history"].rows]
        assert losses[-1] < losses[0] and space["table"]["rsum"] > 150  # chance of 60 images: 70
    if "values" in space:
        assert sum(space["values"][-10:]) < 0.8 * sum(space["values"][:10])
    if "reranked" in space:
        assert space["reranked"].shape == space["scores"].shape == (8, 8)
    if printed := capsys.readouterr().out:
        told, shown = (ast.literal_eval(text) for text in (
            printed, PAGES["README"].split(block + "```")[1].split("```")[1]))
        assert told == pytest.approx(shown, abs=8)  # processors differ, and a seed as much


def test_what_the_docs_say_of_a_batch_is_there():
    from itr_study.data.batches import Batch

    table = re.findall(r"^\| (`.*?) \| \(", PAGES["your-own-loss-or-model"], re.M)
    named = re.findall(r"`(\w+)`", " ".join(table))
    assert set(named) == {"regions", "region_mask", "tokens", "lengths", "sentences", "match"}
    assert all(hasattr(Batch, name) or name in Batch.__dataclass_fields__ for name in named)


def test_the_settings_of_a_paper_are_had_as_the_docs_say():
    imported, called = re.search(r"`(from \S+presets import preset)`, then\s+`(preset\(.*?\))`",
                                 PAGES["your-own-loss-or-model"]).groups()
    config = ran(f"{imported}\nconfig = {called}")["config"]
    assert isinstance(config, itr_study.RunConfig)
    assert (config.dataset, config.model, config.images) == ("flickr8k", "dvse", "lite0:grid:one")


def test_the_table_of_own_pictures_can_be_read(tmp_path):
    """Its captions.csv, with those pictures and one more of dev, is a data set."""
    (table,) = re.findall(r"^```\n(image,text,split\n.*?)^```", PAGES["your-own-data"], re.S | re.M)
    folder = tmp_path / "folder"
    for seed, name in enumerate(("beach.jpg", "trips/rome.jpg", "more.png")):
        picture(folder / "images" / name, seed)
    (folder / "captions.csv").write_text(table + "more.png,One of dev,dev\n", encoding="utf-8")
    data = load_dataset("folder", tmp_path, cache=tmp_path / "checks")
    assert data.splits["train"].texts == ("A dog runs along the beach",
                                          "Two people, a dog and the sea")
    assert data.splits["test"].image_ids == ("trips/rome.jpg",)


def test_every_printed_command_has_these_options():
    """Every `itr-study` line is understood; none is executed."""
    command = typer.main.get_command(app)
    pages = "\n".join(PAGES.values()).replace("\\\n", " ")  # lines that go on
    lines = re.findall(r"^itr-study (.*)$", pages, re.M)
    assert len(lines) >= 20
    for line in lines:
        name, *arguments = shlex.split(line, comments=True)
        command.commands[name].make_context(name, arguments)  # raises for an unknown option


def test_the_readme_is_short():
    assert PAGES["README"].count("\n") <= 130
