"""Which runs each notebook trains. An arm is a label of the ledger with one run per seed.

    parameters = choose("03_topk", "quick")
    rows = train_arms(k_arms("scenes", parameters), root=None)     one row per run, with its arm

The arms of each paper stand in its file beside this one; numbers come from profiles.toml, base
configs from studies/bases/<dataset>.toml; labels are explained in ledger/reported/README.md.
"""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

from itr_study.checks import check_choice
from itr_study.studies.arms import ArmRun, Maker
from itr_study.studies.bcls import (
    alpha_arms,
    batch_arms,
    bcls_plug_in_arms,
    beta_arms,
    branch_arms,
    compared_arms,
    compared_rate_arms,
    gamma_arms,
    grid_arms,
    margin_check_arms,
    sampling_arms,
    window_weight_arms,
)
from itr_study.studies.best_clean import best_clean_arms
from itr_study.studies.dvse import reranked_arms
from itr_study.studies.exact import exact_arms
from itr_study.studies.forgive import near_duplicate_arms, noise_arms, scene_arms
from itr_study.studies.judges import judge_arms, judge_rate_arms
from itr_study.studies.ladder import ladder_arms
from itr_study.studies.listwise import (
    added_arms,
    alternative_arms,
    explored_arms,
    label_arms,
    plug_in_arms,
    tau_arms,
    term_arms,
    weight_arms,
)
from itr_study.studies.looks import looking_arms, other_arms
from itr_study.studies.pairwise import (
    collapse_arms,
    first_arms,
    loss_arms,
    margin_arms,
    sibling_arms,
)
from itr_study.studies.parameters import check_parameters
from itr_study.studies.profiles import choose
from itr_study.studies.stronger import (
    claimed_stronger_arms,
    shown_arms,
    stronger_arms,
    stronger_rate_arms,
)
from itr_study.studies.subembeddings import SUBEMBEDDINGS, claimed_arms
from itr_study.studies.topk import best_arms, d_arms, k_arms, rate_arms, setting_arms


def ledger_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Notebook 12: every arm that the claims of the papers chosen name, each once, with
    all measures that they need of it.

    Papers share arms, such as "sum". Raises: ValueError where one label means two runs.
    """
    makers = {"topk": (k_arms, d_arms, setting_arms), "listwise": LISTWISE,
              "bcls": BCLS, "dvse": (reranked_arms, claimed_arms)}
    for paper in parameters.papers:
        check_choice("paper of the ledger", paper, makers)
    arms, chosen = {}, [make for paper in parameters.papers for make in makers[paper]]
    for arm in (arm for make in (*chosen, claimed_stronger_arms)
                for arm in make(dataset, parameters)):
        key = (arm.label, arm.config.seed)
        known = arms.setdefault(key, arm)
        if known.config != arm.config:
            raise ValueError(f"arm {arm.label!r}, seed {arm.config.seed}, names two runs; "
                             "give one of them another label")
        arms[key] = known._replace(needs=tuple(sorted({*known.needs, *arm.needs})))
    return list(arms.values())


LISTWISE: tuple[Maker, ...] = (plug_in_arms, added_arms, term_arms, tau_arms, label_arms,
                               alternative_arms)
BCLS: tuple[Maker, ...] = (bcls_plug_in_arms, branch_arms, alpha_arms, beta_arms, sampling_arms,
                           gamma_arms, margin_check_arms, compared_arms)
ARMS: dict[str, tuple[Maker, ...]] = {
    "00_start_here": (first_arms,),
    "01_data_and_judgements": (),  # nothing is trained, but its parameters are checked
    "02_pairwise_losses": (loss_arms, margin_arms, sibling_arms, collapse_arms, ladder_arms),
    "03_topk": (k_arms, d_arms, rate_arms, setting_arms, best_arms),
    "04_relevance": (),
    "05_listwise": (*LISTWISE, weight_arms),
    "06_kendall": (*BCLS, window_weight_arms, grid_arms, batch_arms),
    "07_sub_embeddings": SUBEMBEDDINGS,
    "08_reranking": (reranked_arms,),
    "09_stronger_models": (stronger_arms, shown_arms, stronger_rate_arms, best_clean_arms),
    "10_explorers": (explored_arms,),
    "11_attention_maps": (looking_arms, other_arms),
    "12_claims": (ledger_arms, judge_rate_arms, judge_arms, exact_arms),
    "13_when_to_forgive": (compared_arms, compared_rate_arms, scene_arms, noise_arms,
                           near_duplicate_arms),
}


def arms_of(notebook: str, dataset: str, profile: str, **given: Any) -> list[ArmRun]:
    """Every run of a notebook in a profile, with the parameters given, `data_options` among them.

    Raises:  ValueError for one that the notebook would refuse.
    """
    parameters = choose(notebook, profile, **given)
    check_parameters(dataset, parameters)
    return [arm for make in ARMS[notebook] for arm in make(dataset, parameters)]


# Called with dataset, profile and what else is set of a notebook's parameters.
PLANS: dict[str, Callable[..., list[ArmRun]]] = {
    notebook: partial(arms_of, notebook) for notebook in ARMS}
