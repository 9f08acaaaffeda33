"""Arguments and options that several commands share, in words, and the checks of their names."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from itr_study.cli.chosen import Chosen

Dataset = Annotated[str, typer.Option(
    metavar="NAME", help="scenes, flickr8k, flickr30k, coco, cub or folder.")]
OfRun = Annotated[str | None, typer.Option(
    "--dataset", metavar="NAME",
    help="scenes, flickr8k, flickr30k, coco, cub or folder; default what CONFIG has, else scenes.")]
Data = Annotated[Path | None, typer.Option(
    metavar="FOLDER", help="Folder that holds the data sets, or one of them; default $ITR_DATA.")]
Names = Annotated[list[str] | None, typer.Argument(
    metavar="NOTEBOOK", help="Notebooks, such as 03_topk or 03; default all.")]
Changes = Annotated[list[str] | None, typer.Option(
    "--set", metavar="NAME=VALUE",
    help="A change of the config, such as seed=1 or objective.0.arguments.k=3.")]
DataChanges = Annotated[list[str] | None, typer.Option(
    "--set", metavar="NAME=VALUE",
    help="An option of the data, such as data_options.skip_bad=true.")]
Config = Annotated[str, typer.Argument(
    metavar="CONFIG", help="A base config (see: itr-study configs), a TOML or JSON file, or the id "
    "of a run (see: itr-study runs).")]
Device = Annotated[str, typer.Option(
    metavar="NAME", help="auto, cpu, cuda or one card, such as cuda:1.")]
SetOfData = Annotated[str, typer.Argument(metavar="DATASET", help="Name of a data set.")]
MaybeDataset = Annotated[str | None, typer.Argument(
    metavar="DATASET", help="Name of a data set; default all.")]
Runs = Annotated[list[str] | None, typer.Argument(
    metavar="NAME", help="Data sets, and ids of runs, whole or their first digits; default all.")]
Publish = Annotated[bool, typer.Option(
    "--publish", help="Add these runs, if they are finished here, to evidence/, which git keeps.")]
OfNotebook = Annotated[list[str] | None, typer.Option(
    "--notebook", metavar="NOTEBOOK",
    help="With --publish: of a data set only the runs of this notebook.")]
WithRanks = Annotated[bool, typer.Option(
    "--ranks", help="With --publish: also the rank of every query, about 25 kB a run.")]
Pictures = Annotated[Path | None, typer.Option(
    metavar="FOLDER", help="Other pictures, without texts, to search in the data's place.")]
Split = Annotated[str | None, typer.Option(
    metavar="NAME",
    help="train, dev, test or all; default test, of your own pictures (folder) all.")]
Image = Annotated[str | None, typer.Option(
    metavar="ID-OR-FILE", help="An image id of the split, or a picture file: finds texts.")]
Figures = Annotated[Path | None, typer.Option(
    metavar="FOLDER", help="Folder of all figures; default figures/scenes and my/figures.")]
Timeout = Annotated[float | None, typer.Option(
    metavar="MINUTES", help="Minutes a notebook may take.")]
Profile = Annotated[str | None, typer.Option(
    metavar="NAME", help="smoke, quick or full; default quick on scenes, full on real data.")]


DEVICES = ("auto", "cpu", "cuda")  # named in messages; others of torch may be asked for too
OTHER_DEVICES = ("mps", "xpu")


def example(*commands: str) -> str:
    """The end of a help text."""
    return "For example: " + "; or ".join(f"itr-study {command}" for command in commands)


# What follows refuses what a user typed before torch is loaded, which takes seconds.

def check_name(dataset: str, changes: Sequence[str] | None = None) -> None:
    """Refuse an unknown data set, or a --set that is no option of it."""
    from itr_study.cli.chosen import check_dataset

    check_dataset(dataset, changes or ())


def check_runs(names: Sequence[str]) -> None:
    """Refuse a name that is neither a data set nor like the id of a run."""
    from itr_study.cli.chosen import RUN_ID

    for name in names:
        if not RUN_ID.fullmatch(name):
            check_name(name)


def data_parameter(changes: Sequence[str] | None) -> list[str]:
    """The options of the data as the one parameter of a notebook that takes them."""
    from itr_study.cli.chosen import data_options

    return [f"data_options={json.dumps(data_options(changes))}"] if changes else []


def choose_config(config: str, dataset: str | None, changes: Sequence[str] | None) -> "Chosen":
    """Find what CONFIG, --dataset and --set mean; refuse a name that there is not."""
    from itr_study.cli.chosen import choose

    return choose(config, dataset, changes or ())


def check_device(name: str) -> None:
    """Refuse a device that is none; whether this machine has it is for torch to say."""
    if name.partition(":")[0] not in DEVICES + OTHER_DEVICES:
        from itr_study.checks import not_among

        raise ValueError(not_among("device", name, DEVICES))


def check_question(text: str | None, image: str | None, save: Path | None, split: str | None,
                   pictures: Path | None) -> None:
    """Refuse options of `search` that do not go together, an empty query, an unknown split, a
    picture that is no .png, a folder that is not there."""
    from itr_study.checks import check_choice
    from itr_study.data.base import SPLITS
    from itr_study.data.vocabulary import check_query

    if text is not None and image is not None:
        raise ValueError("search takes --text WORDS or --image ID-OR-FILE, not both; without "
                         "either it asks again and again")
    if text is not None:
        check_query(text)
    if save is not None and save.suffix.lower() != ".png":
        raise ValueError(f"--save takes a .png file, got {save}")
    if split is not None:
        check_choice("split to search", split, (*SPLITS, "all"))
    if pictures is not None and split is not None:
        raise ValueError("--pictures has no splits; leave --split out")
    if pictures is not None and not pictures.is_dir():
        raise ValueError(f"--pictures: there is no folder {pictures}")
