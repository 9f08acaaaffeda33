"""The config of a run: one frozen, validated record."""

import inspect
from collections.abc import Callable
from typing import Any

from pydantic import model_validator

from itr_study.checks import check_arguments
from itr_study.data import DATASETS
from itr_study.lab.runs.fields import ConfigFields, TermConfig
from itr_study.losses import LOSSES, OUTPUT_LOSSES
from itr_study.models import MODELS
from itr_study.relevance import RELEVANCE
from itr_study.training.objective import Objective, Term


class RunConfig(ConfigFields):
    """Everything a run's numbers depend on, device and number of workers excepted.

    dataset: a name of DATASETS, with data_options; images, tokens, sentences: encoder specs of
    `encode_dataset`; model: a name of MODELS, with model_arguments; objective: its terms;
    warmup_objective: for the first settings.warmup_epochs; seed: of initialisation, batch order
    and dropout, never of the data.
    Raises:  ValueError (pydantic's) naming the field, what is allowed, and the nearest name.
    """

    @model_validator(mode="after")
    def parts_exist(self) -> "RunConfig":
        """Look up the model, the losses and the label sources, and check their arguments."""
        check_arguments(f"model {self.model!r}", MODELS[self.model], self.model_arguments, skip=1)
        for terms in filter(None, (self.objective, self.warmup_objective)):
            build_objective(terms)
        return self

    def differing(self) -> dict[str, Any]:
        """The fields that differ from their defaults, those of models and losses included.

        The id is made of them, so that a new option with a default keeps all ids.
        """
        values = self.model_dump(mode="json", exclude_defaults=True)
        for name, part in (("data_options", DATASETS[self.dataset].load),
                           ("model_arguments", MODELS[self.model])):
            _drop_defaults(values, name, part)
        for term in values["objective"] + values.get("warmup_objective", []):
            _drop_defaults(term, "arguments", (LOSSES | OUTPUT_LOSSES)[term["loss"]])
            _drop_defaults(term, "label_arguments", RELEVANCE[term.get("labels", "binary")])
        return values


def build_objective(terms: tuple[TermConfig, ...]) -> Objective:
    """Build the objective of a config; ValueError for unknown names or wrong arguments."""
    return Objective(tuple(Term(term.loss, term.weight, term.labels, term.arguments,
                                term.label_arguments) for term in terms))


def training_vectors(config: RunConfig) -> set[str]:
    """The names of the label vectors that a config's label sources read in training."""
    return {name for term in config.terms
            for name in RELEVANCE[term.labels](**term.label_arguments).vectors_needed}


def _drop_defaults(values: dict[str, Any], field: str, part: Callable) -> None:
    """Leave out arguments that say what the part does anyway, and the field if none is left."""
    defaults = inspect.signature(part).parameters
    kept = {name: value for name, value in values.pop(field, {}).items()
            if value != defaults[name].default}
    if kept:
        values[field] = kept
