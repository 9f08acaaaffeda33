"""Execute a run, take its row where one is published, or get its trained model back.

    config = base("flickr8k", "two_branch", **{"objective.0.arguments.k": 3, "seed": 1})
    row(config, root)["test_rsum"]      the published row, or trained now
    weights(config, root)               the trained model
"""

import warnings
from collections.abc import Collection
from pathlib import Path
from typing import Any

import torch
from torch import nn

from itr_study.data.batches import InputSpec
from itr_study.evaluation.evaluate import Evaluation, evaluate
from itr_study.evaluation.search import Searcher
from itr_study.features.specs import tuned_stages
from itr_study.features.texts import EncodedData
from itr_study.lab.runs.config import RunConfig, build_objective
from itr_study.lab.runs.data import dataset_of, encoded_data
from itr_study.lab.runs.identity import (
    Run,
    all_sittings,
    computed_with,
    git_commit,
    identify,
    merged,
)
from itr_study.lab.runs.published import Published
from itr_study.lab.runs.rows import SPLITS, is_complete, make_row
from itr_study.lab.runs.store import (
    RunResult,
    RunStore,
    WarmUps,
    keep_scores,
    kept_scores,
    warmup_key,
)
from itr_study.models import MODELS
from itr_study.models.base import device_of
from itr_study.training.checkpoints import Checkpoints
from itr_study.training.devices import choose_device, claimed, float32_products
from itr_study.training.interrupts import OutOfMemory, memory_advice, one_thread
from itr_study.training.loop import Diverged, fit
from itr_study.training.state import History, TaughtNothing

# Train is measured on its first images, as many as a usual test split has: R@K depends on the size
# of the gallery, and only at the same size does its gap to test say how much was learnt by heart. A
# config with settings.dev_images takes as many as that: a choice of cost, not for that gap.
TRAIN_IMAGES = 1000


def train_images(dev_images: int) -> int:
    """On how many images of train, at most, a run with this setting is measured in the end."""
    return dev_images or TRAIN_IMAGES


def row(config: RunConfig, root: Path | str | None = None, device: str = "auto",
        needs: Collection[str] = ()) -> dict[str, Any]:
    """The row of a run: the published one where it is complete, else made of its result in the
    store, where it is trained now if it is not there.

    Args:    root: folder of the real data sets, None on a machine without them (published rows
             still serve); needs: measures that it must have, of those that are `asked`
             (`evaluation.measures`).
    Raises:  as `execute`; a run that diverged gives its row, with status "diverged", no metrics.
    """
    run = identify(config, root)
    return ended(run, needs) or make_row(run, execute(run, root, device=device, needs=needs))


def ended(run: Run, needs: Collection[str] = ()) -> dict[str, Any] | None:
    """The row of a run that ended with these measures: published, or of the store; else None."""
    if row := Published(run.config.dataset).complete(run.id, needs):
        return row
    row = make_row(run, result) if (result := RunStore().result(run.id)) else None
    return row if row and is_complete(row, needs) else None


def weights(config: RunConfig, root: Path | str | None = None, *,
            device: str = "auto") -> nn.Module:
    """The model of a run with the weights of its best epoch, in evaluation mode; trained now if
    this machine has none.

    Raises:  ValueError for a run that diverged.
    """
    result = execute(identify(config, root), root, device=device)
    if result.status != "done":
        raise ValueError(f"run {result.id} has no weights: {result.reason}")
    model = build_model(config, encoded_data(config, root, str(choose_device(device))).inputs)
    model.load_state_dict(result.weights())
    return model.to(choose_device(device)).eval()


def searcher(config: RunConfig, root: Path | str | None = None, split: str = "test", *,
             device: str = "auto") -> Searcher:
    """The model of a run over a split of its data, as `Searcher` takes it, with those scores that
    the run has kept; trained now if this machine has none. Raises: as `weights`."""
    model, data = weights(config, root, device=device), encoded_data(config, root)
    store, run, known = RunStore(), identify(config, root).id, {}
    with store.lock(run):
        if split == "test" and (result := store.result(run)) is not None:
            known = kept_scores(result)
    return Searcher(model, dataset_of(config, root), data, split, known)


def build_model(config: RunConfig, inputs: InputSpec) -> nn.Module:
    """The model of a config, initialised from its seed."""
    torch.manual_seed(config.seed)
    return MODELS[config.model](inputs, **config.model_arguments)


def check_model(config: RunConfig) -> None:
    """Raise ValueError, before any data is read, where the model of a config cannot be built: an
    argument is out of its range, or the config leaves out an input that the model needs; and
    OutOfMemory for one that is too large by itself."""
    stages = tuned_stages(config.images)
    inputs = InputSpec(region_size=0 if stages else 1, vocabulary=2 if config.tokens else 0,
                       sentence_size=1 if config.sentences else 0, stages=stages)
    try:
        with memory_advice(config.settings.batch_size):
            build_model(config, inputs)
    except (TypeError, ValueError) as error:
        raise ValueError(f"model {config.model!r} cannot be built with model_arguments "
                         f"{config.model_arguments}: {error}") from error


def execute(run: Run, root: Path | str | None = None, *, device: str = "auto",
            store: RunStore | None = None, save_seconds: float = 60.0,
            needs: Collection[str] = ()) -> RunResult:
    """Train and evaluate a run, or read its result from the store; after a stop of any kind the
    next call goes on from the last checkpoint.

    Args:    root: folder of the real data sets; device: as in `fit`, of several cards one that no
             other run is on (`devices.claimed`); store: None = the home's; save_seconds: least time
             between checkpoints; needs: as in `row`; of a result without them the weights are
             evaluated again, by all measures.
    Returns: a result "done", or "diverged" with the reason: both are final.
    Raises:  OutOfMemory, DataError, OSError (full disk), KeyboardInterrupt; the reason is kept
             in the run's status.json, and a next call tries again.
    """
    store = store or RunStore()
    with store.lock(run.id):
        result = store.result(run.id)
        if result is not None and is_complete(make_row(run, result), needs):
            return result
        with claimed(device) as there:
            store.set_status(run.id, "running")
            try:
                with memory_advice(run.config.settings.batch_size):
                    if result is not None:
                        return _evaluated_again(run, root, result, store, there)
                    return _train(run, root, store, there, save_seconds)
            except OutOfMemory as error:
                _note(error, store, run, "oom")
                raise
            except KeyboardInterrupt as error:
                _note(error, store, run, "interrupted")
                raise
            except Exception as error:
                _note(error, store, run, "failed")
                raise


def _train(run: Run, root: Path | str | None, store: RunStore, device: torch.device,
           save_seconds: float) -> RunResult:
    config, data = run.config, encoded_data(run.config, root, str(device))
    model = build_model(config, data.inputs)
    warmup = build_objective(config.warmup_objective) if config.warmup_objective else None
    checkpoints = Checkpoints(store.path(run.id) / "checkpoints")
    facts = all_sittings(checkpoints, computed_with(config, data, device) | {
        "commit": git_commit()})
    warmups = WarmUps(store.path("warmups"), warmup_key(run, facts), config.settings.warmup_epochs)
    warmups.begin(checkpoints, model)
    facts |= {"versions": run.versions, "data": run.data, "encoded": run.encoded,
              "seen": list(data.seen)}
    written = config.model_dump(mode="json")

    def on_epoch(history: History) -> None:
        store.write_history(run.id, history)
        warmups.keep(checkpoints)

    try:
        with warnings.catch_warnings(action="ignore", category=TaughtNothing):  # the row says it
            history = fit(model, build_objective(config.objective), data, config.settings,
                          seed=config.seed, folder=checkpoints.folder,
                          on_epoch=on_epoch, device=str(device),
                          warmup_objective=warmup, save_seconds=save_seconds)
    except Diverged as error:
        return store.finish(run.id, written, error.history, facts | _minutes(error.history), {},
                            status="diverged", reason=str(error))
    evaluations = _evaluate(model, data, config)
    result = store.finish(run.id, written, history, facts | _minutes(history) | _made(evaluations),
                          evaluations, weights=model.state_dict())
    return keep_scores(result, evaluations.get("test"))


def _evaluated_again(run: Run, root: Path | str | None, result: RunResult, store: RunStore,
                     device: torch.device) -> RunResult:
    """A finished run measured with the measures of today; nothing is trained."""
    data = encoded_data(run.config, root, str(device))
    model = build_model(run.config, data.inputs)
    model.load_state_dict(result.weights())
    facts = result.facts | merged([result.facts, computed_with(run.config, data, device)])
    evaluations = _evaluate(model.to(device), data, run.config)
    result = store.finish(run.id, result.config, result.history, facts | _made(evaluations),
                          evaluations, model.state_dict())
    return keep_scores(result, evaluations.get("test"))


def _evaluate(model: nn.Module, data: EncodedData, config: RunConfig) -> dict[str, Evaluation]:
    """What each split gives; test is also re-ranked by the queries of dev."""
    most = train_images(config.settings.dev_images)
    splits = dict(data.splits) | {"train": data.splits["train"].head(most)}
    evaluations: dict[str, Evaluation] = {}
    with one_thread(), float32_products(device_of(model), config.settings.matmul):
        for split in SPLITS:
            if split in splits:
                bank = evaluations.get("dev") if split == "test" else None
                evaluations[split] = evaluate(model, splits[split], measures_of=data.dataset,
                                              bank=bank)
    return evaluations


def _made(evaluations: dict[str, Evaluation]) -> dict[str, Any]:
    """Facts of an evaluation: what parts of it cost in seconds."""
    return {"costs": {name: round(seconds, 4) for evaluation in evaluations.values()
                      for name, seconds in evaluation.costs.items()}}


def _minutes(history: History) -> dict[str, float]:
    return {"minutes": round(sum(row["seconds"] for row in history.rows) / 60, 3)}


def _note(error: BaseException, store: RunStore, run: Run, state: str) -> None:
    """Write the reason into the run's status, where that is possible."""
    try:
        store.set_status(run.id, state, f"{type(error).__name__}: {error}")
    except OSError as second:  # a full disk: the first error says so
        error.add_note(f"the status of run {run.id} could not be written either: {second}")
