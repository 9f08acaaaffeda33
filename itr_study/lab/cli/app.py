"""The command `itr-study`: options and help here, the work in modules loaded when needed.

`chosen` refuses what a user mistyped; `commands` and others load torch, which takes seconds.
"""

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from itr_study.files.paths import home
from itr_study.lab.cli import options
from itr_study.lab.processes import replace_letters


def example(*commands: str) -> str:
    """The end of a help text."""
    return "For example: " + "; or ".join(f"itr-study {command}" for command in commands)


class App(typer.Typer):
    """Prints an expected error, or a warning, as one message without a traceback."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Run the command."""
        replace_letters()
        if not os.access(os.path.expanduser("~"), os.W_OK):  # matplotlib would say so in two lines
            os.environ.setdefault("MPLCONFIGDIR", str(home() / "matplotlib"))
        if os.environ.get("ITR_STUDY_DEBUG"):
            return super().__call__(*args, **options)
        try:
            with warnings.catch_warnings():
                warnings.showwarning = warn
                return super().__call__(*args, **options)
        except (ValueError, OSError) as error:
            from itr_study.lab.cli.chosen import plain

            print(f"error: {plain(error)}", file=sys.stderr)
            sys.exit(2)


def warn(message: Warning | str, *_where: object) -> None:
    """Print a warning without the line of code that gave it."""
    print(f"warning: {message}", file=sys.stderr)


def check(dataset: str, changes: list[str] | None = None, device: str = "auto") -> None:
    """Refuse a data set, an option of it or a device that there is not, before torch is loaded."""
    from itr_study.lab.cli import chosen

    chosen.check_options(dataset, chosen.data_options(changes or ()))
    chosen.check_device(device)


app = App(no_args_is_help=True, add_completion=False, rich_markup_mode=None,
          pretty_exceptions_enable=False,
          help="Learn, test and compare ranking losses for image-text retrieval.",
          epilog="Make targets have their twins here (figures: reproduce; soak: bench soak), also "
          "as python -m itr_study. Errors in full: set ITR_STUDY_DEBUG=1.")


@app.command(epilog=example("doctor --data ~/data"))
def doctor(data: options.Data = None) -> None:
    """Say which device was chosen and why, and what was found."""
    from itr_study.lab.cli.doctor import examine, report

    findings = examine(data)
    print(report(findings))
    raise typer.Exit(any(f.state == "broken" for f in findings))


@app.command(epilog=example("data flickr8k --data ~/data"))
def data(dataset: options.SetOfData = "scenes", data: options.Data = None,
         changes: options.DataChanges = None) -> None:
    """Read a data set with all checks and print what was found."""
    check(dataset, changes)
    from itr_study.lab.cli import commands

    print(commands.data_report(dataset, data, changes or []))


@app.command(epilog=example("features flickr8k --images lite0:pooled:flip --sentences minilm"))
def features(
    dataset: options.SetOfData = "scenes",
    data: options.Data = None,
    changes: options.DataChanges = None,
    images: Annotated[str | None, typer.Option(
        metavar="ENCODERS",
        help="Image encoders, such as lite0:pooled:flip, lite0:nanodet:36 or two by +.")]
    = None,
    tokens: Annotated[str | None, typer.Option(
        metavar="KIND", help="words, glove or wordpiece:minilm.")] = None,
    sentences: Annotated[str | None, typer.Option(
        metavar="ENCODERS", help="minilm, fisher, hglmm; several by +.")] = None,
    device: options.Device = "auto",
) -> None:
    """Compute frozen features once. What is there is kept."""
    check(dataset, changes, device)
    from itr_study.lab.cli import commands

    print(commands.make_features(dataset, data, changes or [], images, tokens, sentences, device))


@app.command()
def configs(dataset: options.SetOfData = "scenes", data: options.Data = None) -> None:
    """List base configs, what each is and where it was tuned."""
    from itr_study.lab.batch.schedule import known_root
    from itr_study.lab.cli import chosen

    chosen.check_options(dataset, {})
    print(chosen.configs_report(dataset, known_root(dataset, data)))


@app.command(epilog=example("tune two_branch --dataset folder --data ~/data"))
def tune(config: Annotated[str, typer.Argument(
             metavar="CONFIG", help="A base config (see: itr-study configs).")],
         dataset: options.Dataset = "scenes", data: options.Data = None,
         changes: options.DataChanges = None, device: options.Device = "auto",
         plan: options.Plan = False) -> None:
    """Search the learning rate of a config on your dev split.

    The rate is kept in .itr_study/tuned/; `train` and notebooks then take it on the same data. If
    you stop the command, run it again: it goes on.
    """
    check(dataset, changes, device)
    from itr_study.lab.cli import commands

    raise typer.Exit(commands.tune(config, dataset, data, changes or [], device, plan))


@app.command(epilog=example("runs", "runs flickr8k --publish --notebook 03_topk"))
def runs(names: options.Runs = None, publish: options.Publish = False,
         notebook: options.OfNotebook = None, ranks: options.WithRanks = False) -> None:
    """List runs of this machine with their ids, or publish some."""
    from itr_study.lab.cli import chosen

    for name in names or ():
        if not chosen.RUN_ID.fullmatch(name):
            chosen.check_options(name, {})
    if publish:
        from itr_study.lab.cli import commands

        print(commands.publish_runs(names or [], notebook or [], ranks))
        return
    if notebook or ranks:
        raise ValueError("--notebook and --ranks go with --publish")
    print(chosen.runs_report(names or ()))


@app.command(epilog=example("train two_branch", "train two_branch --set seed=1 --set "
                            "objective.0.arguments.k=3", "train my.toml --data ~/data"))
def train(config: options.Config, dataset: options.OfRun = None, data: options.Data = None,
          changes: options.Changes = None, device: options.Device = "auto",
          save_seconds: Annotated[float, typer.Option(
              min=0, metavar="SECONDS", help="Least time between checkpoints.")] = 60.0) -> None:
    """Train one run, or go on with it. A finished run is not trained again."""
    from itr_study.lab.cli import chosen

    found = chosen.choose(config, dataset, changes or ())
    chosen.check_device(device)
    from itr_study.lab.cli import commands

    raise typer.Exit(commands.train(found, data, device, save_seconds))


@app.command(epilog=example("evaluate two_branch", "evaluate 25fac44b"))
def evaluate(config: options.Config, dataset: options.OfRun = None, data: options.Data = None,
             changes: options.Changes = None) -> None:
    """Print all measures of a finished run, here or published."""
    from itr_study.lab.cli import chosen

    found = chosen.choose(config, dataset, changes or ())
    from itr_study.lab.cli import commands

    print(commands.evaluation(found, data))


@app.command(epilog=example('search two_branch --text "a red tree"', "search 25fac44b"))
def search(
    config: options.Config,
    text: Annotated[str | None, typer.Option(
        metavar="WORDS", help="A query in words: finds images.")] = None,
    image: options.Image = None,
    top: Annotated[int, typer.Option(min=1, metavar="COUNT", help="How many to print.")] = 10,
    split: options.Split = None,
    pictures: options.Pictures = None,
    save: Annotated[Path | None, typer.Option(
        metavar="FILE", help="A .png file: what was found.")] = None,
    show: Annotated[bool, typer.Option("--open", help="Open that picture.")] = False,
    dataset: options.OfRun = None, data: options.Data = None, changes: options.Changes = None,
) -> None:
    """Search the pictures of a finished run by texts or images.

    Without --text or --image it prompts for queries until an empty line.
    """
    from itr_study.lab.cli import chosen

    chosen.check_question(text, image, save, split, pictures)
    found = chosen.choose(config, dataset, changes or ())
    from itr_study.lab.cli.search import Shown, search

    search(found, data, text, image, Shown(top, save, show), split, pictures)


@app.command(epilog=example("reproduce 03 05", "reproduce --dataset flickr8k --plan"))
def reproduce(
    notebooks: options.Names = None,
    dataset: options.Dataset = "scenes",
    data: options.Data = None,
    profile: options.Profile = None,
    figures: options.Figures = None,
    publish: Annotated[bool, typer.Option(
        "--publish", help="Draw into figures/, what git keeps.")] = False,
    parameter: Annotated[list[str] | None, typer.Option(
        "--parameter", "-p", metavar="NAME=VALUE",
        help="A parameter of every chosen notebook.")] = None,
    changes: options.DataChanges = None,
    workers: Annotated[int | None, typer.Option(
        min=1, metavar="COUNT",
        help="Notebooks at once; default 2 on scenes, 1 on real data.")] = None,
    timeout: options.Timeout = None,
    device: options.Device = "auto",
    fresh: Annotated[bool, typer.Option(
        "--fresh", help="Train what is published, too.")] = False,
    cluster: Annotated[str | None, typer.Option(
        metavar="ADDRESS", help="Train on the workers of this Dask scheduler.")] = None,
    plan: options.Plan = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask, however long it takes.")] = False,
) -> None:
    """Run notebooks without a browser; say what failed."""
    from itr_study.lab.batch.schedule import Request
    from itr_study.lab.cli import chosen

    check(dataset, changes, device)
    given = parameter or []
    if changes:  # the options of the data are one parameter of a notebook
        given = [*given, f"data_options={json.dumps(chosen.data_options(changes), default=str)}"]
    request = Request.make(notebooks or [], dataset, data, profile, figures, given, workers,
                           timeout, publish, device, fresh)
    if plan:
        print(request.plan())
        return
    if not yes and not (hours := request.hours()) <= 1:
        print(request.plan())
        ask(hours)
    if cluster is not None:
        from itr_study.lab.runs.executors import connect

        os.environ["ITR_STUDY_CLUSTER"] = connect(cluster).client.scheduler.address
    raise typer.Exit(request.run())


@app.command(epilog=example("cluster --local 2") + ". Then: itr-study reproduce --cluster ADDRESS")
def cluster(local: Annotated[int, typer.Option(
        min=1, metavar="COUNT", help="Processes on this machine.")] = 2) -> None:
    """Start a Dask scheduler and workers here, until Ctrl-C."""
    from itr_study.lab.runs.executors import serve

    serve(local)


def ask(hours: float) -> None:
    """Ask whether to start what takes so long (NaN: unknown); abort unless the answer is yes."""
    takes = f"about {hours:.1f} hours" if hours > 0 else "an unknown time"
    if sys.stdin is None:
        raise ValueError(f"this takes {takes} and standard input is closed; add --yes to start")
    typer.confirm(f"This takes {takes}. Start?", abort=True)


@app.command(epilog=example("reproduce", "site") + ". Open html/index.html.")
def site(dataset: options.Dataset = "scenes",
         folder: Annotated[Path, typer.Option(
             metavar="FOLDER", help="Where the pages go.")] = Path("html")) -> None:
    """Make a site of lessons, docs and live losses."""
    check(dataset)
    from itr_study.lab.cli.lab import make_site

    raise typer.Exit(make_site(dataset, folder))


@app.command(epilog=example("audit --rows 2 --dataset flickr8k --data ~/data"))
def audit(
    rows: Annotated[int, typer.Option(
        min=1, metavar="COUNT", help="How many to retrain.")] = 2,
    dataset: options.Dataset = "flickr8k", data: options.Data = None,
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="Of the choice of rows.")] = 0,
) -> None:
    """Retrain published rows, chosen by chance, and compare."""
    check(dataset)
    from itr_study.lab.batch.schedule import data_root
    from itr_study.lab.runs.audit import audit

    audited = audit(dataset, data_root(dataset, data), rows, seed)
    raise typer.Exit(not all(row.good for row in audited))


@app.command(epilog=example("audit-captions --data my_pictures --to audit"))
def audit_captions(
    dataset: options.Dataset = "folder", data: options.Data = None,
    changes: options.DataChanges = None,
    apply: Annotated[Path | None, typer.Option(
        metavar="FILE", help="audit.csv, corrected: makes new data, trains on both.")] = None,
    to: Annotated[Path, typer.Option(
        metavar="FOLDER", help="For audit.html and audit.csv, or for the new data.")] = Path("."),
) -> None:
    """List captions that may be wrong, to correct them."""
    check(dataset, changes)
    from itr_study.lab.cli import audit, commands

    found = commands.read_data(dataset, data, changes or [], images="pictures")
    print(audit.apply(found, apply, to, commands.data_root(dataset, data)) if apply else
          audit.audit_captions(found, to))


@app.command(epilog=example("score scores.npy --ids ids.csv",
                            "score --images i.npy --texts t.npy --similarity cosine"))
def score(
    scores: Annotated[Path | None, typer.Argument(
        metavar="SCORES.npy", help="Scores (images, texts), higher = more alike.")] = None,
    ids: options.Ids = None, relevance: options.Graded = None,
    images: Annotated[Path | None, typer.Option(
        metavar="FILE", help="A .npy file: vectors of the images, instead of scores.")] = None,
    texts: Annotated[Path | None, typer.Option(metavar="FILE", help="The same of texts.")] = None,
    similarity: Annotated[str | None, typer.Option(
        metavar="NAME", help="Of vectors: cosine or dot; needed if their length is not 1.")] = None,
) -> None:
    """Print all metrics of anyone's scores, and their protocol."""
    from itr_study.lab.cli.verdict import score_report

    print(score_report(scores, ids, relevance, images, texts, similarity))


@app.command(epilog=example("verdict --a 'runs_a/*.npy' --b 'runs_b/*.npy' --html page.html"),
             context_settings={"allow_extra_args": True})
def verdict(
    context: typer.Context,
    a: Annotated[str, typer.Option(
        metavar="PATTERN", help="Runs of a model: scores, embeddings or ranks (.npy, .npz), or "
        "results of MTEB or CLIP_benchmark (.json); a file a seed.")],
    b: Annotated[list[str], typer.Option(
        metavar="PATTERN", help="Runs of a rival; may be given more than once.")],
    ids: options.Ids = None, relevance: options.Graded = None,
    metric: options.Metric = None,
    looks: Annotated[int, typer.Option(
        min=1, metavar="COUNT", help="Judgements so far, this one too; they share the 5 %.")] = 1,
    html: options.Page = None, card: options.Card = None, latex: options.Latex = None,
    figure: options.Drawn = None,
) -> None:
    """Say if a model is better than another, by runs of both."""
    if context.args:
        raise ValueError(f"{context.args[0]} belongs to no option: put patterns in quotes, such as "
                         "--a 'runs_a/*.npy', or name the folder")
    from itr_study.lab.cli.verdict import check_outputs, judge_files, written

    outputs = html, card, latex, figure or ()
    check_outputs(*outputs)
    print(written([judge_files(a, b, ids, relevance, metric, looks)], *outputs))


@app.command(epilog=example("claim topk-eq8-overstrict"))
def claim(claim_id: Annotated[str, typer.Argument(
        metavar="ID", help="Of a claim in figures/flickr8k/claims.md.")]) -> None:
    """Judge a claim of a paper again, by published data alone."""
    from itr_study.lab.ledger.report import claim_report

    print(claim_report(claim_id))


@app.command(epilog=example("compare my_loss.py:MyLoss --quick", "compare --data my_pictures"))
def compare(
    own: Annotated[str | None, typer.Argument(
        metavar="PART", help="A loss or model: file.py:Name, a .toml file with `objective`, or a "
        "name of the library; without: which rival is best.")] = None,
    against: Annotated[list[str] | None, typer.Option(
        metavar="PART", help="Rivals; default four losses, for a model that of the base.")] = None,
    dataset: Annotated[str | None, typer.Option(
        metavar="NAME", help="Default: folder if --data holds own pictures, else scenes.")] = None,
    data: options.Data = None,
    base: Annotated[list[str] | None, typer.Option(
        metavar="NAME", help="Base configs; default two_branch.")] = None,
    quick: Annotated[bool, typer.Option(
        "--quick", help="On less of the generated data: minutes.")] = False,
    changes: options.DataChanges = None, device: options.Device = "auto",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask, however long it takes.")] = False,
    metric: options.Metric = None,
    html: options.Page = None, card: options.Card = None, latex: options.Latex = None,
    figure: options.Drawn = None,
) -> None:
    """Train a loss or model like its rivals: is it better?

    Each is trained at four learning rates; its best on dev is then trained with five seeds. If you
    stop the command, run it again: it goes on. --against, --base and --figure may be repeated.
    """
    from itr_study.lab.cli import chosen

    chosen.check_device(device)
    given = chosen.data_options(changes or ())
    from itr_study.lab.cli import verdict

    outputs = html, card, latex, figure or ()
    verdict.check_outputs(*outputs)
    setups, plan, hours = verdict.prepare(own, against or [], dataset, data,
                                          base or ["two_branch"], quick, metric, given)
    print(plan, flush=True)
    if not yes and not hours <= 1:
        ask(hours)
    print(verdict.written(verdict.compare(setups, device, own is not None, metric), *outputs))


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def lab(context: typer.Context, fresh: Annotated[list[str] | None, typer.Option(
        metavar="NOTEBOOK",
        help="A notebook to copy again, such as 03; your copy is kept, too.")] = None,
        folder: Annotated[Path | None, typer.Option(
            metavar="FOLDER", help="Where the copies go; default $ITR_STUDY_MY, else my/.")] = None,
        ) -> None:
    """Open JupyterLab at notebook 00, on copies of all.

    Further options go to JupyterLab, such as --no-browser, --port 8899, --ip 0.0.0.0 or
    --allow-root.
    """
    from itr_study.lab.cli.lab import open_lab

    if folder is not None:  # for the notebooks, too
        os.environ["ITR_STUDY_MY"] = str(folder)
    open_lab(context.args, fresh or [])


@app.command(epilog=example("student my_class"))
def student(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where the copies go.")],
    install: Annotated[str | None, typer.Option(
        metavar="REQUIREMENT", help="What their first cell installs, as for Colab: "
        "docs/ways-in.md.")] = None,
    otter: Annotated[bool, typer.Option(
        "--otter", help="Also write tests for otter-grader.")] = False,
) -> None:
    """Copy the notebooks for a class, without solutions."""
    from itr_study.lab.course import student_copies

    print(student_copies(folder, install, otter))


@app.command()
def test(paths: Annotated[list[str] | None, typer.Argument(
        metavar="PATH", help="Files or folders of tests; default all.")] = None,
        tier: Annotated[str, typer.Option(
            help="fast (six minutes), all (fast, then slow) or evidence (published rows and "
            "figures).")] = "fast") -> None:
    """Run the style checks and the tests. Takes two processes."""
    from itr_study.lab.cli.lab import run_tests

    raise typer.Exit(run_tests(paths or [], tier))


@app.command(epilog=example("bench losses") + ". `bench soak` kills a training ten times.")
def bench(names: Annotated[list[str] | None, typer.Argument(
        metavar="NAME", help="Benchmarks; default all but soak.")] = None) -> None:
    """Print speed ratios."""
    from itr_study.lab.cli.lab import run_benchmarks

    raise typer.Exit(run_benchmarks(names or []))
