"""What tests of rows share."""

import pytest

from itr_study.lab.runs.config import RunConfig
from tests.small_runs import photos


@pytest.fixture
def real(monkeypatch) -> RunConfig:
    """`scenes` under the name of a real data set, so that its runs may be published."""
    return photos(monkeypatch)
