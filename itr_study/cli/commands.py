"""What the commands of `cli` do; each returns text to print, or an exit code."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

from itr_study.batch.declared import readings
from itr_study.batch.request import data_root, known_root
from itr_study.batch.schedule import executed_folder
from itr_study.cli.chosen import Chosen, choose
from itr_study.cli.tables import result_report, row_report
from itr_study.data import load_dataset
from itr_study.data.size_checks import too_small
from itr_study.features.dataset import encode_dataset
from itr_study.files.paths import home, project_root
from itr_study.runs.committed import figures_folder
from itr_study.runs.config import RunConfig
from itr_study.runs.data import dataset_of
from itr_study.runs.identity import identify
from itr_study.runs.rows import Rows
from itr_study.runs.run import execute
from itr_study.runs.store import RunStore
from itr_study.training.interrupts import OutOfMemory
from itr_study.training.loop import choose_device


def read_config(config: str, dataset: str | None, changes: list[str]) -> RunConfig:
    """The config that CONFIG and --dataset mean (see `choose`), with `key=value` changes.

    Raises:  ValueError naming the file, or the key and the names there are.
    """
    return completed(choose(config, dataset), changes)


def completed(chosen: Chosen, changes: list[str]) -> RunConfig:
    """The config of what was chosen, with the changes of --set."""
    return RunConfig.model_validate(chosen.values).with_(**given_changes(changes))


def given_changes(changes: list[str]) -> dict[str, object]:
    """The `key=value` texts of --set; ValueError for any other text, or a key given twice."""
    given: dict[str, object] = {}
    for text in changes:
        key, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"--set takes key=value, got {text!r}")
        if key in given:
            raise ValueError(f"--set gives {key} twice; which one holds is not for us to guess")
        given[key] = readings(value)[0]
    return given


def data_report(name: str, data: Path | None) -> str:
    """What a data set holds, what was left out and why, and its terms."""
    dataset = load_dataset(name, data_root(name, data))
    lines = [f"{dataset.name} ({dataset.fingerprint[:16]})"]
    for split in dataset.splits.values():
        texts = Counter(split.image_of_text.tolist()).values()
        lines.append(f"  {split.name:<6} {len(split.image_ids):>7,} images {len(split.texts):>8,} "
                     f"texts, {min(texts)} to {max(texts)} an image")
    lines += [f"  read: {count:,} {what}" for what, count in dataset.report.counts.items()]
    for kind, count in Counter(p.kind for p in dataset.report.excluded).items():
        some = [p for p in dataset.report.excluded if p.kind == kind][:3]
        lines.append(f"  left out: {count} x {kind}")
        lines += [f"    {p.where}: {p.detail}" for p in some]
    lines += [f"  warning: {sentence}" for sentence in too_small(dataset)]
    lines += [f"  features with the data: {', '.join(dataset.features)}"] * bool(dataset.features)
    lines += [f"  seen by: {', '.join(dataset.seen_by)}"] * bool(dataset.seen_by)
    return "\n".join([*lines, *([f"  terms: {dataset.terms}"] * bool(dataset.terms))])


def make_features(name: str, data: Path | None, images: str | None, tokens: str | None,
                  sentences: str | None, device: str) -> str:
    """Encode a data set; what the caches hold is not computed again."""
    dataset = load_dataset(name, data_root(name, data))
    given = {"images": images, "tokens": tokens, "sentences": sentences}
    encoded = encode_dataset(dataset, device=str(choose_device(device)),
                             **{k: v for k, v in given.items() if v is not None})
    lines = [f"{name}: key {encoded.key}, in {home() / 'features'}"]
    for split in encoded.splits.values():
        sizes = "x".join(map(str, split.regions.shape))
        lines.append(f"  {split.name:<6} regions {sizes} (images, views, regions, numbers)")
    return "\n".join(lines)


def train(chosen: Chosen, data: Path | None, changes: list[str], device: str,
          save_seconds: float = 60.0) -> int:
    """Train or go on; 0 done, 1 diverged or out of memory, 130 stopped."""
    choose_device(device)
    config = completed(chosen, changes)
    root = data_root(config.dataset, data)
    run = identify(config, root)
    print(f"run {run.id}", flush=True)
    for sentence in too_small(dataset_of(config, root)):
        print(f"warning: {sentence}", file=sys.stderr)
    before = RunStore().result(run.id)
    try:
        result = execute(run, root, device=device, save_seconds=save_seconds)
    except OutOfMemory as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as error:
        print(f"{error}\nThe same command goes on from here.", file=sys.stderr)
        return 130
    if before is not None:
        print("It was finished before; nothing was trained.")
    print(result_report(result))
    if result.reason:
        print(f"run {result.id}: {result.reason}", file=sys.stderr)
    return int(result.status != "done")


def evaluation(chosen: Chosen, data: Path | None, changes: list[str]) -> str:
    """The tables of a finished run of this machine, or of a committed row.

    Raises:  ValueError where there is neither.
    """
    dataset, run_id = chosen.values["dataset"], chosen.run
    if not run_id or changes:
        run_id = identify(completed(chosen, changes), known_root(dataset, data),
                          figures_folder()).id
    if (result := RunStore().result(run_id)) is not None:
        return result_report(result)
    row = Rows(figures_folder() / dataset).read().get(run_id)
    if row is not None:
        return row_report(row)
    raise ValueError(f"run {run_id} is not finished on this machine, and no row of it is "
                     "committed; train it first: the same command with `train`")


def audit_rows(dataset: str, data: Path | None, rows: int, seed: int) -> int:
    """Retrain rows; 0 only if none differs."""
    from itr_study.runs.audit import audit

    results = audit(dataset, data_root(dataset, data), rows, seed)
    return int(not all(r.good for r in results))


def render_pages(dataset: str, folder: Path) -> str:
    """Executed notebooks as HTML, one page each.

    Raises:  ValueError where nothing was executed.
    """
    from nbconvert import HTMLExporter

    done = sorted(p for p in executed_folder(dataset).glob("*.ipynb")
                  if not p.name.endswith(".partial.ipynb"))
    if not done:
        raise ValueError(f"no executed notebooks in {executed_folder(dataset)}; "
                         "run: itr-study reproduce")
    target = folder / dataset
    target.mkdir(parents=True, exist_ok=True)
    for path in done:
        page, _ = HTMLExporter().from_filename(str(path))
        (target / f"{path.stem}.html").write_text(page, encoding="utf-8")
    return f"{len(done)} pages in {target.resolve()}"


def open_lab() -> int:
    """JupyterLab at notebook 00, in this interpreter's environment."""
    first = project_root() / "notebooks" / "00_start_here.ipynb"
    return subprocess.call([sys.executable, "-m", "jupyterlab", str(first)], cwd=project_root())
