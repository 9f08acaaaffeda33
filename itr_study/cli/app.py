"""The command `itr-study`: options and help here, the work in `commands`, loaded when needed."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

EPILOG = "Every make target has its twin here. Errors in full: set ITR_STUDY_DEBUG=1."


class App(typer.Typer):
    """Prints an expected error as one message; a traceback is for errors of the program."""

    def __call__(self, *args, **options):
        try:
            return super().__call__(*args, **options)
        except (ValueError, OSError) as error:
            if os.environ.get("ITR_STUDY_DEBUG"):
                raise
            from itr_study.cli.commands import plain

            print(f"error: {plain(error)}", file=sys.stderr)
            sys.exit(2)


app = App(no_args_is_help=True, add_completion=False, rich_markup_mode=None,
          pretty_exceptions_enable=False, epilog=EPILOG,
          help="Learn, test and compare ranking losses for image-text retrieval.")

Dataset = Annotated[str, typer.Option(help="scenes, flickr8k, flickr30k, coco or folder.")]
Data = Annotated[Path | None, typer.Option(
    help="Folder that holds the data sets, or one of them; default $ITR_DATA.")]
Names = Annotated[list[str] | None, typer.Argument(
    help="Notebooks, such as 03_topk or 03; default all.")]
Changes = Annotated[list[str] | None, typer.Option(
    "--set", help="A change of the config, such as seed=1 or objective.0.arguments.k=3.")]
Config = Annotated[str, typer.Argument(
    help="A TOML or JSON file, or the name of a base config of the data set.")]


@app.command()
def doctor(data: Data = None) -> None:
    """Say which device was chosen and why, versions, room, data and pretrained parts found."""
    from itr_study.cli.doctor import examine, report

    findings = examine(data)
    print(report(findings))
    raise typer.Exit(any(f.state == "broken" for f in findings))


@app.command()
def data(dataset: Annotated[str, typer.Argument(help="Name of a data set.")] = "scenes",
         data: Data = None) -> None:
    """Read a data set with all checks and print what was found."""
    from itr_study.cli import commands

    print(commands.data_report(dataset, data))


@app.command()
def features(
    dataset: Annotated[str, typer.Argument(help="Name of a data set.")] = "scenes",
    data: Data = None,
    images: Annotated[str | None, typer.Option(
        help="Image encoders, such as lite0:pooled:flip or lite0:grid:one+lite2:pooled:ten.")]
    = None,
    tokens: Annotated[str | None, typer.Option(help="words, glove or wordpiece:minilm.")] = None,
    sentences: Annotated[str | None, typer.Option(help="minilm, fisher, or both by +.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Compute frozen features once, with a progress bar; what is there is kept."""
    from itr_study.cli import commands

    print(commands.make_features(dataset, data, images, tokens, sentences, device))


@app.command()
def train(config: Config, dataset: Dataset = "scenes", data: Data = None, changes: Changes = None,
          device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
          save_seconds: Annotated[float, typer.Option(
              min=0, help="Least time between checkpoints.")] = 60.0) -> None:
    """Train one run, or go on with it where it stopped; a finished run is not trained again."""
    from itr_study.cli import commands

    raise typer.Exit(commands.train(config, dataset, data, changes or [], device, save_seconds))


@app.command()
def evaluate(config: Config, dataset: Dataset = "scenes", data: Data = None,
             changes: Changes = None) -> None:
    """Print all measures of a finished run on dev and test."""
    from itr_study.cli import commands

    print(commands.evaluation(config, dataset, data, changes or []))


@app.command()
def search(
    config: Config,
    text: Annotated[str | None, typer.Option(help="A query in words: finds images.")] = None,
    image: Annotated[str | None, typer.Option(
        help="An image id of the test split, or a picture file: finds texts.")] = None,
    top: Annotated[int, typer.Option(min=1, help="How many to print.")] = 10,
    dataset: Dataset = "scenes", data: Data = None, changes: Changes = None,
) -> None:
    """Search the test split of a finished run by a text or by an image."""
    from itr_study.cli import commands

    print(commands.search(config, dataset, data, changes or [], text, image, top))


@app.command()
def reproduce(
    notebooks: Names = None,
    dataset: Dataset = "scenes",
    data: Data = None,
    profile: Annotated[str | None, typer.Option(
        help="smoke, quick or full; default quick on scenes, full on real data.")] = None,
    figures: Annotated[Path | None, typer.Option(help="Folder of figures.")] = None,
    parameter: Annotated[list[str] | None, typer.Option(
        "--parameter", "-p", help="name=value of every chosen notebook.")] = None,
    workers: Annotated[int | None, typer.Option(
        min=1, help="Notebooks at once; default 2 on scenes, 1 on real data.")] = None,
    timeout: Annotated[float | None, typer.Option(help="Minutes a notebook may take.")] = None,
    plan: Annotated[bool, typer.Option(
        "--plan", help="Only say which runs are there and what the others take.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask, however long it takes.")] = False,
) -> None:
    """Execute notebooks headless: every figure, and a true table of how it went."""
    from itr_study.batch.request import Request

    request = Request.make(notebooks or [], dataset, data, profile, figures, parameter or [],
                           workers, timeout)
    if plan:
        print(request.plan())
        return
    if not yes and (hours := request.hours()) > 1:
        typer.confirm(f"{request.plan()}\nThis takes about {hours:.1f} hours. Start?", abort=True)
    raise typer.Exit(request.run())


@app.command()
def html(dataset: Dataset = "scenes",
         folder: Annotated[Path, typer.Option(help="Where the pages go.")] = Path("html")) -> None:
    """Make pages of the notebooks that `reproduce` executed; they need neither Jupyter nor a
    network."""
    from itr_study.cli.pages import render_pages

    print(f"Open {render_pages(dataset, folder).resolve()}")


@app.command()
def audit(rows: Annotated[int, typer.Option(min=1, help="How many to retrain.")] = 2,
          dataset: Dataset = "flickr8k", data: Data = None,
          seed: Annotated[int, typer.Option(help="Of the choice of rows.")] = 0) -> None:
    """Retrain randomly chosen committed rows and compare the numbers."""
    from itr_study.cli import commands

    raise typer.Exit(commands.audit_rows(dataset, data, rows, seed))


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def lab(context: typer.Context, fresh: Annotated[list[str] | None, typer.Option(
        help="A notebook to copy anew, such as 03; your copy is kept beside it.")] = None) -> None:
    """Open JupyterLab at notebook 00, on working copies in my/; further options go to JupyterLab,
    such as --no-browser, --port 8899, --ip 0.0.0.0 or --allow-root."""
    from itr_study.cli.lab import open_lab

    open_lab(context.args, fresh or [])
