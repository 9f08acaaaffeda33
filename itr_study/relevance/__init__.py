"""Label sources by name: how relevant is text j to image i.

A label source is called with (batch, split) and returns (I, T) float32 on the batch's device:
exactly 1 for matches, at most 1 - 1e-4 otherwise; `block(split, images)` gives the same of every
text of a split and a slice of its images, as numpy. Attributes: `name`, `version` (raised whenever
its values change), `scale`: "binary" (0 or 1), "unit" ([0, 1]) or "cosine" ([-1, 1]), and
`vectors_needed`: names in `split.label_vectors` that it reads. A batch's tensors are never read
back, which would stop a GPU: what is computed on the host takes `batch.ids`, which it knows.

To add one: its file, its class here.
"""

from itr_study.checks import Registry
from itr_study.relevance.binary import Binary
from itr_study.relevance.cider import Cider
from itr_study.relevance.exact import Exact
from itr_study.relevance.features import Clip, Features
from itr_study.relevance.meteor import Meteor, Spice
from itr_study.relevance.sentence import Sentence

RELEVANCE = Registry("label source", (
    Binary, Exact, Sentence, Cider, Clip, Features, Meteor, Spice))
