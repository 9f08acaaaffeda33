"""The second judge of the ledger: twenty arms of the sweeps on the base `clean_gru`.

An arm has the objective that its label has in the sweeps; only the model is another. Labels are
"clean_gru/<label of the sweeps>". It exists where the data set has that base.
"""

from types import SimpleNamespace

from itr_study.ledger.judges import JUDGE
from itr_study.runs.config import RunConfig
from itr_study.studies.arms import ArmRun, Maker, base_config, over_seeds
from itr_study.studies.bases import base_tables, datasets_with_bases, rate_in
from itr_study.studies.bcls import (
    alpha_arms,
    beta_arms,
    branch_arms,
    compared_arms,
    gamma_arms,
    sampling_arms,
)
from itr_study.studies.listwise import alternative_arms, label_arms, tau_arms, term_arms
from itr_study.studies.topk import k_arms

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


def why_one_judge(dataset: str, parameters: SimpleNamespace) -> str:
    """Why no second judge runs on a data set, as a sentence; empty where it does."""
    if dataset not in datasets_with_bases() or JUDGE not in base_tables(dataset):
        return (f"{dataset} has no base config {JUDGE}, which the second judge is: every claim has "
                "one judge here.")
    if not parameters.judge_seeds:
        return (f"The second judge, {JUDGE}, is left out (judge_seeds = 0): every claim has one "
                "judge here.")
    return ""


def judge_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """The arms of ARMS that these parameters sweep, over `parameters.judge_seeds` seeds; none where
    a data set has no such judge.

    Other labels of the same runs come along: "k=5" is "top5", "alpha=0.2" is "bcls", and
    "tau=0.01" is "hardest+listwise". "k=1" is the hardest negative by another loss, in runs of its
    own, as in the sweeps.
    """
    if why_one_judge(dataset, parameters):
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
    Raises:  ValueError for a data set without this base, where somebody asks for a search.
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
