"""Controls for pictures: a skin over functions that draw; nothing here computes."""

from itr_study.explorers.controls import explore

__all__ = ["explore"]
