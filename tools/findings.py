"""Print docs/findings.md: python -m tools.findings > docs/findings.md."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain

import pandas as pd

import itr_study as itr
from itr_study.digits import signed, with_interval
from itr_study.files.paths import evidence_folder, figures_folder
from itr_study.lab.ledger.report import markdown_lines
from itr_study.metrics.intervals import student_interval
from itr_study.plots.names import name_of
from itr_study.plots.tables import title_of

Line = tuple[str, str, int | str]  # what is measured, its value, the number of pairs of runs
HEAD = """# Findings

The [README](../README.md#findings) answers each question in a sentence; here are the numbers. The
command `python -m tools.findings` prints this page from published rows and tables. All numbers are
of Flickr8k, except where a line says `scenes`. A value with brackets is a mean difference over
pairs of runs and its 95 % interval; [statistics.md](statistics.md) explains both. "A − B" means A
minus B. "Over 8 models" has the mean over models; its interval says what to expect of similar
models. RSUM is the sum of six recalls, at most 600. Experts τ-c is the agreement with three experts
who judged pairs, times 100. *Collapsed*: some runs gave all pairs nearly the same score, so nothing
is compared. AUROC: take the best score of a text with its picture among the pictures, and of a text
without it; AUROC is how often the first is higher. [The glossary](glossary.md) explains losses,
models and other words; *windows* is the sliding-window form of the Kendall loss.
"""
AGREEMENT = "test_human_expert_tau_c"


def table(name: str) -> pd.DataFrame:
    """Read the table of a published figure of Flickr8k."""
    return pd.read_csv(figures_folder() / "flickr8k" / f"{name}.csv")


def line(what: str, differences: pd.Series) -> Line:
    """Write the mean of paired differences."""
    value = with_interval(differences.mean(), *student_interval(differences.to_numpy()))
    return what, value, len(differences)


def lines(rows: pd.DataFrame, where: str = "", other: str = "hardest") -> Iterator[Line]:
    """Write differences from another loss that a published table has."""
    for row in rows.itertuples():
        value = "collapsed" if row.verdict == "collapsed" else with_interval(
            row.difference, row.low, row.high)
        yield (f"{title_of(row.metric)}, {name_of(row.loss)} − {other}{where}", value, row.n)


def compared(metric: str) -> Iterator[Line]:
    """Write what each loss has more than the hardest negative, in both base models."""
    for base, runs in table("13_when_to_forgive__which_loss").groupby("base", sort=False):
        values = runs.pivot_table(index="seed", columns="method", values=metric, sort=False)
        for loss in runs["method"].unique():
            if loss != "hardest":
                yield line(f"{title_of(metric)}, {name_of(loss)} − hardest, {name_of(base)}",
                           values[loss] - values["hardest"])


def over_models(metric: str) -> Iterator[Line]:
    """Write what losses change over all models, and between which models of one."""
    models = table("12_claims__over_models").query("metric == @metric")
    for (arm_a, arm_b), rows in models.groupby(["arm_a", "arm_b"], sort=False):
        each, pooled = rows[rows["model"] != "all"], rows[rows["model"] == "all"].squeeze()
        ends = [signed(value) for value in (each["difference"].min(), each["difference"].max())]
        yield (f"{title_of(metric)}, {name_of(arm_a)} − {name_of(arm_b)}, over {len(each)} models "
               f"(single models: {ends[0]} to {ends[1]})",
               with_interval(pooled["difference"], pooled["low"], pooled["high"]),
               int(each["n"].sum()))


def tolerant() -> Iterator[Line]:
    """Write what tolerant losses gain by vagueness, and without near-duplicates."""
    vague = table("13_when_to_forgive__curves").query("metric == 'test_rsum'")
    for level, rows in vague.groupby("vagueness"):
        yield from lines(rows, f", `scenes`, vagueness {level}")
    fewer = table("13_when_to_forgive__near_duplicates").query("metric == 'test_rsum'")
    for base, rows in fewer.groupby("setting", sort=False):
        yield from lines(rows, f", {name_of(base)}: change of it without near-duplicates")


def spoiled() -> Iterator[Line]:
    """Write what losses gain if a share of the training captions is wrong."""
    noisy = table("13_when_to_forgive__noise").query("metric == 'test_rsum'")
    for (base, share), rows in noisy.groupby(["setting", "noise"], sort=False):
        yield from lines(rows, f", {name_of(base)}, {share:.0%} wrong matches".replace("%", " %"))


def refused() -> Iterator[Line]:
    """Write how far scores tell texts with their picture from those without it, by loss."""
    for arm, rows in table("13_when_to_forgive__refusals").groupby("arm", sort=False):
        yield line(f"AUROC of texts with and without their picture, in %, − 50 (chance), "
                   f"{name_of(arm)}", rows["auroc"] - 50)
        yield line(f"% of texts answered with their picture − without it, {name_of(arm)}",
                   rows["answered"] - rows["wrongly_answered"])


def audited() -> Iterator[Line]:
    """Write how well exchanged captions are found, beside the loss of a model."""
    found = pd.read_csv(evidence_folder() / "common" / "captions.csv")
    for (data, share), rows in found.groupby(["data", "share"], sort=False):
        values = rows.pivot(index="seed", columns="method", values="average_precision")
        for other in ("final loss", "distance"):
            yield line(f"average precision, {share} % exchanged, {data}: audit − {other}",
                       values["audit"] - values[other])


def reranked() -> Iterator[Line]:
    """Write in how many models fast re-ranking raises RSUM, and the range of its gains."""
    gains = pd.concat(map(table, ("08_reranking__models", "09_stronger_models__reranked")))
    for whole, rows in gains.groupby(gains["group"].str.contains("transductive"), sort=False):
        queries = "all test queries" if whole else "queries of dev"
        yield (f"cases (model and loss) in which FR with {queries} raises RSUM (interval above 0)",
               f"{(rows['low'] > 0).sum()} of {len(rows)}", "")
        yield (f"mean RSUM that FR with {queries} adds, smallest and largest of all cases",
               f"{rows['difference'].min():.1f} to {rows['difference'].max():.1f}"
               .replace("-", "−"), "")


def averaged() -> Iterator[Line]:
    """Write what the mean of SAF and SGR finds more than each, and what graded losses gain."""
    rsum = itr.rows("flickr8k").set_index("run")["test_rsum"]
    for arm, rows in table("09_stronger_models__ensembles").groupby("arm", sort=False):
        members = rows["members"].str.split(r" \+ ", expand=True)
        for place, model in enumerate(("SAF", "SGR")):
            gain = rows["test_rsum"] - rsum.reindex(members[place]).to_numpy()
            loss = name_of(arm.partition("/")[2])
            yield line(f"RSUM, mean of SAF and SGR − {model} alone; loss {loss}", gain)


def attentive() -> Iterator[Line]:
    """Write what graded losses gain in models with attention."""
    gains = table("09_stronger_models__gain").query("setting in ('saf', 'sgr')")
    for model, rows in gains.groupby("setting", sort=False):
        rows = rows.assign(loss=rows["arm_a"].str.partition("/")[2])
        yield from lines(rows, f", {name_of(model)}")


def tuned() -> Iterator[Line]:
    """Write what losses gain over InfoNCE, by what learns of the text encoder; what it forgets."""
    for what, change in (("gains", ""), ("changes", " − frozen")):
        for way, rows in table(f"14_fine_tuning__{what}").groupby("tuned", sort=False):
            yield from lines(rows, f", {name_of(way)}{change}", "InfoNCE")
    for row in table("14_fine_tuning__learned").itertuples():
        yield (f"{title_of(row.metric)}, {name_of(row.loss)}: all layers − frozen",
               with_interval(row.difference, row.low, row.high), row.n)
    for loss, rows in table("14_fine_tuning__mixed").groupby("loss", sort=False):
        first, last = rows.sort_values("share")["agreement"].iloc[[0, -1]]
        yield (f"sentence agreement, {name_of(loss)}: all layers − frozen",
               signed(last - first, 1), rows["seed"].nunique())


def attended() -> Iterator[Line]:
    """Write how the attention of words in SAF compares with a map of the picture's centre."""
    places = table("11_attention_maps__places").query("arm == 'saf/hardest'")
    for words, measure, centre in (("share of the weight inside the boxes", "mass", "centre"),
                                   ("words whose largest weight is in a box", "hit", "centre_hit"),
                                   ("overlap with the boxes", "iou", "centre_iou")):
        yield line(f"{words}, in %: SAF − a map of the picture's centre",
                   places[measure] - places[centre])


def claimed() -> Iterator[Line]:
    """Count the verdicts on the claims of the papers."""
    claims = table("12_claims__ledger").query("origin == 'claim'")
    for outcome, count in claims["outcome"].value_counts().items():
        yield f"claims of the papers: {outcome}", f"{count} of {len(claims)}", ""


QUESTIONS: dict[str, tuple[str, Callable[[], Iterator[Line]]]] = {
    "Does a loss help over models?": ("09, 12", lambda: chain(
        over_models("test_rsum"), over_models(AGREEMENT), attentive())),
    "Which loss finds the match best?": ("13", partial(compared, "test_rsum")),
    "Which loss orders the other results as people do?": ("13", partial(compared, AGREEMENT)),
    "When does it help to tolerate false negatives?": ("13", tolerant),
    "And if training captions are wrong?": ("13", spoiled),
    "Which loss tells that the match is missing?": ("13", refused),
    "Does the audit find exchanged captions?": ("01", audited),
    "Does fast re-ranking help?": ("08, 09", reranked),
    "Does averaging two models help?": ("09", averaged),
    "Does the loss matter more if the text encoder learns?": ("14", tuned),
    "Is a word's attention on the object it names?": ("11", attended),
    "Do the papers' claims hold here?": ("12", claimed)}


def page() -> str:
    """Return the page: a table for each question of the README's findings."""
    parts = [HEAD]
    for question, (notebooks, found) in QUESTIONS.items():
        rows = pd.DataFrame(list(found()), columns=["measured", "value", "pairs"])
        parts += [f"## {question}", "", *markdown_lines(rows.assign(notebook=notebooks)), ""]
    return "\n".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    print(page(), end="")
