"""What the commands of `cli` do; each returns text to print, or an exit code."""

import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from itr_study.data import DATASETS, features_beside, load_dataset
from itr_study.data.base import SPLITS, Problem, RetrievalDataset
from itr_study.data.folder import too_small
from itr_study.digits import counted
from itr_study.encoders.sentences import MiniLM
from itr_study.evaluation.evaluate import columns
from itr_study.evaluation.measures import takeable
from itr_study.evaluation.search import one_line
from itr_study.features.dataset import encode_dataset, text_readers
from itr_study.features.texts import unread_notes
from itr_study.files.paths import check_home, evidence_folder, home
from itr_study.lab.batch.declared import find_notebooks
from itr_study.lab.batch.schedule import data_root, known_root
from itr_study.lab.cli.chosen import PAPER, Chosen, data_options, find_run
from itr_study.lab.runs.config import RunConfig
from itr_study.lab.runs.data import dataset_of
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.published import Published, publish, publishable
from itr_study.lab.runs.run import check_model, execute, former, train_images
from itr_study.lab.runs.store import RunResult, RunStore
from itr_study.lab.studies.arms import GIVEN, base_config, reading
from itr_study.lab.studies.parameters import Parameters
from itr_study.lab.studies.presets import preset_here
from itr_study.lab.studies.tune import Search, written
from itr_study.training.devices import choose_device
from itr_study.training.interrupts import OutOfMemory

# Tables of one run, from the store or from its published row.

# What the names of measures are made of, in words. Numbers are in percent where nothing else is
# said; a correlation of 1 is printed as 100.
LEGEND = {
    "i2t": "an image is the query, texts are ranked",
    "t2i": "a text is the query, images are ranked",
    "r1": "share of queries with a match in the first place",
    "r5": "share of queries with a match among the first 5",
    "r10": "share of queries with a match among the first 10",
    "medr": "median rank of the best match, 1 = first",
    "meanr": "mean rank of the best match",
    "rp": "share of matches among the first R results, R how many matches the query has",
    "rsum": "sum of r1, r5 and r10 of i2t and t2i, at most 600",
    "ndcg": "how far the whole list has the most relevant on top, 100 = wholly",
    "tau": "Kendall's tau-b of scores and relevance over the whole list: 100 = the same order, "
           "0 = none, -100 = reversed",
    "cs100": "coherent score, that tau among the 100 best results: are they in order, relevant or "
             "not?",
    "rel10": "mean relevance of the first 10 results",
    "hubness": "skewness of how often a candidate is among the first 10 results, 0 = no hubs",
    "entropy": "mean entropy of a vector of an image: its texts, and all others as one; in nats",
    "noise": "the share of all others together",
    "fast": "after fast re-ranking (FR), which sees all queries of the test split",
    "bank": "FR with the queries of the dev split instead of the test split",
    "cub": "FR with the scales of dvse for CUB: 9 and 8 for i2t, 8 and 17 for t2i",
    "reciprocal": "after reciprocal re-ranking (RR)",
    "multi": "after multivariate re-ranking (MR)",
    "class": "matches are all pairs of one class, not those of one image alone",
    "exact": "relevance as the data knows it",
    "sentence": "relevance by cosines of sentence vectors (MiniLM) of the captions",
    "cider": "relevance by n-grams that captions share (CIDEr)",
    "human_expert_tau_c": "Kendall's tau-c with the ratings of experts",
    "human_crowdflower_tau_b": "Kendall's tau-b with the share of yes of a crowd",
    "1k": "mean of five folds of the split",
    "map": "mAP@R: the R matches of a query early among its first R results",
    "eccv": "matches of ECCV Caption", "cxc": "matches of CxC",
}


def words_in(name: str) -> list[str]:
    """The words of LEGEND in the name of a measure.

    Example:
        >>> words_in("1k_i2t_r5"), words_in("human_expert_tau_c")
        (['1k', 'i2t', 'r5'], ['human_expert_tau_c'])
    """
    return [name] if name in LEGEND else name.split("_")


def result_report(result: RunResult) -> str:
    """Status, cost and metrics of a run of the store."""
    head = (f"run {result.id}: {result.status}, {len(result.history.rows)} epochs, best "
            f"{result.history.best_epoch}, {result.facts.get('minutes', 0.0):.1f} min, "
            f"{result.folder}")
    dev_images = result.config["settings"].get("dev_images")
    return "\n".join([head, *filter(None, [result.reason]),
                      *metric_lines(result.config["dataset"], result.tables, dev_images)])


def row_report(row: Mapping[str, Any]) -> str:
    """The same of a published row."""
    tables = {split: {name.removeprefix(f"{split}_"): value for name, value in row.items()
                      if name.startswith(f"{split}_") and value is not None} for split in SPLITS}
    head = (f"run {row['run']}: {row['status']}, {row['epochs']} epochs, best "
            f"{row['best_epoch']}, {row['minutes']:.1f} min, on {row['device']}\nThis is its "
            "published row; only its weights are not on this machine (to search with it, train it)."
            )
    return "\n".join([head, *filter(None, [row["reason"]]), *metric_lines(
        row["dataset"], {s: t for s, t in tables.items() if t}, row.get("settings.dev_images"))])


def metric_lines(dataset: str, tables: Mapping[str, Mapping[str, float]],
                 dev_images: float | None = None) -> list[str]:
    """One line a metric, one column a split; none for a run without metrics."""
    measured = {name for table in tables.values() for name in table}
    if not measured:
        return []
    order = [name for name in columns(dataset, "test") if name in measured]
    names = order + sorted(measured - set(order))
    width = max(map(len, names))
    lines = [" " * width + "".join(f"{split:>9}" for split in tables)]
    for name in names:
        cells = (f"{table[name]:9.2f}" if name in table else f"{'-':>9}"
                 for table in tables.values())
        lines.append(f"{name:<{width}}{''.join(cells)}")
    most = train_images(int(dev_images or 0))
    of_train = f" train: its first {most:,} images at most." if "train" in tables else ""
    used = {word for name in names for word in words_in(name)}
    width = max(map(len, used))
    return [*lines, "In percent, but for ranks, rsum, hubness and entropy; - is not measured."
            + of_train, *(f"  {word:<{width}}  {meaning}" for word, meaning in LEGEND.items()
                          if word in used)]


def read_data(name: str, data: Path | None, changes: list[str],
              images: str | None = None) -> RetrievalDataset:
    """A data set with the options of --set, and its features unless `images` name others."""
    root = data_root(name, data)
    beside = features_beside(name, root) if images in (None, GIVEN) else {}
    return load_dataset(name, root, **beside | data_options(changes))


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
    lines += [f"  warning: {sentence}" for sentence in too_small(dataset)
              + unread_notes(dataset, [MiniLM()], MiniLM.name)]
    few = min(dataset.splits.values(), key=lambda split: len(split.image_ids))
    lines += [f"  features with the data: {kind}, {counted(regions, 'region')} of {size:,} numbers"
              for kind, read in dataset.features.items()
              for _, regions, size in [read(few).features.shape]]
    lines += [f"  seen by: {', '.join(dataset.seen_by)}"] * bool(dataset.seen_by)
    return "\n".join([*lines, *([f"  terms: {dataset.terms}"] * bool(dataset.terms))])


def by_kind(heading: str, problems: list[Problem]) -> list[str]:
    """Lines that count problems by kind and show the first three of each."""
    lines = []
    for kind in dict.fromkeys(p.kind for p in problems):
        these = [one_line(f"    {p.where}: {p.detail}") for p in problems if p.kind == kind]
        lines += [f"  {heading}: {len(these)} x {kind}", *these[:3]]
    return lines


def make_features(name: str, data: Path | None, changes: list[str], images: str | None,
                  tokens: str | None, sentences: str | None, device: str) -> str:
    """Encode a data set; what the caches hold is not computed again."""
    check_home()
    dataset = read_data(name, data, changes, images)
    given = {"images": images, "tokens": tokens, "sentences": sentences}
    encoded = encode_dataset(dataset, device=str(choose_device(device)),
                             **{k: v for k, v in given.items() if v is not None})
    return "\n".join([f"{name}: key {encoded.key}, in {home() / 'features'}", *(
        f"  {split.name:<6} regions {'x'.join(map(str, split.regions.shape))} "
        "(images, views, regions, numbers)" for split in encoded.splits.values())])


def config_of(chosen: Chosen, root: str | None) -> RunConfig:
    """Build the config that was chosen; a base config as notebooks have it on these data.

    So it reads features that come with the data, and takes rates that were tuned there; a preset
    ("paper:topk") keeps its own.
    """
    if not chosen.base:
        return RunConfig.model_validate(chosen.values)
    dataset, options = chosen.values["dataset"], chosen.values["data_options"]
    parameters = reading(Parameters.of(profile="full", dataset=dataset, data_options=options), root)
    if chosen.base.startswith(PAPER):
        return preset_here(chosen.base.removeprefix(PAPER), dataset, parameters).with_(
            **chosen.changes)
    return base_config(dataset, chosen.base, parameters, **chosen.changes)


def tune(setting: str, dataset: str, data: Path | None, changes: list[str], device: str = "auto",
         plan: bool = False) -> int:
    """Search the rate of a setting and keep it, or only say what that takes; 130 if stopped."""
    choose_device(device)
    check_home()
    search = Search.make(setting, dataset, data_root(dataset, data), data_options(changes))
    print(search.plan(), flush=True)
    if plan:
        return 0
    for sentence in too_small(search.data):
        print(f"warning: {sentence}", file=sys.stderr)
    try:
        table = search.table(device)
    except KeyboardInterrupt:
        print("Stopped. The same command goes on from here.", file=sys.stderr)
        return 130
    print(written(table))
    print(f"Kept for these data in {search.keep(table)}: `train` and notebooks take it.")
    return 0


def train(chosen: Chosen, data: Path | None, device: str, save_seconds: float = 60.0) -> int:
    """Train or go on; 0 done, 1 diverged or out of memory, 130 stopped."""
    choose_device(device)
    check_home()
    root = data_root(chosen.values["dataset"], data)
    config = config_of(chosen, root)
    try:
        check_model(config)
        run = identify(config, root)
        print(f"run {run.id}", flush=True)
        dataset = dataset_of(config, root)
        unread = unread_notes(dataset, text_readers(dataset, config.tokens, config.sentences))
        for sentence in too_small(dataset) + unread:
            print(f"warning: {sentence}", file=sys.stderr)
        before = RunStore().result(run.id)
        result = execute(run, root, device=device, save_seconds=save_seconds, needs=takeable())
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
    """The tables of a finished run of this machine, or of a published row."""
    dataset, run_id, root = chosen.values["dataset"], chosen.run, None
    if not run_id:
        root = known_root(dataset, data)
        run_id = (run := identify(config_of(chosen, root), root)).id
    if (result := RunStore().result(run_id)) is not None:
        return result_report(result)
    if (row := Published(dataset).table.row(run_id)) is not None:
        return row_report(row)
    raise ValueError(not chosen.run and former(run, root) or chosen.untrained(run_id, root))


def publish_runs(names: list[str], notebooks: list[str], ranks: bool) -> str:
    """Publish finished runs of this machine by their digits, or those of data sets; says which.

    Of a data set only the runs of these notebooks, if any, in the profile that is published.
    """
    from itr_study.lab.studies.plans import PLANS

    datasets = [name for name in names if name in DATASETS]
    if not names or notebooks and not datasets:
        raise ValueError("--publish needs ids of runs, or a data set: itr-study runs flickr8k "
                         "--publish --notebook 03_topk")
    ids = [find_run(digits).run for digits in names if digits not in DATASETS]
    notebooks = [path.stem for path in find_notebooks(notebooks)] if notebooks else []
    for dataset in datasets:
        profile = "quick" if DATASETS[dataset].generated else "full"
        asked = {identify(run.config, known_root(dataset, None)).id
                 for notebook in notebooks for run in PLANS[notebook](dataset, profile)}
        ids += [run_id for run_id in publishable(dataset) if run_id in asked or not notebooks]
    new = publish(ids, ranks)
    return "\n".join([*new, f"{len(new)} runs published in {evidence_folder()}; to keep them: "
                      "git add evidence" if new else "Nothing to publish: no finished run of "
                      "these is new."])
