"""The arms of notebook 12, and which differences of the ledger are in which picture."""

import re
from collections.abc import Sequence
from typing import Self

import numpy as np
import pandas as pd
from pydantic import NonNegativeFloat, NonNegativeInt, model_validator

from itr_study.data import DATASETS
from itr_study.data.batches import EncodedSplit
from itr_study.evaluation.table import percent
from itr_study.lab.ledger.paired import FEWEST
from itr_study.lab.ledger.replication import SECOND_BASE, on_second
from itr_study.lab.ledger.report import ORIGINS, ledger_parts
from itr_study.lab.ledger.reported import load_claims, split_list
from itr_study.lab.ledger.verdict import named_arms, units_of
from itr_study.lab.runs.config import RunConfig
from itr_study.lab.studies import nb05_listwise, nb06_kendall, nb09_stronger_models, nb13_forgive
from itr_study.lab.studies.arms import ArmRun, Maker, base_config, over_seeds
from itr_study.lab.studies.bases import rate_in
from itr_study.lab.studies.nb03_topk import TopkClaims, d_arms, k_arms, part_arms, setting_arms
from itr_study.lab.studies.nb07_sub_embeddings import (
    SINGLE,
    WHOLE,
    Balance,
    Heads,
    Several,
    SubEmbeddingClaims,
    claimed_arms,
)
from itr_study.lab.studies.nb08_reranking import RerankingParameters, reranked_arms
from itr_study.lab.studies.nb09_stronger_models import StrongerParameters, claimed_stronger_arms
from itr_study.lab.studies.parameters import Factor, Names, Parameters, by_profile, like
from itr_study.lab.studies.results import curves, endings, generalisation, ranks_of
from itr_study.metrics import Ranks
from itr_study.metrics.recall import KS
from itr_study.plots.names import name_of
from itr_study.plots.tables import title_of

# Queries that have near duplicates, and how runs do on them: does tolerance help there (topk)?
#
#     split = caption_split(study.dataset, ["minilm"], absent)
#     rows = by_ambiguity(rows, ambiguous_queries(split))       ambiguous_rsum, clear_rsum

LEAST = 0.8  # cosine of two captions' sentence vectors
ROWS = 1000  # captions compared with all others at a time


def ambiguous_queries(split: EncodedSplit, least: float = LEAST) -> Ranks:
    """Find the images (I,) and texts (T,) that could mean another image, too.

    A caption of that one has a cosine (of MiniLM) of `least` or more with the text, or with a
    caption of the image.
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
    """Add ambiguous_rsum and clear_rsum: RSUM over the ambiguous queries of test and the others.

    What is searched is the same for both. NaN for arms that no claim compares so (`claimed_so`): of
    their runs no ranks are published. ValueError: one kind of query is missing, or ranks are of
    another split.
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
    """Return the arms that claims compare by these columns, in both base models."""
    claims = load_claims()
    by_them = claims[claims["metric"].str.contains("ambiguous_rsum")]
    arms = {arm for column in ("arm_a", "arm_b") for arms in by_them[column]
            for arm in split_list(arms)}
    return arms | set(map(on_second, arms))


# One picture each: its name, its title, and which differences it has, as a pattern of their claim,
# metric and arms; a difference is in the first one that fits.
TOPICS = {
    "labels": ("Claims on label sources", r"\S+ \S+ labels\("),
    "sweeps": ("Claims on k and d", r"topk\S+ \S+ [^/ ]+ "),
    "settings": ("Claims on losses in several settings", "topk"),
    "listwise_graded": ("Claims on Smooth-NDCG and graded relevance",
                        r"listwise\S+ test_\S*(ndcg_|_tau|human)"),
    "listwise_retrieval": ("Claims on Smooth-NDCG and recall",
                           r"listwise\S+ test_(rsum |i2t_r|t2i_r)"),
    "listwise_training": ("Claims on Smooth-NDCG while training", "listwise"),
    "bcls_graded": ("Claims on soft + windows and graded relevance",
                    r"bcls\S+ test_\S*(ndcg_|_tau|human)"),
    "bcls_retrieval": ("Claims on soft + windows and recall", "bcls"),
    "dvse_time": ("Claims on what three re-rankers cost", r"dvse-tab4\S* rerank_cpu_"),
    "dvse_gain": ("Claims on what three re-rankers gain", "dvse-tab4"),
    "dvse_scales": ("Claims on the scales of FR", r"dvse\S+ \S+ \S+@fast\("),
    "dvse_models": ("Claims on FR on every model", "dvse.*@"),
    "dvse_training": ("Claims on heads while training", r"dvse\S+ last_"),
    "dvse_parts": ("Claims on the parts of DVSE", r"dvse\S+ \S+ [^/ ]+/"),
    "dvse_sweeps": ("Claims on numbers of heads, β and η", "dvse")}


def topic_of(part: pd.Series) -> str:
    """Find the picture of a difference: a key of TOPICS."""
    arms = [part[name].removeprefix(f"{SECOND_BASE}/") for name in ("arm_a", "arm_b")]
    words = " ".join([part["id"], part["metric"], *arms])
    return next(name for name, (_, pattern) in TOPICS.items() if re.match(pattern, words))


def drawn_parts(claims: pd.DataFrame, rows: pd.DataFrame, table: pd.DataFrame,
                evidence: pd.DataFrame | None = None,
                elsewhere: Sequence[pd.DataFrame] = ()) -> pd.DataFrame:
    """List every difference behind the ledger, with what its picture shows.

    Composites are left out: their parts are claims of their own. Claims of papers come before ours.
    Of `table`, what `ledger` returns of the other arguments, it gives the rows of `ledger_parts`
    with topic (of TOPICS), unit, margin (of an equivalence), claim and label (in words), origin,
    verdict, and shown: of each claim and unit the smallest and the largest, and of an undecided
    claim a part that is undecided.
    """
    parts = ledger_parts(claims, rows, evidence, elsewhere)
    known = table[table["origin"] != "composite"].set_index("id")
    parts = parts[parts["id"].isin(known.index)].assign(
        origin=lambda all_: all_["id"].map(known["origin"]))
    about = known["statement"].map(named) + " (" + known["paper"] + ", " + known["place"] + ")"
    parts["claim"], parts["verdict"] = parts["id"].map(about), parts["outcome"]
    margins = parts["id"].map(known["margin"])
    parts["margin"] = pd.to_numeric(margins.str.rstrip("%"))
    parts["unit"] = list(map(units_of, parts["metric"], margins))
    parts["label"] = [contrast(*row) for row in zip(parts["metric"], parts["arm_a"],
                                                    parts["arm_b"], strict=True)]
    parts["topic"] = parts.apply(topic_of, axis=1)
    parts[["low", "high"]] = parts[["low", "high"]].replace([np.inf, -np.inf], np.nan)
    of_each = [parts["id"], parts["unit"]]
    ranks = parts["difference"].groupby(of_each).rank(method="first")
    shown = (ranks == 1) | (ranks == ranks.groupby(of_each).transform("max"))
    still = (parts["standing"] == "open") & (parts["verdict"] == "undecided")
    first = still & (still.groupby(of_each).cumsum() == 1)
    parts["shown"] = shown | first & ~(shown & still).groupby(of_each).transform("any")
    order = parts["origin"].map(ORIGINS.index)
    return parts.iloc[np.argsort(order, kind="stable")].reset_index(drop=True)


def named(statement: str) -> str:
    """Write the words of a claim with the names of its models.

    Example:
        >>> named("Top-5 performs better than the traditional loss: vsepp+gru")
        'Top-5 performs better than the traditional loss: VSE++, GRU'
    """
    return re.sub(r"\b[a-z_]+\+[a-z-]+\b", lambda found: name_of(found[0]), statement)


def ends_of(arm: str) -> str:
    """Write a mean of arms, or of steps between them, by its ends; "2 × …" for twice an arm.

    Example:
        >>> ends_of("mean(d=450|d=500|d=550)"), ends_of("mean(K=2|K=6)"), ends_of("sum")
        ('mean of d = 450 to 550', 'mean of K = 2 and 6', 'sum')
        >>> ends_of("step(d=200|d=250|d=300)"), ends_of("times(2|hardest)")
        ('mean step of d = 200 to 300', '2 × hardest')
    """
    kind, _, inside = arm.partition("(")
    if kind not in ("mean", "step", "times"):
        return arm
    first, *others, last = inside[:-1].split("|")
    if kind == "times":
        return f"{first} × {name_of(last)}"
    word, steps = "to" if others or kind == "step" else "and", "step " * (kind == "step")
    return f"mean {steps}of {name_of(first)} {word} {last.partition('=')[2]}"


def contrast(metric: str, arm_a: str, arm_b: str) -> str:
    """Write a difference in words: its metric, its model if it names one, both arms.

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


def shared_luck(rows: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """Measure how much luck two arms of one seed share, over all pairs of some arms.

    Gives metric, arms, seeds, correlation (over seeds, mean of all pairs), and variance of a paired
    difference in % of that of an unpaired one; without metrics of too few seeds.
    """
    lines = []
    for metric in metrics:
        values = rows.pivot(index="seed", columns="arm", values=metric).dropna()
        seeds, arms = values.shape
        if seeds >= FEWEST:
            others = ~np.eye(arms, dtype=bool)
            spreads = values.cov().to_numpy()
            between = spreads[others].sum() / (arms - 1)
            lines.append((title_of(metric), arms, seeds, values.corr().to_numpy()[others].mean(),
                          100 * (1 - between / np.trace(spreads))))
    return pd.DataFrame(lines, columns=["metric", "arms", "seeds", "correlation",
                                        "variance of a paired difference, %"])


# What learning curves say about a run, as columns of its row: claims about training itself.
#
#     rows = milestones(train_arms(arms, ...))     first_ndcg, last_error, half_rsum ...

# Means over an epoch of what a loss says of itself -> names here; percent, as all metrics are.
LOGGED = {"smooth_ndcg.ndcg": "ndcg", "smooth_ndcg.smooth_ndcg": "smooth_ndcg",
          "smooth_ndcg.error": "error", "orthogonality.correlation": "head_correlation",
          "orthogonality.mask_rate": "mask_rate", "orthogonality.mask_std": "mask_std",
          "variance_weighted.sigma_std": "sigma_std"}
HALF = {"dev_rsum": ("half_rsum", 1), "triplet_hardest": ("half_hinge", 100)}


def milestones(rows: pd.DataFrame) -> pd.DataFrame:
    """Add what learning curves say, NaN if a run does not log it.

    first_<name>, last_<name> for ndcg, smooth_ndcg and error: the loss's diagnostics on training
    batches (listwise Figs. 6, 7), means over the first and the last epoch, percent; the same of
    heads for head_correlation, mask_rate, mask_std, sigma_std (dvse Figs. 4, 6); ndcg_apart:
    100 (1 - correlation) of true and smooth NDCG over the epochs; half_rsum: RSUM on dev when
    half of the epochs are done; half_hinge: the hardest-negative term of the training loss then,
    unweighted, in hundredths of a score; epoch_seconds: the median epoch, evaluation on dev
    included; collapsed, flattened: see `endings`; stood: 100 if the run has not collapsed, else 0.
    And of the row itself, generalisation: see there.

    Args: rows: as `train_arms` gives them.
    """
    by_run = curves(rows).groupby(["arm", "seed"], sort=False)
    milestones_of = {key: _milestones(epochs) for key, epochs in by_run}
    keys = zip(rows["arm"], rows["seed"], strict=True)
    columns = pd.DataFrame([milestones_of.get(key, {}) for key in keys], index=rows.index)
    ends = endings(rows)
    return pd.concat([rows, columns, ends], axis=1).assign(
        stood=(100.0 * (ends["collapsed"] == "")).where(rows["status"] == "done"),
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
    """Compute 100 (1 - correlation); NaN if either does not move, or of fewer than three epochs."""
    if len(one.dropna()) < 3 or min(one.std(), two.std()) == 0:
        return np.nan
    return percent(1 - float(np.corrcoef(one, two)[0, 1]))


# Arms for claims that are judged by exact relevance, which generated data alone has.
#
# They are trained on `scenes` at its own size, whatever data set a notebook looks at, and their
# rows are published in evidence/scenes.

EXACT_DATA = "scenes"


def exact_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List every arm that a claim about exact relevance names; none on generated data."""
    if DATASETS[dataset].generated:
        return []
    seeds = parameters.exact_seeds
    own_size = parameters.model_copy(update={
        "scenes": {}, "data_options": {}, "images": None, "seeds": seeds, "term_seeds": seeds,
        "tau_seeds": seeds, "compared_seeds": seeds,
        "label_sources": [*parameters.label_sources, "exact"]}).with_rates({})
    named = {arm for claim in load_claims().to_dict("records") if "_exact" in claim["metric"]
             for arm in named_arms(claim["arm_a"], claim["arm_b"])}
    runs = [run for make in (
        nb05_listwise.term_arms, nb05_listwise.tau_arms, nb05_listwise.label_arms,
        nb06_kendall.branch_arms, nb06_kendall.compared_arms)
            for run in make(EXACT_DATA, own_size) if run.label in named]
    return list({(run.label, run.config.seed): run for run in runs}.values())


# The second base model of the ledger: arms of the sweeps on the base `clean_gru`.
#
# An arm has the objective that its label has in the sweeps; only the model is another. Labels are
# "clean_gru/<label of the sweeps>".

JUDGED = ("sum", "hardest", "soft", "top5", "k=1", "k=3", "k=10", "hardest+listwise", "tau=0.1",
          "hardest+listwise(cider)", "windows", "bcls", "alpha=0", "alpha=0.6", "gamma=10",
          "gamma=200", "ladder", "hardest+sam", "soft+kendall", "info_nce", "bcls(cider)",
          "ladder(cider)", "soft+kendall(cider)")
# One sweep, one learning rate, as in the sweeps' own model: whose rate an arm takes.
KIN = {"k=1": "hardest", "k=3": "top5", "k=10": "top5", "tau=0.1": "hardest+listwise",
       "hardest+listwise(cider)": "hardest+listwise", "alpha=0": "bcls", "alpha=0.6": "bcls",
       "gamma=10": "soft", "gamma=200": "soft", "bcls(cider)": "bcls", "ladder(cider)": "ladder",
       "soft+kendall(cider)": "soft+kendall"}
SEARCHED = tuple(arm for arm in JUDGED if arm not in KIN)
# Multiples that are tried besides those of all, where the best of all lay at an end of them.
WIDER = {"windows": (0.5,)}
# Makers whose arms differ in their objective alone: `d_arms` and the rest of notebook 06 do not.
SWEEPS: tuple[Maker, ...] = (
    k_arms, nb05_listwise.term_arms, nb05_listwise.tau_arms, nb05_listwise.label_arms,
    nb05_listwise.alternative_arms, nb06_kendall.branch_arms, nb06_kendall.alpha_arms,
    nb06_kendall.beta_arms, nb06_kendall.sampling_arms, nb06_kendall.gamma_arms,
    nb06_kendall.label_arms, nb06_kendall.compared_arms)


def second_base_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List the arms of JUDGED that these parameters sweep, over `parameters.second_seeds`.

    Other labels of the same runs come along: "k=5" is "top5", "alpha=0.2" is "bcls", and
    "tau=0.01" is "hardest+listwise". "k=1" is the hardest negative by another loss, in runs of its
    own, as in the sweeps.
    """
    if not parameters.second_seeds:
        return []
    swept = swept_configs(dataset, parameters)
    rates = second_base_rates(dataset, parameters)
    return [run for label, config in swept.items() for arm in JUDGED if swept.get(arm) == config
            for run in over_seeds(f"{SECOND_BASE}/{label}", _judged(config, parameters, rates[arm]),
                                  parameters.second_seeds, setting=SECOND_BASE, loss=label)]


def second_base_rate_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List the search of learning rates for `parameters.second_searched`, for `arms.rate_table`.

    Multiples `parameters.second_factors` of the base's rate and those of WIDER, seed 0, as
    "clean_gru/<label>/<rate>".
    """
    if not parameters.second_searched:
        return []
    usual = base_config(dataset, SECOND_BASE, parameters).settings.learning_rate
    swept = swept_configs(dataset, parameters)
    return [run for arm in parameters.second_searched
            for times in sorted({*parameters.second_factors, *WIDER.get(arm, ())})
            for rate in [float(f"{times * usual:g}")]
            for run in over_seeds(f"{SECOND_BASE}/{arm}/{rate:g}",
                                  _judged(swept[arm], parameters, rate), 1, setting=SECOND_BASE,
                                  loss=arm, rate=rate)]


def second_base_rates(dataset: str, parameters: Parameters) -> dict[str, float]:
    """Return the learning rate of every arm of JUDGED: its own, that of its KIN, or of "hardest".

    If nobody has searched, all take the base's.
    """
    usual = base_config(dataset, SECOND_BASE, parameters).settings.learning_rate
    return {arm: rate_in(dataset, SECOND_BASE, KIN.get(arm, arm), usual, parameters.rates_here)
            for arm in JUDGED}


def swept_configs(dataset: str, parameters: Parameters) -> dict[str, RunConfig]:
    """Return every label of the sweeps with the config of its first run."""
    return {run.label: run.config for make in SWEEPS for run in make(dataset, parameters)
            if run.config.seed == 0}


def _judged(config: RunConfig, parameters: Parameters, rate: float) -> RunConfig:
    """Make a run of the sweeps in the second base model."""
    return base_config(config.dataset, SECOND_BASE, parameters, objective=config.objective,
                       **{"settings.learning_rate": rate})


# What the notebook trains, and its parameters.

INSIDE = 3  # rates of a search, at least: the best may lie at neither end
def claimed_noise_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List the losses of notebook 13 with caption noise, over `parameters.noise_seeds`, 0: none."""
    noisy = parameters.model_copy(update={
        "seeds": parameters.noise_seeds, "noises": nb13_forgive.WHOLE["noises"],
        "tolerant": list(nb13_forgive.FORGIVING), "second_losses": ["hardest", "top5", "soft"]})
    return [arm for arm in nb13_forgive.noise_arms(dataset, noisy) if arm.factors["noise"]]


PAPERS: dict[str, tuple[Maker, ...]] = {
    "topk": (k_arms, d_arms, part_arms, setting_arms), "listwise": nb05_listwise.CLAIMED,
    "bcls": nb06_kendall.CLAIMED, "dvse": (reranked_arms, claimed_arms, claimed_noise_arms)}


class ClaimsParameters(TopkClaims, nb05_listwise.ListwiseClaims, nb06_kendall.KendallClaims,
                       nb06_kendall.ComparedLosses, SubEmbeddingClaims, title="12_claims"):
    """Parameters of notebook 12."""

    papers: Names = by_profile("papers whose variants are trained: topk, listwise, bcls, dvse",
                               *3 * [list(PAPERS)], among=PAPERS)
    exact_seeds: NonNegativeInt = by_profile(
        "runs on scenes of each variant compared by exact relevance", 1, 1, 10)
    second_seeds: NonNegativeInt = by_profile(
        "runs of each variant in the second base model, 0: none", 0, 0, 5)
    second_factors: list[Factor] = by_profile(
        "multiples of its base's rate that are tried, above 0",
        [0.5, 1.0, 2.0], [0.25, 0.5, 1.0, 2.0, 4.0], [1.0, 2.0, 4.0])
    second_searched: Names = by_profile(
        "its variants whose learning rate is searched, on dev", [], [], list(SEARCHED), empty=True)
    reranked: Names = like(RerankingParameters, "reranked")
    dvse_seeds: NonNegativeInt = by_profile(
        "runs of each variant of DVSE, 0: such claims wait", 1, 0, 5)
    noise_seeds: NonNegativeInt = by_profile(
        "runs of each loss with caption noise, 0: such claims wait", 0, 0, 5)
    components: Names = like(SubEmbeddingClaims, "components", smoke=[WHOLE, SINGLE])
    heads: list[Heads] = like(SubEmbeddingClaims, "heads", smoke=[0, 2])
    bounds: list[NonNegativeFloat] = like(SubEmbeddingClaims, "bounds", smoke=[0.4])
    balances: list[Balance] = like(SubEmbeddingClaims, "balances", smoke=[0.6])
    pvse_heads: list[Several] = like(SubEmbeddingClaims, "pvse_heads", smoke=[1])
    stronger: Names = like(StrongerParameters, "stronger", smoke=nb09_stronger_models.CLAIMED)
    stronger_seeds: NonNegativeInt = by_profile(
        "runs of each of these, 0: claims about them wait", 0, 0, 5)

    @model_validator(mode="after")
    def check_searched(self) -> Self:
        """Refuse a search of what is not swept, or without an inside."""
        if self.second_searched:
            swept = swept_configs(self.dataset, self)
            self.check_within("second_searched", [arm for arm in SEARCHED if arm in swept])
            if len(self.second_factors) < INSIDE:
                raise ValueError(f"second_factors must hold {INSIDE} or more for second_searched, "
                                 f"got {self.second_factors}: a best rate at an end is not chosen")
        return self


def ledger_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List every arm that the claims of the papers chosen name, once, with all measures needed.

    Raises: ValueError: one label means two runs.
    """
    arms, chosen = {}, [make for paper in parameters.papers for make in PAPERS[paper]]
    for arm in (arm for make in (*chosen, claimed_stronger_arms)
                for arm in make(dataset, parameters)):
        key = (arm.label, arm.config.seed)
        known = arms.setdefault(key, arm)
        if known.config != arm.config:
            raise ValueError(f"arm {arm.label!r}, seed {arm.config.seed}, names two runs; "
                             "give one of them another label")
        arms[key] = known._replace(needs=tuple(sorted({*known.needs, *arm.needs})))
    return list(arms.values())


ARMS: tuple[Maker, ...] = (ledger_arms, second_base_rate_arms, second_base_arms, exact_arms)
