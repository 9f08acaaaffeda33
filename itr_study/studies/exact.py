"""Arms for claims that are judged by exact relevance, which generated data alone has.

They are trained on `scenes` at its own size, whatever data set a notebook looks at, and their rows
are published in evidence/scenes.
"""

from types import SimpleNamespace

from itr_study.data import DATASETS
from itr_study.ledger.judge import asks_exact, named_arms
from itr_study.ledger.reported import load_claims
from itr_study.studies.arms import ArmRun
from itr_study.studies.bcls import branch_arms, compared_arms
from itr_study.studies.listwise import label_arms, tau_arms, term_arms

EXACT_DATA = "scenes"


def exact_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Every arm that a claim about exact relevance names, with `parameters.exact_seeds` seeds; none
    on generated data, whose own runs have exact relevance."""
    if DATASETS[dataset].generated:
        return []
    seeds = parameters.exact_seeds
    own_size = SimpleNamespace(**vars(parameters) | {
        "scenes": {}, "data_options": {}, "seeds": seeds, "term_seeds": seeds, "tau_seeds": seeds,
        "compared_seeds": seeds,
        "label_sources": [*parameters.label_sources, "exact"]})
    named = {arm for claim in load_claims().to_dict("records") if asks_exact(claim)
             for arm in named_arms(claim["arm_a"], claim["arm_b"])}
    runs = [run for make in (term_arms, tau_arms, label_arms, branch_arms, compared_arms)
            for run in make(EXACT_DATA, own_size) if run.label in named]
    return list({(run.label, run.config.seed): run for run in runs}.values())
