"""The command `itr-study`: options and help here, the work in `commands`, loaded when needed."""

import json
import os
import sys
import warnings
from collections.abc import Sequence
from errno import EACCES, EEXIST, ENAMETOOLONG, ENOTDIR, EPERM, EROFS
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from itr_study.files.paths import HOME_REMEDY, home

# Arguments and options that several commands share, in words, and the checks of their names.

if TYPE_CHECKING:
    from itr_study.lab.cli.chosen import Chosen

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
    from itr_study.lab.cli.chosen import check_dataset

    check_dataset(dataset, changes or ())


def check_runs(names: Sequence[str]) -> None:
    """Refuse a name that is neither a data set nor like the id of a run."""
    from itr_study.lab.cli.chosen import RUN_ID

    for name in names:
        if not RUN_ID.fullmatch(name):
            check_name(name)


def data_parameter(changes: Sequence[str] | None) -> list[str]:
    """The options of the data as the one parameter of a notebook that takes them."""
    from itr_study.lab.cli.chosen import data_options

    return [f"data_options={json.dumps(data_options(changes))}"] if changes else []


def choose_config(config: str, dataset: str | None, changes: Sequence[str] | None) -> "Chosen":
    """Find what CONFIG, --dataset and --set mean; refuse a name that there is not."""
    from itr_study.lab.cli.chosen import choose

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


# Errors and warnings in the words of who uses the command. Loads nothing heavy.

NOT_WRITABLE = (EACCES, EEXIST, ENAMETOOLONG, ENOTDIR, EPERM, EROFS)


class App(typer.Typer):
    """Prints an expected error as one message, and so a warning; a traceback is for errors of the
    program."""

    def __call__(self, *args, **options):
        if os.environ.get("ITR_STUDY_DEBUG"):
            return super().__call__(*args, **options)
        try:
            with warnings.catch_warnings():
                warnings.showwarning = warn
                return super().__call__(*args, **options)
        except (ValueError, OSError) as error:
            print(f"error: {plain(error)}", file=sys.stderr)
            sys.exit(2)


def warn(message: Warning | str, *_where: object) -> None:
    """Print a warning without the line of code that gave it."""
    print(f"warning: {message}", file=sys.stderr)


def plain(error: Exception) -> str:
    """An error's message without what only programmers need."""
    pydantic = sys.modules.get("pydantic")
    if pydantic is None or not isinstance(error, pydantic.ValidationError):
        return str(error) + remedy(error)
    from itr_study.training.settings import problems  # where records that pydantic checks stand

    return problems(error)


def remedy(error: Exception) -> str:
    """What to do about a home that cannot be written; empty for other errors."""
    if not (isinstance(error, OSError) and error.filename):
        return ""
    if error.errno not in NOT_WRITABLE and home().exists():
        return ""
    if not Path(os.fsdecode(error.filename)).is_relative_to(home()):
        return ""
    return f"\n{HOME_REMEDY}"


EPILOG = ("Every make target has its twin here (figures: reproduce; soak: bench soak), also as "
          "python -m itr_study. Errors in full: set ITR_STUDY_DEBUG=1.")

app = App(no_args_is_help=True, add_completion=False, rich_markup_mode=None,
          pretty_exceptions_enable=False, epilog=EPILOG,
          help="Learn, test and compare ranking losses for image-text retrieval.")

@app.command(epilog=example("doctor --data ~/data"),
             short_help="Say which device was chosen and why, and what was found.")
def doctor(data: Data = None) -> None:
    """Say which device was chosen and why, versions, room, data and pretrained parts found."""
    from itr_study.lab.cli.doctor import examine, report

    findings = examine(data)
    print(report(findings))
    raise typer.Exit(any(f.state == "broken" for f in findings))


@app.command(epilog=example("data flickr8k --data ~/data"))
def data(dataset: SetOfData = "scenes", data: Data = None, changes: DataChanges = None) -> None:
    """Read a data set with all checks and print what was found."""
    check_name(dataset, changes)
    from itr_study.lab.cli import commands

    print(commands.data_report(dataset, data, changes or []))


@app.command(epilog=example("features flickr8k --images lite0:pooled:flip --sentences minilm"),
             short_help="Compute frozen features once.")
def features(
    dataset: SetOfData = "scenes",
    data: Data = None,
    changes: DataChanges = None,
    images: Annotated[str | None, typer.Option(
        metavar="ENCODERS",
        help="Image encoders, such as lite0:pooled:flip, lite0:nanodet:36 or two by +.")]
    = None,
    tokens: Annotated[str | None, typer.Option(
        metavar="KIND", help="words, glove or wordpiece:minilm.")] = None,
    sentences: Annotated[str | None, typer.Option(
        metavar="ENCODERS", help="minilm, fisher, or both by +.")] = None,
    device: Device = "auto",
) -> None:
    """Compute frozen features once, with a progress bar; what is there is kept."""
    check_name(dataset, changes)
    check_device(device)
    from itr_study.lab.cli import commands

    print(commands.make_features(
        dataset, data, changes or [], images, tokens, sentences, device))


@app.command()
def configs(dataset: SetOfData = "scenes") -> None:
    """List the base configs, what each is and where it was tuned."""
    from itr_study.lab.cli.listing import configs_report

    print(configs_report(dataset))


@app.command(epilog=example("runs", "runs flickr8k --publish --notebook 03_topk"),
             short_help="List the runs of this machine with their ids, or publish some.")
def runs(names: Runs = None, publish: Publish = False, notebook: OfNotebook = None,
         ranks: WithRanks = False) -> None:
    """List the runs of this machine with their ids, and count published rows; or publish some."""
    check_runs(names or ())
    if publish:
        from itr_study.lab.cli import commands

        print(commands.publish_runs(names or [], notebook or [], ranks))
        return
    if notebook or ranks:
        raise ValueError("--notebook and --ranks go with --publish")
    from itr_study.lab.cli.listing import runs_report

    print(runs_report(names or ()))


@app.command(epilog=example("train two_branch", "train two_branch --set seed=1 --set "
                            "objective.0.arguments.k=3", "train my.toml --data ~/data"),
             short_help="Train one run, or go on with it.")
def train(config: Config, dataset: OfRun = None, data: Data = None, changes: Changes = None,
          device: Device = "auto",
          save_seconds: Annotated[float, typer.Option(
              min=0, metavar="SECONDS", help="Least time between checkpoints.")] = 60.0) -> None:
    """Train one run, or go on with it where it stopped; a finished run is not trained again."""
    chosen = choose_config(config, dataset, changes)
    check_device(device)
    from itr_study.lab.cli import commands

    raise typer.Exit(commands.train(chosen, data, device, save_seconds))


@app.command(epilog=example("evaluate two_branch", "evaluate 25fac44b"),
             short_help="Print all measures of a finished run.")
def evaluate(config: Config, dataset: OfRun = None, data: Data = None,
             changes: Changes = None) -> None:
    """Print all measures of a finished run, of this machine or of a published row."""
    chosen = choose_config(config, dataset, changes)
    from itr_study.lab.cli import commands

    print(commands.evaluation(chosen, data))


@app.command(epilog=example('search two_branch --text "a red tree"', "search 25fac44b"),
             short_help="Search the test split of a run by texts or images.")
def search(
    config: Config,
    text: Annotated[str | None, typer.Option(
        metavar="WORDS", help="A query in words: finds images.")] = None,
    image: Image = None,
    top: Annotated[int, typer.Option(min=1, metavar="COUNT", help="How many to print.")] = 10,
    split: Split = None,
    pictures: Pictures = None,
    save: Annotated[Path | None, typer.Option(
        metavar="FILE", help="A .png file: what was found.")] = None,
    show: Annotated[bool, typer.Option("--open", help="Open that picture.")] = False,
    dataset: OfRun = None, data: Data = None, changes: Changes = None,
) -> None:
    """Search the pictures of a finished run, or others, by a text or by an image; without either it
    asks again and again."""
    check_question(text, image, save, split, pictures)
    chosen = choose_config(config, dataset, changes)
    from itr_study.lab.cli.search import Shown, search

    search(chosen, data, text, image, Shown(top, save, show), split, pictures)


@app.command(epilog=example("reproduce 03 05", "reproduce --dataset flickr8k --plan"),
             short_help="Execute notebooks headless: every figure, and a true table.")
def reproduce(
    notebooks: Names = None,
    dataset: Dataset = "scenes",
    data: Data = None,
    profile: Profile = None,
    figures: Figures = None,
    publish: Annotated[bool, typer.Option(
        "--publish", help="Draw into figures/, what git keeps.")] = False,
    parameter: Annotated[list[str] | None, typer.Option(
        "--parameter", "-p", metavar="NAME=VALUE",
        help="A parameter of every chosen notebook.")] = None,
    changes: DataChanges = None,
    workers: Annotated[int | None, typer.Option(
        min=1, metavar="COUNT",
        help="Notebooks at once; default 2 on scenes, 1 on real data.")] = None,
    timeout: Timeout = None,
    device: Device = "auto",
    fresh: Annotated[bool, typer.Option(
        "--fresh", help="Train what is published, too.")] = False,
    plan: Annotated[bool, typer.Option(
        "--plan", help="Only say which runs are there and what the others take.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask, however long it takes.")] = False,
) -> None:
    """Execute notebooks headless: every figure, and a true table of how it went."""
    from itr_study.lab.batch.schedule import Request

    check_name(dataset, changes)
    check_device(device)
    request = Request.make(notebooks or [], dataset, data, profile, figures,
                           [*(parameter or []), *data_parameter(changes)], workers, timeout,
                           publish, device, fresh)
    if plan:
        print(request.plan())
        return
    if not yes and (hours := request.hours()) > 1:
        typer.confirm(f"{request.plan()}\nThis takes about {hours:.1f} hours. Start?", abort=True)
    raise typer.Exit(request.run())


@app.command(epilog=example("reproduce", "html") + ". The pages lie in html/<dataset>/.",
             short_help="Make pages of the executed notebooks.")
def html(dataset: Dataset = "scenes",
         folder: Annotated[Path, typer.Option(
             metavar="FOLDER", help="Where the pages go.")] = Path("html")) -> None:
    """Make pages of the notebooks that `reproduce` executed; they need neither Jupyter nor a
    network."""
    check_name(dataset)
    from itr_study.lab.cli.lab import render_pages

    print(f"Open {render_pages(dataset, folder).resolve()}")


@app.command(epilog=example("audit --rows 2 --dataset flickr8k --data ~/data"),
             short_help="Retrain some published rows and compare the numbers.")
def audit(
    rows: Annotated[int, typer.Option(
        min=1, metavar="COUNT", help="How many to retrain.")] = 2,
    dataset: Dataset = "flickr8k", data: Data = None,
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="Of the choice of rows.")] = 0,
) -> None:
    """Retrain randomly chosen published rows and compare the numbers."""
    check_name(dataset)
    from itr_study.lab.cli import commands

    raise typer.Exit(commands.audit_rows(dataset, data, rows, seed))


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
             short_help="Open JupyterLab at notebook 00, on copies in my/.")
def lab(context: typer.Context, fresh: Annotated[list[str] | None, typer.Option(
        metavar="NOTEBOOK",
        help="A notebook to copy anew, such as 03; your copy is kept beside it.")] = None) -> None:
    """Open JupyterLab at notebook 00, on working copies in my/; further options go to JupyterLab,
    such as --no-browser, --port 8899, --ip 0.0.0.0 or --allow-root."""
    from itr_study.lab.cli.lab import open_lab

    open_lab(context.args, fresh or [])


@app.command(short_help="Run the style checks and the tests.")
def test(paths: Annotated[list[str] | None, typer.Argument(
        metavar="PATH", help="Files or folders of tests; default all.")] = None,
        tier: Annotated[str, typer.Option(
            help="fast (six minutes), all (fast, then slow) or evidence (published rows and "
            "figures).")] = "fast") -> None:
    """Run the style checks and the tests, on two processes."""
    from itr_study.lab.cli.lab import run_tests

    raise typer.Exit(run_tests(paths or [], tier))


@app.command(epilog=example("bench losses") + ". `bench soak` kills a training ten times.")
def bench(names: Annotated[list[str] | None, typer.Argument(
        metavar="NAME", help="Benchmarks; default all but soak.")] = None) -> None:
    """Print speed ratios."""
    from itr_study.lab.cli.lab import run_benchmarks

    raise typer.Exit(run_benchmarks(names or []))
