"""Losses by name. To add one: its file, its class here, and its oracle under tests/oracles.

A loss is an nn.Module without state: `forward(scores (I, T), relevance (I, T))` gives a 0-dim
tensor. Class attributes: `name`, `label` (for plots), `source`, `version` (raised whenever its
numbers change) and `labels`, the scale of relevance it takes: "binary", "unit" or "cosine".
Losses of OUTPUT_LOSSES take (ModelOutput, relevance) instead and say so by `takes = "output"`.
A loss may have `diagnose(scores, relevance)`: its value, and a dict of named 0-dim tensors to be
logged.

A loss never reads a number of its tensors, which would stop a GPU until all its work is done: no
`item`, no `if` on a tensor, no boolean mask as an index. What must be checked goes through
`checks.check_values`; the training loop reads everything at once. tests/on_sim.py counts.
"""

from itr_study.losses.approx_ndcg import ApproxNDCG
from itr_study.losses.info_nce import InfoNCE
from itr_study.losses.kendall import Kendall
from itr_study.losses.kendall_window import KendallWindow
from itr_study.losses.kth import Kth
from itr_study.losses.ladder import Ladder
from itr_study.losses.listnet import ListNet
from itr_study.losses.semantic_margin import SemanticMargin
from itr_study.losses.sigmoid import Sigmoid
from itr_study.losses.smooth_ndcg import SmoothNDCG
from itr_study.losses.topk import TopK
from itr_study.losses.triplet_hardest import TripletHardest
from itr_study.losses.triplet_soft import TripletSoft
from itr_study.losses.triplet_sum import TripletSum

LOSSES = {loss.name: loss for loss in (
    TripletSum, TripletHardest, TripletSoft, TopK, Kth, InfoNCE, Sigmoid,
    SmoothNDCG, ListNet, ApproxNDCG, Kendall, KendallWindow, Ladder, SemanticMargin,
)}
OUTPUT_LOSSES: dict = {}
