"""Arguments and options that several commands share, in words, and the checks of their names."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from itr_study.cli.chosen import Chosen

Dataset = Annotated[str, typer.Option(
    metavar="NAME", help="scenes, flickr8k, flickr30k, coco or folder.")]
OfRun = Annotated[str | None, typer.Option(
    "--dataset", metavar="NAME",
    help="scenes, flickr8k, flickr30k, coco or folder; default what CONFIG says, else scenes.")]
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
Device = Annotated[str, typer.Option(metavar="NAME", help="auto, cpu or cuda.")]
SetOfData = Annotated[str, typer.Argument(metavar="DATASET", help="Name of a data set.")]


def example(*commands: str) -> str:
    """The end of a help text."""
    return "For example: " + "; or ".join(f"itr-study {command}" for command in commands)

def check_name(dataset: str) -> None:
    """Refuse an unknown data set before torch is loaded."""
    from itr_study.cli.chosen import check_dataset

    check_dataset(dataset)


def choose_config(config: str, dataset: str | None) -> "Chosen":
    """Find what CONFIG means before torch is loaded."""
    from itr_study.cli.chosen import choose

    return choose(config, dataset)
