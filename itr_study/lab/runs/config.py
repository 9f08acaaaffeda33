"""The config of a run: one frozen, validated record."""

import inspect
from collections.abc import Callable
from typing import Any, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator

from itr_study.checks import check_arguments, check_choice, nearest
from itr_study.data import DATASETS
from itr_study.files.atomic import canonical_json
from itr_study.losses import LOSSES, OUTPUT_LOSSES
from itr_study.models import MODELS
from itr_study.relevance import RELEVANCE
from itr_study.training.objective import Objective, Term
from itr_study.training.settings import Least0, Settings, StrictModel, problems

# The fields of a run's config and how they are changed, without torch: the command answers a wrong
# name at once. `config` builds what the names stand for.

class TermConfig(StrictModel):
    """One weighted loss and its labels, by name; see `objective.Term`."""

    loss: str
    weight: Least0 = 1.0
    labels: str = "binary"
    arguments: dict[str, Any] = {}
    label_arguments: dict[str, Any] = {}


class ConfigFields(StrictModel):
    """The fields of `RunConfig`; of what they name, only the data set is looked up.

    Raises:  ValueError (pydantic's) naming the field, what is allowed, and the nearest name.
    """

    model_config = ConfigDict(title="RunConfig")

    dataset: str
    data_options: dict[str, Any] = {}
    images: str
    tokens: str | None = None
    sentences: str | None = None
    model: str
    model_arguments: dict[str, Any] = {}
    objective: tuple[TermConfig, ...] = Field(strict=False)
    warmup_objective: tuple[TermConfig, ...] = Field((), strict=False)
    settings: Settings = Settings()
    seed: int = Field(0, ge=0, lt=2**63)

    @model_validator(mode="after")
    def fields_agree(self) -> Self:
        check_choice("dataset", self.dataset, DATASETS)
        check_arguments(f"dataset {self.dataset!r}", DATASETS[self.dataset].load,
                        self.data_options, skip=1)
        if not self.objective:
            raise ValueError("objective must have a term, such as {'loss': 'topk'}; found none")
        if bool(self.warmup_objective) != bool(self.settings.warmup_epochs):
            raise ValueError("warmup_objective and settings.warmup_epochs go together: "
                             "give both or none")
        canonical_json(self.model_dump(mode="json"))
        return self

    @property
    def terms(self) -> tuple[TermConfig, ...]:
        """All terms, those of warm-up epochs included."""
        return self.objective + self.warmup_objective

    def with_(self, **changes: Any) -> Self:
        """A changed copy; dots lead inside: with_(**{"objective.0.arguments.k": 3, "seed": 1}).

        Raises:  ValueError for a path that leads nowhere, or a value that is refused there, in
                 plain words: the first line is all that a table of notebooks shows.
        """
        values = self.model_dump(mode="json")
        for path, value in changes.items():
            _check_field(path)
            _set(values, path, value)
        try:
            return type(self).model_validate(values)
        except ValidationError as error:
            raise ValueError(problems(error)) from error


def _check_field(path: str) -> None:
    """Raise ValueError where a path begins with no field, looking among the settings too."""
    name = path.partition(".")[0]
    if name not in ConfigFields.model_fields:
        hint = nearest(name, ConfigFields.model_fields)
        if not hint and nearest(name, Settings.model_fields):
            hint = nearest(f"settings.{name}", [f"settings.{n}" for n in Settings.model_fields])
        raise ValueError("field of RunConfig must be one of "
                         f"{', '.join(ConfigFields.model_fields)}; got {name!r}{hint}")


def _set(values: Any, path: str, value: Any) -> None:
    """Put a value at a dotted path of nested dicts and tuples."""
    *parents, last = path.split(".")
    for name in parents:
        values = _step(values, name, path)
    if isinstance(values, dict):
        values[last] = value
    else:
        _step(values, last, path)
        values[int(last)] = value


def _step(values: Any, name: str, path: str) -> Any:
    if isinstance(values, dict) and name in values:
        return values[name]
    if isinstance(values, list | tuple) and name.isdigit() and int(name) < len(values):
        return values[int(name)]
    names = (", ".join(map(str, values)) if isinstance(values, dict) else
             f"0 to {len(values) - 1}" if isinstance(values, list | tuple) else "nothing")
    raise ValueError(f"config has no {path!r}: at {name!r} there is {names}")


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
        check_choice("model", self.model, MODELS)
        check_arguments(f"model {self.model!r}", MODELS[self.model], self.model_arguments, skip=1)
        for terms in filter(None, (self.objective, self.warmup_objective)):
            build_objective(terms)
        return self

    def differing(self) -> dict[str, Any]:
        """The fields that differ from their defaults, those of models and losses included: what
        the id is made of, so that a new option with a default keeps all ids."""
        values = self.model_dump(mode="json", exclude_defaults=True)
        for name, part in (("data_options", DATASETS[self.dataset].load),
                           ("model_arguments", MODELS[self.model])):
            _drop_defaults(values, name, part)
        for term in values["objective"] + values.get("warmup_objective", []):
            _drop_defaults(term, "arguments", (LOSSES | OUTPUT_LOSSES)[term["loss"]])
            _drop_defaults(term, "label_arguments", RELEVANCE[term.get("labels", "binary")])
        return values


def build_objective(terms: tuple[TermConfig, ...]) -> Objective:
    """The objective of a config. Raises: ValueError for unknown names, wrong arguments or scale."""
    return Objective(tuple(Term(term.loss, term.weight, term.labels, term.arguments,
                                term.label_arguments) for term in terms))


def training_vectors(config: RunConfig) -> set[str]:
    """Names of the label vectors that the label sources of a config read while it trains."""
    return {name for term in config.terms
            for name in RELEVANCE[term.labels](**term.label_arguments).vectors_needed}


def _drop_defaults(values: dict[str, Any], field: str, part: Callable) -> None:
    """Leave out arguments that say what the part does anyway, and the field if none is left."""
    defaults = inspect.signature(part).parameters
    kept = {name: value for name, value in values.pop(field, {}).items()
            if value != defaults[name].default}
    if kept:
        values[field] = kept
