"""List the runs that each notebook trains: arms, each a label with a run per seed.

    parameters = choose("03_topk", "quick")
    rows = train_arms(k_arms("scenes", parameters), root=None)     one row per run, with its arm

The arms and the parameters of a notebook are in its file beside this one, base configs in
studies/bases/<dataset>.toml; labels are explained in ledger/reported/README.md.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any

from itr_study.checks import check_choice
from itr_study.encoders import IMAGE_ENCODERS
from itr_study.encoders.base import VIEWS
from itr_study.lab.runs.config import RunConfig
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.published import Published, keeps_rows
from itr_study.lab.runs.run import ended
from itr_study.lab.runs.store import RunStore
from itr_study.lab.studies import (
    nb02_pairwise,
    nb03_topk,
    nb05_listwise,
    nb06_kendall,
    nb07_sub_embeddings,
    nb08_reranking,
    nb09_stronger_models,
    nb10_explorers,
    nb11_attention,
    nb12_claims,
    nb13_forgive,
    nb14_fine_tuning,
)
from itr_study.lab.studies.arms import ArmRun, Maker, reading
from itr_study.lab.studies.parameters import (
    CHANGE_NO_RUN,
    PAPER,
    DataParameters,
    Parameters,
    RelevanceParameters,
)
from itr_study.lab.studies.presets import paper_arms
from itr_study.progress import progress

# The parameters of each notebook, and the makers of all runs that it trains.
STUDIES: dict[str, tuple[type[Parameters], tuple[Maker, ...]]] = {
    "00_start_here": (nb02_pairwise.StartParameters, (nb02_pairwise.first_arms,)),
    "01_data_and_judgements": (DataParameters, ()),
    "02_pairwise_losses": (nb02_pairwise.PairwiseParameters, nb02_pairwise.ARMS),
    "03_topk": (nb03_topk.TopkParameters, nb03_topk.ARMS),
    "04_relevance": (RelevanceParameters, ()),
    "05_listwise": (nb05_listwise.ListwiseParameters, nb05_listwise.ARMS),
    "06_kendall": (nb06_kendall.KendallParameters, nb06_kendall.ARMS),
    "07_sub_embeddings": (nb07_sub_embeddings.SubEmbeddingParameters, nb07_sub_embeddings.ARMS),
    "08_reranking": (nb08_reranking.RerankingParameters, nb08_reranking.ARMS),
    "09_stronger_models": (nb09_stronger_models.StrongerParameters, nb09_stronger_models.ARMS),
    "10_explorers": (nb10_explorers.ExplorerParameters, (nb05_listwise.explored_arms,)),
    "11_attention_maps": (nb11_attention.AttentionParameters, nb11_attention.ARMS),
    "12_claims": (nb12_claims.ClaimsParameters, nb12_claims.ARMS),
    "13_when_to_forgive": (nb13_forgive.ForgiveParameters, nb13_forgive.ARMS),
    "14_fine_tuning": (nb14_fine_tuning.FineTuningParameters, nb14_fine_tuning.ARMS)}


def choose(notebook: str, profile: str, **given: Any) -> Parameters:
    """Choose the parameters of a notebook: those of a profile, but for those given.

    Raises: ValueError: for an unknown notebook, and for what `Parameters` refuses.
    """
    check_choice("notebook with parameters", notebook, STUDIES)
    return STUDIES[notebook][0].of(profile=profile, **given)


def arms_of(notebook: str, dataset: str, profile: str, data: Path | str | None = None,
            **given: Any) -> list[ArmRun]:
    """List every run of a notebook in a profile, with the parameters given.

    Args, Raises: as `choose`, and data: folder of the data sets, whose files say what models read.
    """
    parameters = reading(choose(notebook, profile, dataset=dataset, **given), data)
    makers = (*STUDIES[notebook][1], *[paper_arms] * (profile == PAPER))
    return [arm for make in makers for arm in make(dataset, parameters)]


# Called with dataset, profile and what else is set of a notebook's parameters.
PLANS: dict[str, Callable[..., list[ArmRun]]] = {
    notebook: partial(arms_of, notebook) for notebook in STUDIES}


# What a batch has to train: which runs are present, which are not, and the hours that takes.

@dataclass
class Planned:
    """The runs of a notebook; one that an earlier notebook makes counts as present."""

    notebook: str
    present: int = 0
    missing: int = 0
    stale: int = 0  # kept, but a part has a new version since, or a measure is missing
    hours: float = 0.0  # of missing and stale runs that are trained, one after the other
    unknown: int = 0  # runs of unknown length: no row has the same model
    runs: list[str] = field(default_factory=list, repr=False)  # ids to be trained


def planned(paths: Sequence[Path], parameters: Mapping[str, Any]) -> list[Planned]:
    """List what each notebook would train with the parameters set in its cell.

    Raises:
        ValueError: a notebook would refuse one.
        DataError: the data is not there and no runs on it are published.
    """
    before, kept = set(), cache(_Kept.read)
    kept(parameters["dataset"])  # what is wrong with its rows is said before anything is read
    return [_plan_one(path.stem, parameters, kept, before)
            for path in progress(paths, "looking for runs of notebooks")]


@dataclass
class _Kept:
    """What is kept of the runs of a data set."""

    rows: dict[str, dict]  # by run id
    configs: set[str]  # of the rows as JSON, whatever versions of the parts made them

    @classmethod
    def read(cls, dataset: str) -> "_Kept":
        rows, configs = Published(dataset).table.read(), set()
        for row in rows.values():
            with suppress(ValueError):  # of a part that is gone: no config of today equals it
                configs.add(RunConfig.model_validate_json(row["config"]).model_dump_json())
        return cls(rows, configs)


def _plan_one(notebook: str, parameters: Mapping[str, Any], kept: Callable[[str], _Kept],
              before: set[str]) -> Planned:
    """Plan one notebook; add the ids that it will train to `before`."""
    plan, make = Planned(notebook), PLANS.get(notebook)
    given = {name: value for name, value in parameters.items() if name not in CHANGE_NO_RUN}
    for arm in make(**given) if make else ():
        run = identify(arm.config, parameters.get("data"))
        rows = kept(arm.config.dataset)
        if run.id in before or ended(run, arm.needs):
            plan.present += 1
            continue
        before.add(run.id)
        plan.runs.append(run.id)
        in_store = RunStore().result(run.id) is not None
        stale = in_store or arm.config.model_dump_json() in rows.configs
        plan.stale, plan.missing = plan.stale + stale, plan.missing + (not stale)
        if in_store:
            continue  # its weights are evaluated again, in seconds
        minutes = expected_minutes(arm.config, rows.rows) if keeps_rows(arm.config) else None
        plan.hours += (minutes or 0.0) / 60
        plan.unknown += minutes is None
    return plan


def expected_minutes(config: RunConfig, rows: dict[str, dict]) -> float | None:
    """Estimate a run by the median of the rows most like it; None: no row is like it.

    Like it are rows of the same model and kind of images: a grid, or a fine-tuned network, takes
    ten times as long.
    """
    same_model = [row for row in rows.values() if row["model"] == config.model and row["minutes"]
                  and kinds_of(row["images"]) == kinds_of(config.images)]
    alike = [row for row in same_model if (row["images"], row["tokens"], row["sentences"]) ==
             (config.images, config.tokens, config.sentences)
             and json.loads(row["config"])["settings"]["epochs"] == config.settings.epochs]
    minutes = [row["minutes"] for row in alike or same_model]
    return median(minutes) if minutes else None


def kinds_of(images: str) -> set[str]:
    """Return what an images spec says besides encoders and views.

    Example:
        >>> sorted(kinds_of("lite0:nanodet:36") | kinds_of("lite2:pooled:flip"))
        ['36', 'nanodet', 'pooled']
    """
    return set(re.split("[:+]", images)) - {*IMAGE_ENCODERS, *VIEWS}


def plan_table(plans: Sequence[Planned]) -> str:
    """Write one line per notebook and the sum, below what the columns mean."""
    total = Planned("all", sum(p.present for p in plans), sum(p.missing for p in plans),
                    sum(p.stale for p in plans), sum(p.hours for p in plans),
                    sum(p.unknown for p in plans))
    width = max(len("notebook"), *(len(p.notebook) for p in [*plans, total]))
    lines = ["Runs: present (here, or counted before), missing, or stale (kept, but of an older "
             "part or without a measure).",
             "", f"{'notebook':<{width}}  present  missing  stale  hours of one core"]
    for p in [*plans, total]:
        note = f" + {p.unknown} runs of unknown length" if p.unknown else ""
        lines.append(f"{p.notebook:<{width}}  {p.present:7}  {p.missing:7}  {p.stale:5}  "
                     f"{p.hours:17.1f}{note}")
    return "\n".join(lines)
