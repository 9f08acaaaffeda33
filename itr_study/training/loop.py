"""The training loop: it names no loss and no model, and stops and resumes anywhere.

For every epoch: for every batch: encode, score, loss, step; then evaluate on dev.
"""

import math
import warnings
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from itr_study.checks import Gathered, check_called, check_count, check_number, gathered
from itr_study.data.batches import Batch, EncodedSplit
from itr_study.evaluation.evaluate import all_encoded, evaluate
from itr_study.models.base import Code, ModelOutput, check_model, encoded, scored
from itr_study.progress import counting
from itr_study.training.collapse import equal_scores
from itr_study.training.devices import choose_device, float32_products, half_products
from itr_study.training.interrupts import memory_advice, one_thread, stop_requests
from itr_study.training.objective import Loss, Objective, Term, check_labels
from itr_study.training.sampling import epoch_samples
from itr_study.training.settings import Settings, build_optimizer, learning_rate, set_learning_rate
from itr_study.training.state import History, TaughtNothing, TrainingState

VERSION = 1  # of the loop, batch order and optimisers; raised when numbers change
Given = Objective | Loss | str | Iterable[Term]  # what `fit` takes as an objective
NAMED = 3  # texts of a batch, in a message: more than these are counted


class TrainingData(Protocol):
    """What `fit` reads of encoded data: its splits by name, and a key that identifies it."""

    splits: dict[str, EncodedSplit]
    key: str


class Diverged(RuntimeError):
    """The loss or its gradient is not finite; `history` is of the epochs before."""

    def __init__(self, message: str, history: History) -> None:
        super().__init__(message)
        self.history = history


def fit(model: nn.Module, objective: Given, data: TrainingData,
        settings: Settings | None = None, *, seed: int = 0, folder: Path | str | None = None,
        on_epoch: Callable[[History], None] | None = None, device: str = "auto",
        warmup_objective: Given | None = None,
        save_seconds: float = 60.0) -> History:
    """Train the model; it ends with the weights of its best epoch on dev, averaged if so set.

    Args:
        model: any nn.Module with encode_images(batch) and encode_texts(batch), a row for each item,
            and score(images, texts), a tensor (I, T) or a ModelOutput. A batch holds I images and T
            texts, what the data lacks is None: regions (I, R, D) float32 and region_mask (I, R)
            bool; tokens (T, W) int64, padded with 0, and lengths (T,); sentences (T, D) float32;
            match (I, T) bool; more in `Batch` (itr_study.data.batches). Sizes are in data.inputs:
            region_size, vocabulary, sentence_size.
        objective: an Objective, what it takes, or one loss, a module or a function of scores and
            relevance, both (I, T), relevance 1 for matches and else 0, that gives a 0-dim tensor.
        data: of `encode_dataset`.
        settings: how to train.
        seed: of batch order and dropout (the weights are yours).
        folder: for checkpoints, with which a stopped training resumes, bit-equal on a CPU.
        on_epoch: called with the history after every epoch.
        device: as `choose_device` takes it.
        warmup_objective: for the first `settings.warmup_epochs`.
        save_seconds: least time between checkpoints.
    Warns: TaughtNothing: with remedies, if the scores have collapsed (see `collapse`).

    Raises:
        ValueError: for a model or data of another kind, saying what is missing.
        Diverged: if the loss or its gradient is not finite.
        OutOfMemory: with advice.
        KeyboardInterrupt: after a save, when asked to stop.
    """
    settings = Settings() if settings is None else settings
    check_model(model)
    check_data(data)
    check_count("seed", seed, 0, 2**63 - 1)
    check_how(model, settings, on_epoch, save_seconds)
    place = choose_device(device)
    objectives = choose_objectives(objective, warmup_objective, settings)
    train, dev = data.splits["train"], dev_split(data, settings)
    torch.manual_seed(seed)
    model.to(place)
    optimizer = build_optimizer(model, settings)
    state = TrainingState(model, optimizer, settings, seed, data.key, folder, save_seconds)
    state.restore()
    with (fixed_once(model, train), one_thread(), stop_requests() as stop,
          memory_advice(settings.batch_size), float32_products(place, settings.matmul),
          counting("training", settings.epochs, "epochs") as show):
        pair_batch = train.pairs_on(place)
        while state.epoch < settings.epochs and not state.history.out_of_patience(settings):
            samples = epoch_samples(train, settings, seed, state.epoch)
            terms = objectives[int(state.epoch < settings.warmup_epochs)]
            model.train()
            while state.step < len(samples):
                rate = learning_rate(settings, state.epoch, state.step, len(samples))
                set_learning_rate(optimizer, rate)
                batch = pair_batch(*samples[state.step])
                output = forward(model, batch, settings.precision, terms.joins)
                if terms is not objectives[0] and state.epoch == state.step == 0:
                    for source in objectives[0].sources.values():  # else refused after the warm-up
                        check_labels(source(batch, train), output.scores)
                with gathered() as checks:
                    loss, diagnostics = terms(output, batch, train)
                to_log = {"loss": loss, "score_std": output.scores.detach().std(correction=0)}
                logged = take_step(state, loss, to_log | diagnostics, checks, batch)
                state.end_step(logged)
                show(state.epoch + state.step / len(samples), state.history.note())
                state.save_if_due(stop)
            with state.averaged():
                state.end_epoch(evaluate(model, dev).table if dev is not None else {})
            if state.epoch == settings.warmup_epochs:
                state.save()  # others may go on from here
            if on_epoch is not None:
                on_epoch(state.history)
            state.save_if_due(stop)
        state.finish()
    pairs = min(settings.batch_size, train.n_texts)
    state.history.equal_scores = equal_scores(objectives[0], pairs)
    if doubt := state.history.doubt():
        warnings.warn(doubt, TaughtNothing, stacklevel=2)
    return state.history


def fixed_once(model: nn.Module, split: EncodedSplit) -> ExitStack:
    """Let parts that do not learn compute each text of the split once (`keeping_fixed`)."""
    stack = ExitStack()
    for part in model.modules() if split.tokens is not None else ():
        if (keeping := getattr(part, "keeping_fixed", None)) is not None:
            stack.enter_context(keeping(split.tokens))
    return stack


def forward(model: Any, batch: Batch, precision: str = "float32",
            joins: bool = False) -> ModelOutput:
    """Encode in the precision asked for; score normalised codes in float32 always.

    (Products as `Settings.matmul` has them.) bfloat16 spacing near a cosine of 1 is 0.004, and
    temperatures are 0.01. If the objective `joins`, the joined texts of each image are read, too;
    ValueError for models with more than one vector of a text.
    """
    device = batch.image_ids.device
    with half_products(device, precision), torch.autocast(
            device.type, torch.bfloat16, enabled=precision == "bfloat16"):
        images = encoded(model, model.encode_images, batch, len(batch.image_ids))
        texts = encoded(model, model.encode_texts, batch, len(batch.text_ids))
        if joins:
            together = batch.joined()
            joined = encoded(model, model.encode_texts, together, len(together.text_ids))
    images, texts = as_float(images), as_float(texts)
    output = scored(model, images, texts)
    if not joins:
        return output
    if not isinstance(texts, Tensor) or texts.ndim != 2 or any(
            getattr(part, "tower", False) for part in model.modules()):
        raise ValueError("a loss that joins texts, such as dense_to_sparse, needs a model with one "
                         "vector of a text, such as vsepp or dvse (text_heads = 1), and no tower "
                         f"of a CLIP, which reads the first text alone; got {type(model).__name__}")
    joined = as_float(joined)
    own = torch.searchsorted(together.text_images, batch.text_images)  # row of each text's image
    return replace(output, text_vectors=texts, joined_vectors=joined[own],
                   joined_scores=scored(model, images, joined).scores[:, own])


def as_float(code: Code) -> Code:
    """Return the code with its floating-point tensors in float32; masks and lengths as they are."""
    return tree_map_only(Tensor, lambda part: part.float() if part.is_floating_point() else part,
                         code)


def take_step(state: TrainingState, loss: Tensor, to_log: dict[str, Tensor], checks: Gathered,
              batch: Batch) -> dict[str, float]:
    """Go backward, clip and update; return the values to log, as numbers.

    All numbers are read at once, before the update: each read makes a GPU finish its work first. A
    ValueError of a check and Diverged come before a weight is touched.
    """
    state.optimizer.zero_grad(set_to_none=True)
    try:
        with half_products(loss.device, state.settings.precision):
            loss.backward()
    except RuntimeError as error:
        checks.read()  # a check may know why
        if loss.requires_grad:
            raise
        raise ValueError("the loss has no gradient: compute it, and the scores of the model, of "
                         "the tensors given and of weights, by torch alone, without detach(), "
                         "item(), numpy or no_grad") from error
    limit = state.settings.clip_norm or float("inf")
    gradient = nn.utils.clip_grad_norm_(state.model.parameters(), limit)
    value, norm, *numbers = checks.read([loss, gradient, *to_log.values()])
    if not (math.isfinite(value) and math.isfinite(norm)):
        what = "gradient" if math.isfinite(value) else "loss"
        texts, more = batch.ids.texts[:NAMED], len(batch.ids.texts) - NAMED
        named = ", ".join(map(str, texts)) + (f" and {more} more" if more > 0 else "")
        raise Diverged(f"the {what} is not finite (loss {value:g}) in epoch {state.epoch + 1}, "
                       f"step {state.step + 1}, texts {named}; try a lower learning rate",
                       state.history)
    state.optimizer.step()
    return dict(zip(to_log, numbers, strict=True))


def choose_objectives(objective: Any, warmup: Any,
                      settings: Settings) -> tuple[Objective, Objective]:
    """Return the objective, and the one of warm-up epochs."""
    first, *others = (one if isinstance(one, Objective) else
                      Objective([Term(one)] if callable(one) else one)
                      for one in [objective] + [warmup] * (warmup is not None))
    if bool(settings.warmup_epochs) != bool(others):
        raise ValueError("warmup_objective needs warmup_epochs, got 0" if others else
                         f"warmup_epochs={settings.warmup_epochs} needs a warmup_objective")
    return first, (others or [first])[0]


def check_how(model: nn.Module, settings: Settings, on_epoch: object, save_seconds: float) -> None:
    """Raise ValueError for what `fit` is told of another kind, and where nothing can be learnt."""
    if not isinstance(settings, Settings):
        raise ValueError("settings must be itr.Settings(...), such as itr.Settings(epochs=10); got "
                         f"{settings!r}" + "; write itr.Settings(**settings)" * isinstance(
                             settings, dict))
    if on_epoch is not None:
        check_called("on_epoch", on_epoch, "history")
    if save_seconds != math.inf:
        check_number("save_seconds", save_seconds, least=0)
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    if not weights or torch.is_inference_mode_enabled() or not torch.is_grad_enabled() or any(
            weight.is_inference() for weight in weights):
        raise ValueError("nothing can be learnt: " + (
            "build the model, and call fit, outside of torch.no_grad() and torch.inference_mode()"
            if weights else f"{type(model).__name__} has no parameter with requires_grad=True"))


def check_data(data: TrainingData) -> None:
    """Raise ValueError unless all splits are encoded, and that for training has negatives."""
    if not all_encoded(data):
        raise ValueError("data must be encoded: data = itr.encode_dataset(dataset); "
                         f"got a {type(data).__name__}")
    if "train" not in data.splits:
        raise ValueError(f"the data has no train split, only {', '.join(data.splits)}")
    if data.splits["train"].n_images < 2:
        raise ValueError("the train split has one image, so its texts have no negatives; give it "
                         "two images or more")


def dev_split(data: TrainingData, settings: Settings) -> EncodedSplit | None:
    """Return the split that chooses the best epoch, or its first images, if there is one.

    ValueError if there is none, unless the last epoch is taken anyway.
    """
    if "dev" not in data.splits and settings.select != "last":
        raise ValueError(f"select={settings.select!r} chooses the best epoch on the dev split, but "
                         f"the data has {', '.join(data.splits)}; use Settings(select='last')")
    dev, most = data.splits.get("dev"), settings.dev_images
    if dev is None:
        if most:
            raise ValueError(f"dev_images={most}, but the data has no dev split; leave it out")
        return None
    return dev.head(min(most, dev.n_images)) if most else dev
