"""All scores of a run's test split, kept for models that compare every pair anew.

    runs/scores/<id>/   test.safetensors  manifest.json

They took minutes; an explorer or an ensemble would compute them again. What is kept is a saving
alone: it may be deleted, and where it cannot be written, or is damaged, scores are computed again.
A run has them if it was trained where this module was; `evaluation.kept.all_scores` says which.
"""

import warnings
from pathlib import Path

from torch import Tensor

from itr_study.evaluation.evaluate import Evaluation
from itr_study.files.atomic import sha256_file
from itr_study.files.sealed import Damaged, load_weights, save_weights, seal, set_aside, verify
from itr_study.runs.store import RunResult

SCORES = "test.safetensors"


def keep_scores(result: RunResult, test: Evaluation | None) -> RunResult:
    """Keep all scores of a run that ended, where its test gave them; the result, as it is."""
    folder = _folder(result)
    try:
        if test is not None and test.scores:
            save_weights(folder / SCORES, test.scores)
            seal(folder, weights=_weights(result))
    except OSError as error:
        warnings.warn(f"the scores of run {result.id} cannot be kept in {folder}: {error}; what "
                      "needs them computes them again", stacklevel=2)
    return result


def kept_scores(result: RunResult) -> dict[str, Tensor]:
    """What `keep_scores` kept of these weights, {} where nothing is. Damaged scores are set aside.
    """
    folder = _folder(result)
    if not (folder / SCORES).exists():
        return {}
    try:
        of = verify(folder, (SCORES,)).get("weights")
    except Damaged as error:
        set_aside(folder, f"scores of run {result.id}: {error}; they are computed again")
        return {}
    return load_weights(folder / SCORES) if of == _weights(result) else {}


def _folder(result: RunResult) -> Path:
    return result.folder.parent / "scores" / result.id


def _weights(result: RunResult) -> str:
    """Which weights made the scores: a run that is trained again may get others."""
    return sha256_file(result.folder / "weights.safetensors")
