"""Rules by themselves: most worked differences are smaller than what matters."""

import pytest

from itr_study.lab.ledger import verdict


@pytest.fixture
def no_margins(monkeypatch):
    monkeypatch.setattr(verdict, "SMALLEST", {})
