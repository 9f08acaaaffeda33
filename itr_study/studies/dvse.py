"""The arms of notebook 08: models whose rows say what re-ranking makes of their scores.

No training is re-ranked: these are runs of other notebooks, measured re-ranked.
"""

from types import SimpleNamespace

from itr_study.studies.arms import ArmRun, base_config, over_seeds, sum_of, with_loss
from itr_study.studies.bases import frozen_rates
from itr_study.studies.bcls import COMPARED

RERANKED = ("reranked",)  # what rows with recalls after re-ranking are asked for


def reranked_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Tables I-IV: every model of `parameters.reranked`, labelled as everywhere ("hardest",
    "vsepp+gru/hardest"): those of one model over the seeds of its comparison, `compared_seeds`."""
    return [run for label in parameters.reranked
            for run in _over_seeds(label, dataset, parameters)]


def scale_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Fig. 7: the model whose scores are normalised on the whole grid of scales."""
    return [run for run in reranked_arms(dataset, parameters) if run.label == parameters.swept]


def tuned_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Fig. 7 beyond the paper: models whose scores lie apart by more or less."""
    return [run for run in reranked_arms(dataset, parameters) if run.label in parameters.tuned
            and run.config.seed < parameters.tuned_seeds]


def _over_seeds(label: str, dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """The runs of a label, those that other notebooks train under it."""
    setting, _, loss = label.rpartition("/")
    start = base_config(dataset, "two_branch", parameters)
    if setting:
        rates = frozen_rates(dataset)[setting]
        start = with_loss(dataset, setting, parameters, "hardest",
                          rates.get(loss, rates["hardest"]))
    seeds = parameters.seeds if setting else parameters.compared_seeds
    return over_seeds(label, sum_of(start, *COMPARED[loss]), seeds, RERANKED)
