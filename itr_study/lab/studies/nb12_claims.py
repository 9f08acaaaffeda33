"""How notebook 12 draws the ledger: which differences stand in which picture, and in what words."""

import re
from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pandas as pd

from itr_study.data import DATASETS
from itr_study.data.batches import EncodedSplit
from itr_study.digits import number
from itr_study.evaluation.percent import percent
from itr_study.lab.ledger.judges import JUDGE, on_judge
from itr_study.lab.ledger.paired import FEWEST
from itr_study.lab.ledger.report import ORIGINS, TITLES, ledger_parts
from itr_study.lab.ledger.reported import load_claims, split_list
from itr_study.lab.ledger.verdict import asks_exact, named_arms, unit_of
from itr_study.lab.runs.config import RunConfig
from itr_study.lab.studies.arms import ArmRun, Maker, base_config, over_seeds
from itr_study.lab.studies.bases import rate_in
from itr_study.lab.studies.nb03_topk import k_arms
from itr_study.lab.studies.nb05_listwise import alternative_arms, label_arms, tau_arms, term_arms
from itr_study.lab.studies.nb06_kendall import (
    alpha_arms,
    beta_arms,
    branch_arms,
    compared_arms,
    gamma_arms,
    sampling_arms,
)
from itr_study.lab.studies.results import curves, endings, generalisation, ranks_of
from itr_study.lab.studies.timing import RERANKING
from itr_study.metrics import Ranks
from itr_study.metrics.recall import KS
from itr_study.plots.names import name_of
from itr_study.plots.tables import title_of

# Queries that have near duplicates, and how runs do on them: does forgiving help there (topk)?
#
#     split = caption_split(study.dataset, ["minilm"], absent)
#     rows = by_ambiguity(rows, ambiguous_queries(split))       ambiguous_rsum, clear_rsum

LEAST = 0.8  # cosine of two captions' sentence vectors
ROWS = 1000  # captions compared with all others at a time


def ambiguous_queries(split: EncodedSplit, least: float = LEAST) -> Ranks:
    """Which images (I,) and texts (T,) another image could be meant by: a caption of that one has a
    cosine of `least` or more with the text, or with a caption of the image.

    Args:    split: with label vectors of MiniLM.
    """
    vectors, owner = np.asarray(split.label_vectors["minilm"], np.float32), split.image_of_text
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    texts = np.concatenate([
        ((vectors[at:at + ROWS] @ vectors.T >= least)
         & (owner[at:at + ROWS, None] != owner)).any(axis=1) for at in range(0, len(owner), ROWS)])
    images = np.zeros(split.n_images, bool)
    np.logical_or.at(images, owner, texts)
    return Ranks(images, texts)


def by_ambiguity(rows: pd.DataFrame, ambiguous: Ranks) -> pd.DataFrame:
    """The rows with two more columns: ambiguous_rsum and clear_rsum, RSUM over the queries that are
    ambiguous and over the others; what is searched is the same for both. NaN for arms that no claim
    compares so (`claimed_so`): of their runs no ranks are published.

    Args:    rows: as `train_arms` gives them; ambiguous: of the test split.
    Raises:  ValueError where one kind of query is missing, or ranks are of another split.
    """
    both = ambiguous.i2t, ambiguous.t2i
    for direction, chosen in zip(("images", "texts"), both, strict=True):
        if chosen.all() or not chosen.any():
            raise ValueError(f"{chosen.sum()} of {len(chosen)} {direction} are ambiguous: there is "
                             "nothing to compare")
    columns: dict[str, list[float]] = {"ambiguous_rsum": [], "clear_rsum": []}
    claimed = rows[rows["arm"].isin(claimed_so())]
    for row in claimed.to_dict("records"):
        ranks = ranks_of(row)
        if (len(ranks.i2t), len(ranks.t2i)) != tuple(map(len, both)):
            raise ValueError(f"run {row['run']} has ranks of {len(ranks.i2t)} images and "
                             f"{len(ranks.t2i)} texts, not of this split")
        for name, wanted in zip(columns, (True, False), strict=True):
            columns[name].append(sum(
                percent(float((side[chosen == wanted] <= k).mean()))
                for side, chosen in zip((ranks.i2t, ranks.t2i), both, strict=True) for k in KS))
    return rows.join(pd.DataFrame(columns, claimed.index, dtype=float))


def claimed_so() -> set[str]:
    """The arms that claims compare by these columns, those of the second judge among them."""
    claims = load_claims()
    by_them = claims[claims["metric"].str.contains("ambiguous_rsum")]
    arms = {arm for column in ("arm_a", "arm_b") for arms in by_them[column]
            for arm in split_list(arms)}
    return arms | set(map(on_judge, arms))


# One picture each: its name, what it is about.
TOPICS = {"sweeps": "k and d", "settings": "the losses in several settings",
          "listwise_retrieval": "+ Listwise and recall",
          "listwise_graded": "+ Listwise and graded truth",
          "listwise_training": "+ Listwise while training",
          "bcls_retrieval": "soft + windows and recall",
          "bcls_graded": "soft + windows and graded truth", "labels": "label sources",
          "dvse_gain": "what three re-rankers gain", "dvse_time": "what three re-rankers cost",
          "dvse_models": "FR on every model", "dvse_scales": "the scales of FR",
          "dvse_parts": "the parts of DVSE", "dvse_sweeps": "numbers of heads, β and η",
          "dvse_training": "heads while training"}

RIGHT = {"reproduced": "right here (reproduced)", "contradicted": "wrong here (contradicted)"}


def topic_of(part: pd.Series) -> str:
    """The picture that a difference stands in: a key of TOPICS."""
    paper, metric = part["id"].split("-")[0], part["metric"]
    arm = part["arm_a"].removeprefix(f"{JUDGE}/")  # judges share their pictures
    if arm.startswith("labels("):
        return "labels"
    if paper == "topk":
        return "settings" if "/" in arm else "sweeps"
    if paper == "dvse":
        if part["id"].startswith("dvse-tab4"):
            return "dvse_time" if metric == RERANKING else "dvse_gain"
        if "@" in arm + part.get("arm_b", ""):
            return "dvse_scales" if "@fast(" in arm else "dvse_models"
        return "dvse_training" if metric.startswith("last_") else (
            "dvse_parts" if "/" in arm else "dvse_sweeps")
    if metric.startswith("test_") and any(of in metric for of in ("ndcg_", "_tau", "human")):
        return f"{paper}_graded"
    recalls = metric == "test_rsum" or metric.startswith(("test_i2t_r", "test_t2i_r"))
    return f"{paper}_retrieval" if recalls or paper == "bcls" else f"{paper}_training"


def drawn_parts(claims: pd.DataFrame, rows: pd.DataFrame, table: pd.DataFrame,
                evidence: pd.DataFrame | None = None,
                elsewhere: Sequence[pd.DataFrame] = ()) -> pd.DataFrame:
    """Every difference behind the ledger, as `ledger_parts` gives it, with what its picture shows:
    topic (of TOPICS), unit, margin (of an equivalence), claim and label (in words), origin,
    verdict, and whether it is shown, which of each claim and unit the smallest and the largest are.
    Composites are left out: their parts are claims of their own. What a paper claims comes before
    what we ask beside it.

    Args:    claims, rows, evidence, elsewhere: as in `ledger`, which gives the table.
    """
    parts = ledger_parts(claims, rows, evidence, elsewhere)
    known = table[table["origin"] != "composite"].set_index("id")
    parts = parts[parts["id"].isin(known.index)].assign(
        origin=lambda all_: all_["id"].map(known["origin"]))
    about = known["statement"].map(named) + " (" + known["paper"] + ", " + known["place"] + ")"
    parts["claim"], parts["verdict"] = parts["id"].map(about), parts["outcome"]
    margins = parts["id"].map(known["margin"])
    parts["margin"] = pd.to_numeric(margins.str.rstrip("%"))
    parts["unit"] = list(map(unit_of, parts["metric"], margins))
    parts["label"] = [contrast(*row) for row in zip(parts["metric"], parts["arm_a"],
                                                    parts["arm_b"], strict=True)]
    parts["topic"] = parts.apply(topic_of, axis=1)
    parts[["low", "high"]] = parts[["low", "high"]].replace([np.inf, -np.inf], np.nan)
    ranks = parts.groupby(["id", "unit"])["difference"].rank(method="first")
    largest = parts.groupby(["id", "unit"])["difference"].transform("size")
    order = parts["origin"].map(ORIGINS.index)
    return parts.assign(shown=(ranks == 1) | (ranks == largest)).iloc[
        np.argsort(order, kind="stable")].reset_index(drop=True)


def named(statement: str) -> str:
    """The words of a claim, with the names of the models that it names.

    Example:
        >>> named("Top-5 performs better than the traditional loss: vsepp+gru")
        'Top-5 performs better than the traditional loss: VSE++, GRU'
    """
    return re.sub(r"\b[a-z_]+\+[a-z-]+\b", lambda found: name_of(found[0]), statement)


def ends_of(arm: str) -> str:
    """Of "mean(d=450|d=500|d=550)" the first and the last; "2 × …" for twice the value.

    Example:
        >>> ends_of("mean(d=450|d=500|d=550)"), ends_of("times(2|hardest)"), ends_of("sum")
        ('mean(d=450…d=550)', '2 × hardest', 'sum')
    """
    inner = arm.split("|")
    if arm.startswith("times("):
        return f"{inner[0][6:]} × {name_of(inner[1][:-1])}"
    return "…".join([inner[0], inner[-1]]) if len(inner) > 1 else arm


def contrast(metric: str, arm_a: str, arm_b: str) -> str:
    """A difference in words: its metric, its model where one is named, one arm less the other.

    Example:
        >>> contrast("test_rsum", "vsepp+gru/top5", "vsepp+gru/sum"), contrast("half_rsum", "soft",
        ...                                                                   "zero")
        ('RSUM, VSE++, GRU: top-5 − sum', 'half RSUM: soft')
    """
    metrics = title_of(metric).replace("_", " ").replace("rsum", "RSUM").replace("ndcg", "NDCG")
    arms = [ends_of(arm) for arm in (arm_a, arm_b) if arm != "zero"]  # "zero": a value, no gain
    setting = arms[0].partition("/")[0]
    if "/" in arms[0] and all(arm.startswith(f"{setting}/") for arm in arms):
        metrics += f", {name_of(setting)}"
        arms = [arm.removeprefix(f"{setting}/") for arm in arms]
    return f"{metrics}: {' − '.join(map(name_of, arms))}"


def tally(parts: pd.DataFrame, topic: str) -> str:
    """What the claims of a picture came to, and apart from them our checks, for its title."""
    said = []
    for origin in ORIGINS[:2]:
        outcomes = parts[parts["origin"] == origin].groupby("id")["outcome"].first()
        if len(outcomes):
            counts = ", ".join(f"{n} {RIGHT.get(outcome, outcome)}"
                               for outcome, n in outcomes.value_counts().items())
            said.append(f"{TITLES[origin].lower()}: {counts}")
    return f"On {topic}, " + "; ".join(said)


def settled_apart(standings: Sequence[str]) -> str:
    """How many differences are settled by themselves, for a note."""
    standings = list(standings)
    be = "is" if standings.count("for") == 1 else "are"
    return (f"of {len(standings)} differences {standings.count('for')} {be} settled for the claim, "
            f"{standings.count('against')} against it, each at 95 %")


def shared_luck(rows: pd.DataFrame, metrics: Sequence[str]) -> str:
    """How much luck two arms of one seed share, over all pairs of some arms, as a sentence: the
    mean correlation over seeds, and the variance of a paired difference as a share of that of an
    unpaired one.

    Args:    rows: as `Study.train` gives them, of arms that share their seeds.
    """
    said = []
    for metric in metrics:
        values = rows.pivot(index="seed", columns="arm", values=metric).dropna()
        if len(values) < FEWEST:
            return f"Too few seeds to say how much luck arms share ({FEWEST} are needed)."
        spreads, n = values.cov(), values.shape[1]
        between = (spreads.to_numpy().sum() - np.trace(spreads)) / (n - 1)  # sum over pairs, twice
        said.append(f"{title_of(metric)} {number(off_diagonal(values.corr()), 2)}, "
                    f"{100 * (1 - between / np.trace(spreads)):.0f} %")
    return (f"Over {n} losses of one model: mean correlation over {len(values)} seeds, and "
            f"variance of a paired difference in % of that of an unpaired one: {'; '.join(said)}.")


def off_diagonal(table: pd.DataFrame) -> float:
    """The mean of a symmetric table without its diagonal."""
    n = len(table)
    return float((table.to_numpy().sum() - np.trace(table)) / (n * (n - 1)))


# What learning curves say about a run, as columns beside its row: claims about training itself.
#
#     rows = milestones(train_arms(arms, ...))     first_ndcg, last_error, half_rsum ...

# Means over an epoch of what a loss says of itself -> names here; percent, as all metrics are.
LOGGED = {"smooth_ndcg.ndcg": "ndcg", "smooth_ndcg.smooth_ndcg": "smooth_ndcg",
          "smooth_ndcg.error": "error", "orthogonality.correlation": "head_correlation",
          "orthogonality.mask_rate": "mask_rate", "orthogonality.mask_std": "mask_std",
          "variance_weighted.sigma_std": "sigma_std"}
HALF = {"dev_rsum": ("half_rsum", 1), "triplet_hardest": ("half_hinge", 100)}


def milestones(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with more columns, NaN where a run does not log what they are made of.

    first_<name>, last_<name> for ndcg, smooth_ndcg and error: the loss's diagnostics on training
    batches (listwise Figs. 6, 7), means over the first and the last epoch, percent; the same of
    heads for head_correlation, mask_rate, mask_std, sigma_std (dvse Figs. 4, 6); ndcg_apart:
    100 (1 - correlation) of true and smooth NDCG over the epochs; half_rsum: RSUM on dev when
    half of the epochs are done; half_hinge: the hardest-negative term of the training loss then,
    unweighted, in hundredths of a score; epoch_seconds: the median epoch, evaluation on dev
    included; collapsed, flattened: see `endings`. And of the row itself, generalisation: see there.

    Args:    rows: as `train_arms` gives them.
    """
    by_run = curves(rows).groupby(["arm", "seed"], sort=False)
    milestones_of = {key: _milestones(epochs) for key, epochs in by_run}
    keys = zip(rows["arm"], rows["seed"], strict=True)
    columns = pd.DataFrame([milestones_of.get(key, {}) for key in keys], index=rows.index)
    return pd.concat([rows, columns, endings(rows)], axis=1).assign(
        generalisation=generalisation(rows))


def _milestones(epochs: pd.DataFrame) -> dict[str, float]:
    """Of one run, epochs in order."""
    first, last, half = (epochs.iloc[at] for at in (0, -1, max(1, len(epochs) // 2) - 1))
    columns = {"epoch_seconds": epochs["seconds"].median()}
    columns |= {f"{when}_{short}": percent(epoch[name]) for name, short in LOGGED.items()
                if name in epochs for when, epoch in (("first", first), ("last", last))}
    columns |= {short: scale * half[name] for name, (short, scale) in HALF.items()
                if name in epochs}
    if {"smooth_ndcg.ndcg", "smooth_ndcg.smooth_ndcg"} <= set(epochs):
        columns["ndcg_apart"] = _apart(epochs["smooth_ndcg.ndcg"],
                                       epochs["smooth_ndcg.smooth_ndcg"])
    return columns


def _apart(one: pd.Series, two: pd.Series) -> float:
    """100 (1 - correlation); NaN where either does not move, or fewer than three epochs say."""
    if len(one.dropna()) < 3 or min(one.std(), two.std()) == 0:
        return np.nan
    return percent(1 - float(np.corrcoef(one, two)[0, 1]))


# Arms for claims that are judged by exact relevance, which generated data alone has.
#
# They are trained on `scenes` at its own size, whatever data set a notebook looks at, and their
# rows are published in evidence/scenes.

EXACT_DATA = "scenes"


def exact_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Every arm that a claim about exact relevance names, with `parameters.exact_seeds` seeds; none
    on generated data, whose own runs have exact relevance."""
    if DATASETS[dataset].generated:
        return []
    seeds = parameters.exact_seeds
    own_size = SimpleNamespace(**vars(parameters) | {
        "scenes": {}, "data_options": {}, "images": None, "seeds": seeds, "term_seeds": seeds,
        "tau_seeds": seeds, "compared_seeds": seeds,
        "label_sources": [*parameters.label_sources, "exact"]})
    named = {arm for claim in load_claims().to_dict("records") if asks_exact(claim)
             for arm in named_arms(claim["arm_a"], claim["arm_b"])}
    runs = [run for make in (term_arms, tau_arms, label_arms, branch_arms, compared_arms)
            for run in make(EXACT_DATA, own_size) if run.label in named]
    return list({(run.label, run.config.seed): run for run in runs}.values())


# The second judge of the ledger: twenty arms of the sweeps on the base `clean_gru`.
#
# An arm has the objective that its label has in the sweeps; only the model is another. Labels are
# "clean_gru/<label of the sweeps>".

ARMS = ("sum", "hardest", "soft", "top5", "k=1", "k=3", "k=10", "hardest+listwise", "tau=0.1",
        "hardest+listwise(cider)", "windows", "bcls", "alpha=0", "alpha=0.6", "gamma=10",
        "gamma=200", "ladder", "hardest+sam", "soft+kendall", "info_nce")
# One sweep, one learning rate, as in the sweeps' own model: whose rate an arm takes.
KIN = {"k=1": "hardest", "k=3": "top5", "k=10": "top5", "tau=0.1": "hardest+listwise",
       "hardest+listwise(cider)": "hardest+listwise", "alpha=0": "bcls", "alpha=0.6": "bcls",
       "gamma=10": "soft", "gamma=200": "soft"}
SEARCHED = tuple(arm for arm in ARMS if arm not in KIN)
# Multiples that are tried besides those of all, where the best of all lay at an end of them.
WIDER = {"windows": (0.5,)}
# Makers whose arms differ in their objective alone: `d_arms` and the rest of notebook 06 do not.
SWEEPS: tuple[Maker, ...] = (
    k_arms, term_arms, tau_arms, label_arms, alternative_arms, branch_arms, alpha_arms, beta_arms,
    sampling_arms, gamma_arms, compared_arms)


def why_one_judge(parameters: SimpleNamespace) -> str:
    """Why no second judge runs, as a sentence; empty where it does."""
    return (f"The second judge, {JUDGE}, is left out (judge_seeds = 0): every claim has one judge "
            "here.") * (not parameters.judge_seeds)


def judge_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """The arms of ARMS that these parameters sweep, over `parameters.judge_seeds` seeds.

    Other labels of the same runs come along: "k=5" is "top5", "alpha=0.2" is "bcls", and
    "tau=0.01" is "hardest+listwise". "k=1" is the hardest negative by another loss, in runs of its
    own, as in the sweeps.
    """
    if not parameters.judge_seeds:
        return []
    swept = swept_configs(dataset, parameters)
    rates = judge_rates(dataset, parameters)
    return [run for label, config in swept.items() for arm in ARMS if swept.get(arm) == config
            for run in over_seeds(f"{JUDGE}/{label}", _judged(config, parameters, rates[arm]),
                                  parameters.judge_seeds)]


def judge_rate_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """The search of learning rates for `parameters.judge_searched` of SEARCHED: multiples
    `parameters.judge_factors` of the base's rate and those of WIDER, seed 0, as
    "clean_gru/<label>/<rate>".

    `rates.chosen_rates` chooses on dev from `rates.rate_table` of these rows, and refuses the edge.
    """
    if not parameters.judge_searched:
        return []
    usual = base_config(dataset, JUDGE, parameters).settings.learning_rate
    swept = swept_configs(dataset, parameters)
    return [ArmRun(f"{JUDGE}/{arm}/{times * usual:g}",
                   _judged(swept[arm], parameters, float(f"{times * usual:g}")))
            for arm in parameters.judge_searched
            for times in sorted({*parameters.judge_factors, *WIDER.get(arm, ())})]


def judge_rates(dataset: str, parameters: SimpleNamespace) -> dict[str, float]:
    """The learning rate of every arm of ARMS: the one frozen in [rates.clean_gru] for it, or for
    the arm of KIN that it varies; one without takes that of "hardest". Where nobody has searched,
    all take the base's."""
    usual = base_config(dataset, JUDGE, parameters).settings.learning_rate
    return {arm: rate_in(dataset, JUDGE, KIN.get(arm, arm), usual) for arm in ARMS}


def swept_configs(dataset: str, parameters: SimpleNamespace) -> dict[str, RunConfig]:
    """Every label of the sweeps with the config of its first run."""
    return {run.label: run.config for make in SWEEPS for run in make(dataset, parameters)
            if run.config.seed == 0}


def _judged(config: RunConfig, parameters: SimpleNamespace, rate: float) -> RunConfig:
    """A run of the sweeps in the second judge's model, at a learning rate."""
    return base_config(config.dataset, JUDGE, parameters, objective=config.objective,
                       **{"settings.learning_rate": rate})
