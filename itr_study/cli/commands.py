"""What the commands of `cli` do; each returns text to print, or an exit code."""

import sys
from collections import Counter
from pathlib import Path

from itr_study.batch.declared import find_notebooks
from itr_study.batch.request import data_root, known_root
from itr_study.cli.chosen import Chosen, data_options, find_run
from itr_study.cli.tables import result_report, row_report
from itr_study.data import DATASETS, load_dataset
from itr_study.data.base import Problem, RetrievalDataset
from itr_study.data.size_checks import too_small
from itr_study.evaluation.measures import MEASURES
from itr_study.features.dataset import encode_dataset
from itr_study.files.paths import check_home, evidence_folder, home
from itr_study.runs.config import RunConfig
from itr_study.runs.data import dataset_of
from itr_study.runs.identity import identify
from itr_study.runs.published import Published
from itr_study.runs.run import check_model, execute
from itr_study.runs.store import RunStore
from itr_study.training.devices import choose_device
from itr_study.training.interrupts import OutOfMemory


def read_data(name: str, data: Path | None, changes: list[str]) -> RetrievalDataset:
    """A data set, with the options that --set gives it."""
    return load_dataset(name, data_root(name, data), **data_options(changes))


def data_report(name: str, data: Path | None, changes: list[str]) -> str:
    """What a data set holds, what was left out and why, what is worth knowing, and its terms."""
    dataset = read_data(name, data, changes)
    lines = [f"{dataset.name} ({dataset.fingerprint[:16]})"]
    for split in dataset.splits.values():
        texts = Counter(split.image_of_text.tolist()).values()
        lines.append(f"  {split.name:<6} {len(split.image_ids):>7,} images {len(split.texts):>8,} "
                     f"texts, {min(texts)} to {max(texts)} an image")
    lines += [f"  read: {count:,} {what}" for what, count in dataset.report.counts.items()]
    lines += by_kind("left out", dataset.report.excluded) + by_kind("note", dataset.report.notes)
    lines += [f"  warning: {sentence}" for sentence in too_small(dataset)]
    lines += [f"  features with the data: {', '.join(dataset.features)}"] * bool(dataset.features)
    lines += [f"  seen by: {', '.join(dataset.seen_by)}"] * bool(dataset.seen_by)
    return "\n".join([*lines, *([f"  terms: {dataset.terms}"] * bool(dataset.terms))])


def by_kind(heading: str, problems: list[Problem]) -> list[str]:
    """Lines that count problems by kind and show the first three of each."""
    lines = []
    for kind, count in Counter(p.kind for p in problems).items():
        some = [p for p in problems if p.kind == kind][:3]
        lines += [f"  {heading}: {count} x {kind}", *(f"    {p.where}: {p.detail}" for p in some)]
    return lines


def make_features(name: str, data: Path | None, changes: list[str], images: str | None,
                  tokens: str | None, sentences: str | None, device: str) -> str:
    """Encode a data set; what the caches hold is not computed again."""
    check_home()
    dataset = read_data(name, data, changes)
    given = {"images": images, "tokens": tokens, "sentences": sentences}
    encoded = encode_dataset(dataset, device=str(choose_device(device)),
                             **{k: v for k, v in given.items() if v is not None})
    lines = [f"{name}: key {encoded.key}, in {home() / 'features'}"]
    for split in encoded.splits.values():
        sizes = "x".join(map(str, split.regions.shape))
        lines.append(f"  {split.name:<6} regions {sizes} (images, views, regions, numbers)")
    return "\n".join(lines)


def train(chosen: Chosen, data: Path | None, device: str,
          save_seconds: float = 60.0) -> int:
    """Train or go on; 0 done, 1 diverged or out of memory, 130 stopped."""
    choose_device(device)
    check_home()
    config = RunConfig.model_validate(chosen.values)
    root = data_root(config.dataset, data)
    try:
        check_model(config)
        run = identify(config, root)
        print(f"run {run.id}", flush=True)
        for sentence in too_small(dataset_of(config, root)):
            print(f"warning: {sentence}", file=sys.stderr)
        before = RunStore().result(run.id)
        result = execute(run, root, device=device, save_seconds=save_seconds,
                         needs=MEASURES)
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


def evaluation(chosen: Chosen, data: Path | None) -> str:
    """The tables of a finished run of this machine, or of a published row.

    Raises:  ValueError where there is neither.
    """
    dataset, run_id = chosen.values["dataset"], chosen.run
    if not run_id:
        run_id = identify(RunConfig.model_validate(chosen.values), known_root(dataset, data)).id
    if (result := RunStore().result(run_id)) is not None:
        return result_report(result)
    row = Published(dataset).table.row(run_id)
    if row is not None:
        return row_report(row)
    raise ValueError(f"run {run_id} is not finished on this machine, and no row of it is "
                     "published; train it first: the same command with `train`")


def publish_runs(names: list[str], notebooks: list[str], ranks: bool) -> str:
    """Publish finished runs of this machine; says which.

    Args:    names: ids, whole or their first digits, and data sets: all their runs that may be
             published; notebooks: of these data sets only the runs of these, in profile `full`.
    Raises:  ValueError where nothing is named, and as `publish`.
    """
    from itr_study.runs.publish import publish, publishable
    from itr_study.studies.plans import PLANS

    datasets = [name for name in names if name in DATASETS]
    if not names or notebooks and not datasets:
        raise ValueError("--publish needs ids of runs, or a data set: itr-study runs flickr8k "
                         "--publish --notebook 03_topk")
    ids = [find_run(digits).run for digits in names if digits not in DATASETS]
    notebooks = [path.stem for path in find_notebooks(notebooks)] if notebooks else []
    for dataset in datasets:
        asked = {identify(run.config, known_root(dataset, None)).id
                 for notebook in notebooks for run in PLANS[notebook](dataset, "full")}
        ids += [run_id for run_id in publishable(dataset) if run_id in asked or not notebooks]
    new = publish(ids, ranks)
    return "\n".join([*new, f"{len(new)} runs published in {evidence_folder()}; to keep them: "
                      "git add evidence" if new else "Nothing to publish: no finished run of "
                      "these is new."])


def audit_rows(dataset: str, data: Path | None, rows: int, seed: int) -> int:
    """Retrain rows; 0 only if none differs."""
    from itr_study.runs.audit import audit

    results = audit(dataset, data_root(dataset, data), rows, seed)
    return int(not all(r.good for r in results))
