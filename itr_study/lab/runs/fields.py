"""The fields of a run's config and how they are changed.

Loads no torch: the command answers a wrong name at once. `config` builds what the names mean.
"""

from typing import Any, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator

from itr_study.checks import check_arguments, nearest
from itr_study.data import DATASETS
from itr_study.files.atomic import canonical_json
from itr_study.training.settings import Least0, Settings, StrictModel, problems


class TermConfig(StrictModel):
    """One weighted loss and its labels, by name; see `objective.Term`."""

    loss: str
    weight: Least0 = 1.0
    labels: str = "binary"
    arguments: dict[str, Any] = {}
    label_arguments: dict[str, Any] = {}


class ConfigFields(StrictModel):
    """The fields of `RunConfig`; of what they name, only the data set is looked up."""

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
        """Check the data set and its options, and what must be given together."""
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
        """Change a copy; dots lead inside: {"objective.0.arguments.k": 3, "seed": 1}.

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
    """Raise ValueError where a path begins with no field; a setting may have been meant."""
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
