"""Tables of one run, from the store or from its published row."""

from collections.abc import Iterable, Mapping
from typing import Any

from itr_study.evaluation.evaluate import columns
from itr_study.runs.rows import SPLITS
from itr_study.runs.run import train_images
from itr_study.runs.store import RunResult

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
    "bank": "FR with the queries of the dev split in the place of the test split's",
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
}


def words_in(name: str) -> list[str]:
    """The words of LEGEND in the name of a measure.

    Example:
        >>> words_in("1k_i2t_r5"), words_in("human_expert_tau_c")
        (['1k', 'i2t', 'r5'], ['human_expert_tau_c'])
    """
    return [name] if name in LEGEND else name.split("_")


def legend(names: Iterable[str]) -> list[str]:
    """A line for each word that the names of measures are made of."""
    used = {word for name in names for word in words_in(name)}
    width = max(map(len, used))
    return [f"  {word:<{width}}  {meaning}" for word, meaning in LEGEND.items() if word in used]


def result_report(result: RunResult) -> str:
    """Status, cost and metrics of a run of the store."""
    minutes = result.facts.get("minutes", 0.0)
    lines = [f"run {result.id}: {result.status}, {len(result.history.rows)} epochs, best "
             f"{result.history.best_epoch}, {minutes:.1f} min, {result.folder}"]
    lines += [result.reason] * bool(result.reason)
    return "\n".join(lines + metric_lines(
        result.config["dataset"], result.tables, result.config["settings"].get("dev_images")))


def row_report(row: Mapping[str, Any]) -> str:
    """The same of a published row."""
    tables = {split: {name.removeprefix(f"{split}_"): value for name, value in row.items()
                      if name.startswith(f"{split}_") and value is not None} for split in SPLITS}
    lines = [f"run {row['run']}: {row['status']}, {row['epochs']} epochs, best "
             f"{row['best_epoch']}, {row['minutes']:.1f} min, on {row['device']}",
             "This is its published row; only its weights are not on this machine (to search with "
             "it, train it)."]
    lines += [row["reason"]] * bool(row["reason"])
    return "\n".join(lines + metric_lines(
        row["dataset"], {s: t for s, t in tables.items() if t}, row.get("settings.dev_images")))


def metric_lines(dataset: str, tables: Mapping[str, Mapping[str, float]],
                 dev_images: float | None = None) -> list[str]:
    """One line a metric, one column a split; none for a run without metrics.

    Args:    dev_images: the setting of the run; None where it has none.
    """
    measured = {name for table in tables.values() for name in table}
    if not measured:
        return []
    order = [name for name in columns(dataset, "test") if name in measured]
    names = order + sorted(measured - set(order))
    width = max(len(name) for name in names)
    lines = [" " * width + "".join(f"{split:>9}" for split in tables)]
    for name in names:
        cells = (f"{table[name]:9.2f}" if name in table else f"{'-':>9}"
                 for table in tables.values())
        lines.append(f"{name:<{width}}{''.join(cells)}")
    most = train_images(int(dev_images or 0))
    of_train = f" train: its first {most:,} images at most." if "train" in tables else ""
    return [*lines, "In percent, but for ranks, rsum, hubness and entropy; - is not measured."
            + of_train, *legend(names)]
