"""Runs: execute one, take its row where one is kept, or get its model back with weights.

    config = base("flickr8k", "two_branch", **{"objective.0.arguments.k": 3, "seed": 1})
    row(config, root)["test_rsum"]      the committed row, or trained now
    weights(config, root)               the trained model
"""

import traceback
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from itr_study.arithmetic import arithmetic
from itr_study.data.batches import InputSpec
from itr_study.evaluation.evaluate import Evaluation, columns, evaluate
from itr_study.features.encoded import EncodedData
from itr_study.models import MODELS
from itr_study.runs.committed import add_row, committed, figures_folder
from itr_study.runs.config import RunConfig, build_objective
from itr_study.runs.data import encoded_data
from itr_study.runs.identity import Identity, identify
from itr_study.runs.rows import SPLITS
from itr_study.runs.store import RunResult, RunStore, git_commit, machine_facts, together
from itr_study.training.interrupts import OutOfMemory, memory_advice, one_thread
from itr_study.training.loop import Diverged, choose_device, fit
from itr_study.training.state import History

# Train is measured on its first images, as many as a usual test split has: R@K depends on the size
# of the gallery, and only at the same size does its gap to test say how much was learnt by heart.
TRAIN_IMAGES = 1000


def row(config: RunConfig, root: Path | str | None = None, figures: Path | str | None = None,
        device: str = "auto") -> dict[str, Any]:
    """The row of a run: the committed one where it is complete, else trained now and committed.

    Args:    root: folder of the real data sets, None on a machine without them (rows that are
             there still serve); figures: where rows are kept; generated data keeps none.
    Raises:  as `execute`; a run that diverged gives its row, with status "diverged", no metrics.
    """
    identity = identify(config, root, figures_folder(figures))
    return committed(config, identity, figures) or add_row(
        config, identity, execute(config, root, device=device), figures)


def weights(config: RunConfig, root: Path | str | None = None, *,
            device: str = "auto") -> nn.Module:
    """The model of a run with the weights of its best epoch, in evaluation mode; trained now if
    this machine has none.

    Raises:  ValueError for a run that diverged.
    """
    result = execute(config, root, device=device)
    if result.status != "done":
        raise ValueError(f"run {result.run} has no weights: {result.reason}")
    model = build_model(config, encoded_data(config, root, str(choose_device(device))).inputs)
    model.load_state_dict(result.weights())
    return model.to(choose_device(device)).eval()


def build_model(config: RunConfig, inputs: InputSpec) -> nn.Module:
    """The model of a config, initialised from its seed."""
    torch.manual_seed(config.seed)
    return MODELS[config.model](inputs, **config.model_arguments)


def execute(config: RunConfig, root: Path | str | None = None, *, device: str = "auto",
            store: RunStore | None = None, save_seconds: float = 60.0) -> RunResult:
    """Train and evaluate a run, or read it from the store; stopped in any way, it goes on.

    Args:    store: None = the home's; save_seconds: least time between checkpoints.
    Returns: a result "done", or "diverged" with the reason: both are final.
    Raises:  OutOfMemory, DataError, OSError (full disk), KeyboardInterrupt; the reason is kept
             in the run's status.json, and a next call tries again.
    """
    store, identity = store or RunStore(), identify(config, root)
    run = identity.run
    with store.lock(run):
        if (found := store.result(run)) is not None:
            return found if is_complete(found) else _evaluated_again(
                config, root, found, store, choose_device(device))
        store.set_status(run, "running")
        try:
            with memory_advice(config.settings.batch_size):
                return _train(config, root, identity, store, device, save_seconds)
        except OutOfMemory as error:
            _note(error, store, run, "oom")
            raise
        except KeyboardInterrupt as error:
            _note(error, store, run, "interrupted")
            raise
        except Exception as error:
            _note(error, store, run, "failed")
            raise


class Attempt(NamedTuple):
    """How a run ended: a state of `store.STATES`, and the reason unless it is done."""

    state: str
    reason: str
    run: str = ""


def attempt(config: RunConfig, root: Path | str | None = None, device: str = "auto",
            save_seconds: float = 60.0) -> Attempt:
    """`execute` for one of many: a failure is told, not raised, because the next run is not to
    blame; only a request to stop goes through."""
    try:
        result = execute(config, root, device=device, save_seconds=save_seconds)
        return Attempt(result.status, result.reason, result.run)
    except OutOfMemory as error:
        return Attempt("oom", str(error))
    except Exception as error:
        traceback.print_exc()
        return Attempt("failed", f"{type(error).__name__}: {error}")


def _train(config: RunConfig, root: Path | str | None, identity: Identity, store: RunStore,
           device: str, save_seconds: float) -> RunResult:
    chosen = choose_device(device)
    data = encoded_data(config, root, str(chosen))
    model = build_model(config, data.inputs)
    warmup = build_objective(config.warmup_objective) if config.warmup_objective else None
    facts = store.sittings(identity.run, computed_with(config, data, chosen)) | {
        "commit": git_commit(), "versions": identity.versions, "data": identity.data,
        "encoded": identity.encoded, "seen": list(data.seen)}
    written = config.model_dump(mode="json")
    try:
        history = fit(model, build_objective(config.objective), data, config.settings,
                      seed=config.seed, folder=store.path(identity.run) / "checkpoints",
                      on_epoch=partial(store.write_history, identity.run), device=str(chosen),
                      warmup_objective=warmup, save_seconds=save_seconds)
    except Diverged as error:
        return store.finish(identity.run, written, error.history,
                            facts | _minutes(error.history), {}, status="diverged",
                            reason=str(error))
    return store.finish(identity.run, written, history, facts | _minutes(history),
                        _evaluate(model, data), weights=model.state_dict())


def computed_with(config: RunConfig, data: EncodedData, device: torch.device) -> dict[str, Any]:
    """What the bits of a run depend on beside its id."""
    return machine_facts(device) | {
        "arithmetic": arithmetic(data.features_dtype, config.settings.precision)}


def is_complete(result: RunResult) -> bool:
    """Whether a result has every column that an evaluation has now; a diverged run has none."""
    return result.status != "done" or all(
        name in table for split, table in result.tables.items()
        for name in columns(result.config["dataset"], split))


def _evaluated_again(config: RunConfig, root: Path | str | None, found: RunResult,
                     store: RunStore, device: torch.device) -> RunResult:
    """A finished run measured anew, with the measures of today; nothing is trained."""
    data = encoded_data(config, root, str(device))
    model = build_model(config, data.inputs)
    model.load_state_dict(found.weights())
    facts = found.facts | together([found.facts, computed_with(config, data, device)])
    return store.finish(found.run, found.config, found.history, facts,
                        _evaluate(model.to(device), data), model.state_dict())


def _evaluate(model: nn.Module, data: EncodedData) -> dict[str, Evaluation]:
    splits = dict(data.splits) | {"train": data.splits["train"].head(TRAIN_IMAGES)}
    with one_thread():
        return {split: evaluate(model, splits[split], measures_of=data.dataset)
                for split in SPLITS if split in splits}


def _minutes(history: History) -> dict[str, float]:
    return {"minutes": round(sum(row["seconds"] for row in history.rows) / 60, 3)}


def _note(error: BaseException, store: RunStore, run: str, state: str) -> None:
    """Write the reason into the run's status, where that is possible."""
    try:
        store.set_status(run, state, f"{type(error).__name__}: {error}")
    except OSError as second:  # a full disk: the first error says so
        error.add_note(f"the status of run {run} could not be written either: {second}")
