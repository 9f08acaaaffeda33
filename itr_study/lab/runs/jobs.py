"""A run as another process is asked for it: a job in, an answer out, each one line of JSON."""

import traceback

from itr_study.lab.runs.config import RunConfig
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.run import execute
from itr_study.lab.runs.store import RunStore
from itr_study.training.interrupts import OutOfMemory
from itr_study.training.settings import Least0, StrictModel


class Job(StrictModel):
    """A config, and where and how to execute it; the other fields as in `run.execute`, `store` its
    folder."""

    config: RunConfig
    root: str | None = None
    store: str | None = None
    device: str = "auto"
    save_seconds: Least0 = 60.0
    needs: list[str] = []


class Answer(StrictModel):
    """How a run ended: a state of `store.STATES`, the reason unless it is done, and the run's id,
    empty where the run did not get that far."""

    state: str
    reason: str = ""
    id: str = ""


def attempt(job: str) -> str:
    """Execute the run of a `Job` given as JSON; its `Answer` as JSON.

    A failure is an answer too, because the next run is not to blame; only KeyboardInterrupt, the
    request to stop, is raised.
    """
    return _attempt(job).model_dump_json()


def _attempt(text: str) -> Answer:
    try:
        job = Job.model_validate_json(text)
        result = execute(identify(job.config, job.root), job.root, device=job.device,
                         store=RunStore(job.store), save_seconds=job.save_seconds,
                         needs=job.needs)
        return Answer(state=result.status, reason=result.reason, id=result.id)
    except OutOfMemory as error:
        return Answer(state="oom", reason=str(error))
    except Exception as error:
        traceback.print_exc()
        return Answer(state="failed", reason=f"{type(error).__name__}: {error}")
