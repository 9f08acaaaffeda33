"""Execute a run: train and evaluate it, or read what the store holds of it.

execute(identify(config, root), root)    its result, trained now if it is not there
weights(config, root)                    its model
attempt(job)                             the same for another process: JSON in, JSON out
"""

import platform
import subprocess
import traceback
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import itr_study
from itr_study.arithmetic import arithmetic, instructions
from itr_study.data.base import SPLITS, RetrievalDataset
from itr_study.data.batches import InputSpec
from itr_study.encoders.sentences import CLIP, WordPieces
from itr_study.evaluation.evaluate import Evaluation, evaluate
from itr_study.evaluation.search import Searcher
from itr_study.features.dataset import text_readers
from itr_study.features.specs import tuned_stages
from itr_study.features.texts import EncodedData
from itr_study.files.atomic import canonical_json, read_json, write_json
from itr_study.files.paths import project_root
from itr_study.lab.runs.config import RunConfig, build_objective
from itr_study.lab.runs.data import dataset_of, encoded_data
from itr_study.lab.runs.identity import Run, digest, hash_run, identify, part_versions
from itr_study.lab.runs.published import Published
from itr_study.lab.runs.rows import is_complete, make_row
from itr_study.lab.runs.store import RunResult, RunStore, WarmUps, kept_scores
from itr_study.losses.base import OWN
from itr_study.models import MODELS
from itr_study.models.base import check_model as check_methods
from itr_study.models.base import device_of
from itr_study.training.devices import choose_device, claimed, float32_products, matmul_on
from itr_study.training.interrupts import OutOfMemory, memory_advice, one_thread
from itr_study.training.loop import Diverged, fit
from itr_study.training.settings import Least0, StrictModel
from itr_study.training.state import Checkpoints, History, TaughtNothing

# The state of a run that ends by an error.
ENDINGS = {OutOfMemory: "oom", KeyboardInterrupt: "interrupted", Exception: "failed"}
CHANGED = "+"  # behind a commit from which files differ
# Train is measured on its first images, as many as a usual test split has: R@K depends on the size
# of the gallery, and only at the same size does its gap to test say how much was learnt by heart. A
# config with settings.dev_images takes as many as that: a choice of cost, not for that gap.
TRAIN_IMAGES = 1000


def execute(run: Run, root: Path | str | None = None, *, device: str = "auto",
            store: RunStore | None = None, save_seconds: float = 60.0,
            needs: Collection[str] = ()) -> RunResult:
    """Train and evaluate a run, or read its result; a stopped one goes on where it was.

    Args:    root: folder of the real data sets; device: as in `fit`, of several cards one that no
             other run is on (`devices.claimed`); store: None = the home's; save_seconds: least time
             between checkpoints; needs: measures that the result must have, of those that are
             `asked` (`evaluation.measures`); without them its weights are evaluated again.
    Returns: a result "done", or "diverged" with the reason: both are final.
    Raises:  OutOfMemory, DataError, OSError (full disk), KeyboardInterrupt; the reason is kept
             in the run's status.json, and a next call tries again.
    """
    store = store or RunStore()
    with store.lock(run.id):
        result = store.result(run.id)
        if result is not None and is_complete(make_row(run, result), needs):
            return result
        with (claimed(device) as there, _noted(run, store),
              memory_advice(run.config.settings.batch_size)):
            if result is not None:
                return _measured_again(run, root, result, store, there)
            return _train(run, root, store, there, save_seconds)


@contextmanager
def _noted(run: Run, store: RunStore) -> Iterator[None]:
    """Write into the run's status that it runs, and by what error it ends, if by one."""
    store.set_status(run.id, "running")
    try:
        yield
    except tuple(ENDINGS) as error:
        state = next(state for kind, state in ENDINGS.items() if isinstance(error, kind))
        try:
            store.set_status(run.id, state, f"{type(error).__name__}: {error}")
        except OSError as second:  # a full disk: the first error says so
            error.add_note(f"the status of run {run.id} could not be written either: {second}")
        raise


def _train(run: Run, root: Path | str | None, store: RunStore, device: torch.device,
           save_seconds: float) -> RunResult:
    config, data = run.config, encoded_data(run.config, root, str(device))
    model = build_model(config, data.inputs)
    warmup = build_objective(config.warmup_objective) if config.warmup_objective else None
    checkpoints = Checkpoints(store.path(run.id) / "checkpoints")
    facts = all_sittings(checkpoints,
                         computed_with(config, data, device) | {"commit": git_commit()})
    warmups = WarmUps(store.path("warmups"), warmup_key(run, facts), config.settings.warmup_epochs)
    warmups.begin(checkpoints, model)
    facts |= {"versions": run.versions, "data": run.data, "encoded": run.encoded,
              "seen": list(data.seen), "images": _images(dataset_of(config, root))}
    written = config.model_dump(mode="json")

    def on_epoch(history: History) -> None:
        store.write_history(run.id, history)
        warmups.keep(checkpoints)

    try:
        with warnings.catch_warnings(action="ignore", category=TaughtNothing):  # the row says it
            history = fit(model, build_objective(config.objective), data, config.settings,
                          seed=config.seed, folder=checkpoints.folder, on_epoch=on_epoch,
                          device=str(device), warmup_objective=warmup, save_seconds=save_seconds)
    except Diverged as error:
        return store.finish(run.id, written, error.history, facts | _minutes(error.history), {},
                            status="diverged", reason=str(error))
    evaluations = _evaluate(model, data, config)
    return store.finish(run.id, written, history, facts | _minutes(history) | _costs(evaluations),
                        evaluations, weights=model.state_dict())


def _measured_again(run: Run, root: Path | str | None, result: RunResult, store: RunStore,
                    device: torch.device) -> RunResult:
    """A finished run with the measures of today; nothing is trained."""
    data = encoded_data(run.config, root, str(device))
    model = build_model(run.config, data.inputs)
    model.load_state_dict(result.weights())
    facts = result.facts | merged([result.facts, computed_with(run.config, data, device)])
    evaluations = _evaluate(model.to(device), data, run.config)
    return store.finish(run.id, result.config, result.history, facts | _costs(evaluations),
                        evaluations, weights=model.state_dict())


def _evaluate(model: nn.Module, data: EncodedData, config: RunConfig) -> dict[str, Evaluation]:
    """What each split gives; test is also re-ranked by the queries of dev."""
    most = train_images(config.settings.dev_images)
    splits = dict(data.splits) | {"train": data.splits["train"].head(most)}
    evaluations: dict[str, Evaluation] = {}
    with one_thread(), float32_products(device_of(model), config.settings.matmul):
        for split in (name for name in SPLITS if name in splits):
            bank = evaluations.get("dev") if split == "test" else None
            evaluations[split] = evaluate(model, splits[split], measures_of=data.dataset, bank=bank)
    return evaluations


def train_images(dev_images: int) -> int:
    """On how many images of train, at most, a run with this setting is measured in the end."""
    return dev_images or TRAIN_IMAGES


def _costs(evaluations: dict[str, Evaluation]) -> dict[str, Any]:
    """What parts of an evaluation took, in seconds."""
    return {"costs": {name: round(seconds, 4) for evaluation in evaluations.values()
                      for name, seconds in evaluation.costs.items()}}


def _minutes(history: History) -> dict[str, float]:
    return {"minutes": round(sum(row["seconds"] for row in history.rows) / 60, 3)}


# What a run was computed with: device, instructions, versions, commit. Rows state it; ids do not.
# A run that is stopped and goes on elsewhere was computed in several sittings; its facts state all.

def computed_with(config: RunConfig, data: EncodedData, device: torch.device) -> dict[str, Any]:
    """State what the bits of a run depend on beside its id."""
    return machine_facts(device) | {
        "arithmetic": arithmetic(data.features_dtype, config.settings.precision,
                                 matmul_on(device, config.settings.matmul))}


def machine_facts(device: torch.device) -> dict[str, Any]:
    """State versions, the device and its instructions."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {"device": f"{device.type} {name}", "instructions": instructions(),
            "software": {"python": platform.python_version(), "torch": torch.__version__,
                         "numpy": np.__version__, "itr_study": itr_study.__version__}}


@cache
def git_commit() -> str:
    """The commit of the source, "+" where files differ from it; "" outside a repository."""
    def git(*arguments: str) -> str:
        return subprocess.run(["git", "-C", str(project_root()), *arguments], check=True,
                              capture_output=True, text=True, timeout=20).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", "itr_study")
        return git("rev-parse", "--short=12", "HEAD") + (CHANGED if changed else "")
    except (OSError, subprocess.SubprocessError):
        return ""


def all_sittings(checkpoints: Checkpoints, this: dict[str, Any]) -> dict[str, Any]:
    """Merge the facts of this sitting with those, beside checkpoints, that it goes on from."""
    path = checkpoints.folder / "sittings.json"
    before: list[Any] = []
    if checkpoints.names():
        try:
            before = read_json(path)
        except (OSError, ValueError):  # checkpoints of an older version, or a damaged file
            before = [{}]
    write_json(path, before if this in before else [*before, this])
    return merged([*before, this])


def merged(sittings: list[Any]) -> Any:
    """Facts of several sittings as one: "amx + avx2", equal to neither, where they differ."""
    if isinstance(sittings[-1], dict):
        return {name: merged([facts.get(name, "unknown") if isinstance(facts, dict) else facts
                              for facts in sittings]) for name in sittings[-1]}
    return " + ".join(dict.fromkeys(map(str, sittings)))


def warmup_key(run: Run, facts: Mapping[str, Any]) -> str | None:
    """What the bits of a run's warm-up depend on: its own objective, and what computes it.

    Args:    facts: of all its sittings, and the commit.
    Returns: None where it has none, or where nobody can tell what code trains it.
    """
    config, commits = run.config, facts["commit"].split(" + ")  # of several sittings
    if not config.settings.warmup_epochs or any(one.endswith(CHANGED) for one in commits):
        return None
    config = config.with_(objective=[term.model_dump() for term in config.warmup_objective])
    whole = {name: run.versions[name] for name in ("loop", "evaluation")}
    warmup = hash_run(config, run.data, run.encoded, part_versions(config) | whole)
    return digest(canonical_json([warmup, dict(facts)]))


def build_model(config: RunConfig, inputs: InputSpec) -> nn.Module:
    """Build the model of a config, initialised from its seed."""
    torch.manual_seed(config.seed)
    return MODELS[config.model](inputs, **config.model_arguments)


def check_model(config: RunConfig) -> None:
    """Refuse, before any data is read, a config whose model cannot be built.

    Raises:  ValueError where an argument is out of its range, or the config leaves out an input
             that the model needs; OutOfMemory for one that is too large by itself.
    """
    stages = tuned_stages(config.images)
    size = 720 if OWN.fullmatch(config.model) else 1  # heads or groups of theirs must divide it
    of_clip = (config.tokens or "").partition(f"wordpiece:{CLIP}")[2]  # its model tells the words
    words = len(WordPieces(CLIP + of_clip)) if of_clip else 2 * bool(config.tokens)
    inputs = InputSpec(region_size=0 if stages else size, vocabulary=words,
                       sentence_size=size if config.sentences else 0, stages=stages)
    try:
        with memory_advice(config.settings.batch_size):
            check_methods(build_model(config, inputs))
    except OutOfMemory:
        raise
    except (AssertionError, AttributeError, LookupError, RuntimeError, TypeError,
            ValueError) as error:
        raise ValueError(f"model {config.model!r} cannot be built with model_arguments "
                         f"{config.model_arguments}: {error}") from error


def ended(run: Run, needs: Collection[str] = ()) -> dict[str, Any] | None:
    """The row of a run that ended with these measures: published, or of the store; else None."""
    row = Published(run.config.dataset).complete(run.id, needs)
    if row is None and (result := RunStore().result(run.id)):
        row = make_row(run, result)
    return row if row and is_complete(row, needs) else None


def _images(dataset: RetrievalDataset) -> int:
    return sum(len(split.image_ids) for split in dataset.splits.values())


def changed(run: Run, result: RunResult, root: Path | str | None) -> str:
    """Say what changed since a result of a run's config; "" where it is that of the run."""
    if result.id == run.id:
        return ""
    if (result.facts["data"], result.facts["encoded"]) == (run.data, run.encoded):
        return f"the code or the files of labels changed since run {result.id} was trained"
    then, now = result.facts.get("images"), _images(dataset_of(run.config, root))
    how = (f"when {run.config.dataset} held {then:,} images; it holds {now:,} now"
           if then not in (None, now) else "on other pictures or captions")
    return f"these are other data: run {result.id} was trained {how}"


def former(run: Run, root: Path | str | None) -> str:
    """Say which run of this config was finished here last on former data, and what to do, or ""."""
    store, config = RunStore(), run.config.model_dump(mode="json")
    for path in sorted(store.folder.glob("*/manifest.json"), key=lambda one: -one.stat().st_mtime):
        result = store.result(path.parent.name)
        if result is not None and result.config == config and (moved := changed(run, result, root)):
            return (f"{moved}. Train again: the same command with `train`; or search that one as "
                    f"it is, with the same --data: itr-study search {result.id}")
    return ""


def weights(config: RunConfig, root: Path | str | None = None, *, device: str = "auto",
            result: RunResult | None = None) -> nn.Module:
    """Load a run's model of its best epoch, in evaluation mode; train it if it is not here.

    Args:    result: of a run of the config on former data, which is taken as it is.
    Raises:  ValueError for a run that diverged, or on former data if it learnt the words of those.
    """
    if result and any(reader.learns for reader in text_readers(
            dataset_of(config, root), config.tokens, config.sentences)):
        raise ValueError(f"run {result.id} learnt the words of the captions that it was trained "
                         "on, and they are not kept; train again: the same command with `train`")
    result = result or execute(identify(config, root), root, device=device)
    if result.status != "done":
        raise ValueError(f"run {result.id} has no weights: {result.reason}")
    model = build_model(config, encoded_data(config, root, str(choose_device(device))).inputs)
    model.load_state_dict(result.weights())
    return model.to(choose_device(device)).eval()


def searcher(config: RunConfig, root: Path | str | None = None, split: str = "test", *,
             device: str = "auto", result: RunResult | None = None) -> Searcher:
    """A run's model over a split of its data, with the scores that it has kept.

    Args:    result: as in `weights`, which raises what this does.
    """
    model = weights(config, root, device=device, result=result)
    data, store, run, known = encoded_data(config, root), RunStore(), identify(config, root).id, {}
    with store.lock(run):
        if split == "test" and not result and (own := store.result(run)) is not None:
            known = kept_scores(own)
    return Searcher(model, dataset_of(config, root), data, split, known)


# A run as another process is asked for it: each a line of JSON.

class Job(StrictModel):
    """A config, and how to execute it: as in `execute`, `store` its folder."""

    config: RunConfig
    root: str | None = None
    store: str | None = None
    device: str = "auto"
    save_seconds: Least0 = 60.0
    needs: list[str] = []


class Answer(StrictModel):
    """How a run ended: one of `store.STATES`, why, and the run's id if it got that far."""

    state: str
    reason: str = ""
    id: str = ""


def attempt(job: str) -> str:
    """Execute the run of a `Job`, JSON, and answer in JSON; failures, too, but not interrupts."""
    try:
        asked = Job.model_validate_json(job)
        result = execute(identify(asked.config, asked.root), asked.root, device=asked.device,
                         store=RunStore(asked.store), save_seconds=asked.save_seconds,
                         needs=asked.needs)
        answer = Answer(state=result.status, reason=result.reason, id=result.id)
    except OutOfMemory as error:
        answer = Answer(state="oom", reason=str(error))
    except Exception as error:
        traceback.print_exc()
        answer = Answer(state="failed", reason=f"{type(error).__name__}: {error}")
    return answer.model_dump_json()
