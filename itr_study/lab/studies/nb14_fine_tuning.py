"""The arms of notebook 14: a text encoder that stays as it is, whose last layers learn, or all.

Labels: "<setting>/<loss>"; factors: tuned (the setting), loss.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
from pydantic import Field, PositiveInt
from torch import nn
from torch.nn.functional import normalize

from itr_study.data.batches import InputSpec, pad
from itr_study.data.cxc import Crisscrossed
from itr_study.evaluation.evaluate import evaluate, evaluating
from itr_study.features.dataset import text_readers
from itr_study.lab.label_quality.judges import raters, read_coco
from itr_study.lab.runs.config import RunConfig
from itr_study.lab.studies.arms import ArmRun, base_config, over_seeds, sum_of
from itr_study.lab.studies.bases import rate_in
from itr_study.lab.studies.nb06_kendall import COMPARED
from itr_study.lab.studies.nb13_forgive import SECOND, in_base
from itr_study.lab.studies.parameters import Factor, Names, Parameters, Scenes, by_profile, like
from itr_study.metrics.human import cxc_correlation
from itr_study.models.base import device_of
from itr_study.models.text import build_text
from itr_study.plots.names import name_of

# Settings by what learns of the text encoder.
FROZEN, LAST, ALL = WAYS = "text_frozen", "text_last", "text_all"
REFERENCE = "info_nce"  # what most libraries take
LOSSES = ("hardest", "top5", "info_nce", "hardest+listwise", "bcls")
MIXED = ("hardest", REFERENCE)  # losses whose models are mixed: their weights have to be kept
PAIRS = 20_000  # of captions of generated data that are compared


class FineTuningParameters(Parameters, title="14_fine_tuning"):
    """Parameters of notebook 14."""

    scenes: Scenes = like(Parameters, "scenes", quick={"train": 400, "dev": 100, "test": 200})
    losses: Names = by_profile("losses, InfoNCE among them", ["hardest", "info_nce"],
                               list(LOSSES), list(LOSSES), among=LOSSES, rivals=[REFERENCE])
    seeds: PositiveInt = by_profile("runs of each", 1, 5, 5)
    rate_factors: list[Factor] = by_profile(
        "factors of each learning rate to try; []: none", [], [], [0.5, 2.0], empty=True)
    shares: list[Annotated[float, Field(ge=0, le=1)]] = by_profile(
        "shares s of the trained model in a mixture, 0 to 1", [0.0, 1.0],
        *2 * [[0.0, 0.25, 0.5, 0.75, 1.0]])


def way_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List each loss with each part of the text encoder learning, each at its own rate."""
    return [arm for tuned in WAYS for loss in parameters.losses for arm in over_seeds(
        f"{tuned}/{loss}", way_config(dataset, tuned, loss, parameters), parameters.seeds,
        setting="fine_tuned", tuned=tuned, loss=loss)]


def clean_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List the losses in a model that has seen no other captions; nobody trains them for this."""
    return in_base(dataset, SECOND, parameters, {one: COMPARED[one] for one in parameters.losses})


def way_config(dataset: str, tuned: str, loss: str, parameters: Parameters) -> RunConfig:
    """Make the config of a loss, seed 0, at its own rate."""
    config = base_config(dataset, tuned, parameters)
    rate = rate_in(dataset, tuned, loss, config.settings.learning_rate, parameters.rates_here)
    return sum_of(config, *COMPARED[loss]).with_(**{"settings.learning_rate": rate})


def learning(study: Any) -> pd.DataFrame:
    """Count what learns of the text encoder in each way: numbers, and the transformer's layers."""
    lines = []
    for tuned in WAYS:
        config = way_config(study.dataset_name, tuned, REFERENCE, study.parameters)
        reader, = text_readers(study.dataset, config.tokens, None)
        given = {"word_size": 0, "tuned": None} | config.model_arguments
        text = build_text(given["text"], InputSpec(vocabulary=len(reader)),
                          *(given[name] for name in ("size", "word_size")), tuned=given["tuned"])
        lines.append((name_of(tuned), sum(one.numel() for one in text.parameters()
                                          if one.requires_grad),
                      sum(next(one.parameters()).requires_grad for one in text.transformer.layers),
                      text.transformer.width))
    return pd.DataFrame(lines, columns=["what learns", "learn", "layers", "width d"])


def way_rates(dataset: str, parameters: Parameters) -> dict[str, dict[str, float]]:
    """Return the rates in use, for `arms.rate_table`: setting -> loss -> rate."""
    return {tuned: {loss: way_config(dataset, tuned, loss, parameters).settings.learning_rate
                      for loss in parameters.losses} for tuned in WAYS}


def way_rate_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List the search of learning rates, for `arms.rate_table`, seed 0."""
    arms = []
    for tuned in WAYS:
        for loss in parameters.losses if parameters.rate_factors else ():
            config = way_config(dataset, tuned, loss, parameters)
            for times in sorted({1.0, *parameters.rate_factors}):
                rate = float(f"{times * config.settings.learning_rate:g}")
                arms += over_seeds(f"{tuned}/{loss}/{rate:g}", config.with_(
                    **{"settings.learning_rate": rate}), 1, setting=tuned, tuned=tuned,
                    loss=loss, rate=rate)
    return arms


def rated_captions(study: Any) -> tuple[Sequence[str], Crisscrossed]:
    """Take captions and pairs of their places: of test by exact relevance, else CxC's by people.

    Raises: DataError: CxC or COCO's captions are missing.
    """
    split, relevance = study.dataset.splits["test"], study.dataset.relevance
    if relevance is None:
        coco = read_coco(study.root, {}, ())
        found, texts = raters(coco, study.root, "sts"), coco.texts
        return texts, Crisscrossed("sts", "test", found.first, found.second, found.ratings,
                                   found.own)
    first, second = np.random.default_rng(0).integers(len(split.texts), size=(2, PAIRS))
    owner = split.image_of_text
    return split.texts, Crisscrossed("sts", "test", first, second, relevance(split)[
        owner[first], second], owner[first] == owner[second])


def mixtures(runs: Sequence[ArmRun]) -> dict[tuple[str, int], tuple[ArmRun, ArmRun]]:
    """Pair runs of `MIXED`, seed 0: those whose encoder learns with the frozen, by (arm, seed)."""
    of = {(run.factors["tuned"], run.factors["loss"]): run for run in runs if not run.config.seed}
    return {(run.label, 0): (of[FROZEN, loss], run)
            for (tuned, loss), run in of.items() if tuned == ALL and loss in MIXED}


def mixed(study: Any, groups: Mapping[tuple[str, int], tuple[ArmRun, ArmRun]]) -> pd.DataFrame:
    """Measure models whose weights lie between those of two runs: a line a share of the second.

    Columns: arm, seed, loss, share, rsum (test), agreement (Spearman of captions' cosines before
    the last map with `rated_captions`, in percent).
    """
    (_, any_run), (texts, rated) = next(iter(groups.values())), rated_captions(study)
    reader, = text_readers(study.dataset, any_run.config.tokens, None)
    used, places = np.unique([rated.first, rated.second], return_inverse=True)
    tokens = [reader.encode(texts[place]) for place in used]
    lines = []
    for (arm, seed), (frozen, tuned) in groups.items():
        start, model, split = study.model(frozen).state_dict(), study.model(tuned), \
            study.encoded(tuned)
        end = {name: values.clone() for name, values in model.state_dict().items()}
        for share in study.parameters.shares:
            model.load_state_dict({name: torch.lerp(values, end[name], share)
                                   for name, values in start.items()})
            first, second = sentence_vectors(model, tokens)[places.reshape(2, -1)]
            lines.append((arm, seed, tuned.factors["loss"], share,
                          evaluate(model, split).table["rsum"],
                          100 * cxc_correlation((first * second).sum(1), rated)["spearman"]))
    return pd.DataFrame(lines, columns=["arm", "seed", "loss", "share", "rsum", "agreement"])


def sentence_vectors(model: nn.Module, tokens: Sequence[np.ndarray]) -> np.ndarray:
    """Encode captions by the transformer alone: unit vectors (T, D) float32."""
    device, order = device_of(model), np.argsort([len(one) for one in tokens], kind="stable")
    with evaluating(model):
        parts = [model.text.pooled(*(part.to(device) for part in pad([tokens[k] for k in some])))
                 for some in np.array_split(order, -(-len(order) // 256))]
    return normalize(torch.cat(parts).float(), dim=1).cpu().numpy()[np.argsort(order)]


ARMS = (way_arms, way_rate_arms)
