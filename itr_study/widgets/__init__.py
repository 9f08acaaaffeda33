"""Controls for pictures: a skin over functions that draw; nothing here computes."""

from itr_study.widgets.controls import explore

__all__ = ["explore"]
