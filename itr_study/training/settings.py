"""How a model is trained: one frozen record, and the schedules it names.

torch is imported to build an optimiser: a wrong setting is refused without waiting for it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from itr_study.checks import check_choice

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

Positive = Annotated[float, Field(gt=0)]
Least0 = Annotated[float, Field(ge=0)]
AtLeast1 = Annotated[int, Field(ge=1)]
Matmul = Literal["auto", "highest", "high", "medium"]


class StrictModel(BaseModel):
    """A record that refuses unknown names, wrong types, NaN, and change."""

    noun: ClassVar[str] = "field"  # what a name of it is called
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def refuse_unknown_names(cls, values: Any) -> Any:
        """Raise ValueError for an unknown name, with the nearest."""
        for name in values if isinstance(values, dict) else ():
            check_choice(f"{cls.noun} of {cls.model_config.get('title', cls.__name__)}", name,
                         cls.model_fields)
        return values


def problems(error: ValidationError) -> str:
    """Return what pydantic found, a line a field, without what only programmers need."""
    lines = []
    for found in error.errors():
        if found["type"] == "default_factory_not_called":
            continue  # it reads other fields, and one of them is wrong
        field, message = ".".join(map(str, found["loc"])), found["msg"]
        if found["type"] == "value_error":  # one of ours, which may begin with the field
            message = message.removeprefix("Value error, ")
            field *= not message.startswith(field)
        else:
            message = f"{message}, got {found['input']!r}"
        must, be, rest = message.partition("Input should be ")
        lines.append(f"{field} must be {rest}" if be and not must else
                     f"{field}: {message}" if field else message)
    return "\n".join(lines)


def constant(epoch: float, settings: Settings) -> float:
    """Return the same rate throughout."""
    return 1.0


def cosine(epoch: float, settings: Settings) -> float:
    """Return half a cosine from 1 down to 0 over all epochs."""
    return 0.5 * (1 + math.cos(math.pi * epoch / settings.epochs))


def exponential(epoch: float, settings: Settings) -> float:
    """Return the rate times `decay` after every epoch (topk paper: 0.95)."""
    return settings.decay ** math.floor(epoch)


def step(epoch: float, settings: Settings) -> float:
    """Return the rate times `decay` after every `decay_epochs` epochs (VSE++: 0.1 after 15).

    Of several it falls after each of these epochs once (dvse paper: after 15 and 25).
    """
    done, at = math.floor(epoch), settings.decay_epochs
    return settings.decay ** (done // at if isinstance(at, int) else sum(done >= m for m in at))


SCHEDULES = {function.__name__: function for function in (constant, cosine, exponential, step)}
OPTIMIZERS = ("adamw", "adam", "sgd")


class Settings(StrictModel):
    """How to train. A default never changes its meaning: run ids leave defaults out.

    epochs: passes over all training texts; batch_size: pairs a step (the last batch of an epoch is
    kept from half that size on); texts_per_image: how many texts of an image are drawn together
    into a batch, see `epoch_samples`; learning_rate_factors: parameter-name prefix -> factor
    ({"text.transformer": 0.1}), the longest prefix wins; momentum: of sgd only; schedule: with
    decay and decay_epochs (`step`); warmup_steps: the rate grows linearly over so many; clip_norm:
    of the whole gradient, None = off; precision: of the encoders in training, all else is float32;
    matmul: how products of float32 are made in training and evaluation, as
    `torch.set_float32_matmul_precision` names it, "auto" = "high" on a CUDA card (TF32, factors
    rounded to 10 bits behind the point) and "highest", all in float32, elsewhere; rows state it;
    warmup_epochs: so many first epochs use the warm-up objective of the run; select: the dev metric
    that chooses the best epoch after them, or "last"; dev_images: an epoch is evaluated on the
    first so many images of dev at most and all their texts, and in the end a run on as many of
    train; 0 = all of dev (of train: see `lab.runs.run`). R@K of fewer images is higher; average: an
    epoch is evaluated, and chosen, with the mean of the weights after it and after the epochs
    before, so many in all, 1 = its own; patience: epochs without a better one before stopping, None
    = never; bucket: batches of captions of like length, None = where there are tokens.
    """

    epochs: int = Field(default=30, ge=1)
    batch_size: int = 128
    texts_per_image: int = Field(default=1, ge=1)
    optimizer: str = "adamw"
    learning_rate: Positive = 5e-4
    learning_rate_factors: dict[str, Least0] = {}
    weight_decay: Least0 = 0.0
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.9
    schedule: str = "constant"
    decay: Annotated[float, Field(gt=0, le=1)] = 0.95
    decay_epochs: AtLeast1 | Annotated[tuple[AtLeast1, ...], Field(min_length=1, strict=False)] = 15
    warmup_steps: int = Field(default=0, ge=0)
    clip_norm: Positive | None = 2.0
    precision: Literal["float32", "bfloat16"] = "float32"
    matmul: Matmul = "auto"
    warmup_epochs: int = Field(default=0, ge=0)
    select: str = "rsum"
    dev_images: int = Field(default=0, ge=0)
    average: int = Field(default=1, ge=1)
    patience: int | None = Field(default=None, ge=1)
    bucket: bool | None = None

    @model_validator(mode="after")
    def names_exist(self) -> Settings:
        """Raise ValueError for unknown names and settings that exclude each other."""
        check_choice("optimizer", self.optimizer, OPTIMIZERS)
        check_choice("schedule", self.schedule, SCHEDULES)
        if self.average > self.epochs:
            raise ValueError(f"average must be at most the number of epochs, got {self.average} of "
                             f"{self.epochs}: a mean of so many weights is never taken")
        if self.warmup_epochs and self.warmup_epochs >= self.epochs:
            raise ValueError("warmup_epochs must be less than the number of epochs, got "
                             f"{self.warmup_epochs} of {self.epochs}: the objective is never used; "
                             "take more epochs, or warmup_epochs=0 and warmup_objective=[]")
        if self.batch_size < 2:
            raise ValueError(f"batch_size must be at least 2, got {self.batch_size}: the pairs of "
                             "a batch are each other's negatives, and alone nothing is learnt")
        if self.texts_per_image >= self.batch_size:
            raise ValueError(f"texts_per_image must be less than batch_size, got "
                             f"{self.texts_per_image} of {self.batch_size}: a batch of one image's "
                             "texts has no negatives")
        return self


def build_optimizer(model: nn.Module, settings: Settings) -> Optimizer:
    """Build the optimiser, one parameter group per learning-rate factor.

    ValueError if a prefix of `learning_rate_factors` fits no parameter.
    """
    from torch import optim

    prefixes = sorted(settings.learning_rate_factors, key=len, reverse=True)
    groups: dict[str, list] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            prefix = next((p for p in prefixes if name.startswith(p)), "")
            groups.setdefault(prefix, []).append(parameter)
    if unused := set(prefixes) - set(groups):
        names = ", ".join(sorted({n.rpartition(".")[0] for n, _ in model.named_parameters()}))
        raise ValueError(f"learning_rate_factors: no trainable parameter begins with "
                         f"{', '.join(sorted(unused))}; the model has {names}")
    factors = {"": 1.0} | settings.learning_rate_factors
    more: dict[str, Any] = {"weight_decay": settings.weight_decay}
    if settings.optimizer == "sgd":
        more |= {"lr": settings.learning_rate, "momentum": settings.momentum}
    # Fused: one kernel updates a parameter, instead of a dozen small operations (PyTorch's default
    # on a CPU), a third of the step of a small model. Rows say so: arithmetic.OPTIMIZER.
    kinds: dict[str, Any] = {"adamw": optim.AdamW, "adam": optim.Adam, "sgd": optim.SGD}
    return kinds[settings.optimizer](
        [{"params": found, "factor": factors[prefix]} for prefix, found in groups.items()],
        fused=True, **more)


def learning_rate(settings: Settings, epoch: int, step: int, steps: int) -> float:
    """Return the rate of step `step` of `steps` in `epoch` (all from 0).

    A function of the position alone, so that resuming needs no scheduler state.
    """
    rate = settings.learning_rate * SCHEDULES[settings.schedule](epoch + step / steps, settings)
    if settings.warmup_steps:
        rate *= min(1.0, (epoch * steps + step + 1) / settings.warmup_steps)
    return rate


def set_learning_rate(optimizer: Optimizer, rate: float) -> None:
    """Give every parameter group the rate times its own factor."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group["factor"]
