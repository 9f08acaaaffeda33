"""Label sources by name: how relevant is text j to image i. To add one: its file, its class here.

A label source is called with (batch, split) and returns (I, T) float32 on the batch's device:
exactly 1 for matches, at most 1 - 1e-4 otherwise. Attributes: `name`, `version` (raised whenever
its values change) and `scale`: "binary" (0 or 1), "unit" ([0, 1]) or "cosine" ([-1, 1]).
"""

from itr_study.relevance.binary import Binary
from itr_study.relevance.exact import Exact

RELEVANCE = {source.name: source for source in (Binary, Exact)}
