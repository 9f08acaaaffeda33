"""Which runs each notebook trains: name -> function of (data set, profile) that lists configs."""

from collections.abc import Callable

from itr_study.configs import RunConfig

PLANS: dict[str, Callable[[str, str], list[RunConfig]]] = {}
