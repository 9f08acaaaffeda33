"""Options that several commands of `itr-study` have."""

from pathlib import Path
from typing import Annotated

import typer

Dataset = Annotated[str, typer.Option(
    metavar="NAME", help="scenes, flickr8k, flickr30k, coco, cub or folder.")]
OfRun = Annotated[str | None, typer.Option(
    "--dataset", metavar="NAME",
    help="scenes, flickr8k, flickr30k, coco, cub or folder; default what CONFIG has, else scenes.")]
Data = Annotated[Path | None, typer.Option(
    metavar="FOLDER", help="Folder that holds flickr8k/, coco/, folder/ ..., or one of these; "
    "default $ITR_DATA.")]
Names = Annotated[list[str] | None, typer.Argument(
    metavar="NOTEBOOK", help="Notebooks, such as 03_topk or 03; default all.")]
Changes = Annotated[list[str] | None, typer.Option(
    "--set", metavar="NAME=VALUE",
    help="A change of the config, such as seed=1 or objective.0.arguments.k=3.")]
DataChanges = Annotated[list[str] | None, typer.Option(
    "--set", metavar="NAME=VALUE",
    help="An option of the data, such as data_options.skip_bad=true.")]
Config = Annotated[str, typer.Argument(
    metavar="CONFIG", help="A base config (see: itr-study configs), a paper's settings such as "
    "paper:topk, a TOML or JSON file, or the id of a run (see: itr-study runs).")]
Device = Annotated[str, typer.Option(
    metavar="NAME", help="auto, cpu, cuda or one card, such as cuda:1.")]
SetOfData = Annotated[str, typer.Argument(metavar="DATASET", help="Name of a data set.")]
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
    metavar="FOLDER", help="Other pictures, without texts, to search instead of the data.")]
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
    metavar="NAME", help="smoke, quick or full; in 03, 05, 06 and 07 also paper: quick, and as the "
    "papers train; default quick on scenes, full on real data.")]
Plan = Annotated[bool, typer.Option(
    "--plan", help="Only say which runs are there and what the others take.")]
Ids = Annotated[Path | None, typer.Option(
    metavar="FILE", help="A CSV file, a line a text: column image, the image it describes.")]
Graded = Annotated[Path | None, typer.Option(
    metavar="FILE", help="A .npy file: graded relevance (images, texts), 0 to 1.")]
Metric = Annotated[str | None, typer.Option(
    metavar="NAME", help="The metric that decides; default rsum, or the main score of MTEB.")]
Page = Annotated[Path | None, typer.Option(metavar="FILE", help="Write an HTML page.")]
Card = Annotated[Path | None, typer.Option(
    metavar="FILE", help="Write a model card (Markdown with model-index).")]
Latex = Annotated[Path | None, typer.Option(metavar="FILE", help="Write a LaTeX table (booktabs).")]
Drawn = Annotated[list[Path] | None, typer.Option(
    metavar="FILE", help="Draw the differences: .svg, .pdf or .png.")]
