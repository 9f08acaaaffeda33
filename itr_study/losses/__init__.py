"""Losses by name.

A loss is a `RankingLoss`; those of OUTPUT_LOSSES take a ModelOutput instead of scores. None reads a
number of its tensors (`item`, `if` on a tensor, a boolean mask as an index), because a GPU would
stop: checks go through `checks.check_values`, and the loop reads all their numbers at once. To add
one: its file, its class here, its oracle under tests/oracles. `check_loss` names broken rules.
"""

from itr_study.checks import Registry
from itr_study.losses.approx_ndcg import ApproxNDCGLoss
from itr_study.losses.base import Parts, RankingLoss
from itr_study.losses.dense_to_sparse import DenseToSparseLoss
from itr_study.losses.diversity import DiversityLoss
from itr_study.losses.info_nce import InfoNCELoss
from itr_study.losses.kendall import KendallLoss
from itr_study.losses.kendall_window import KendallWindowLoss
from itr_study.losses.kth import KthLoss
from itr_study.losses.ladder import LadderLoss
from itr_study.losses.listnet import ListNetLoss
from itr_study.losses.mmd import MMDLoss
from itr_study.losses.orthogonality import OrthogonalityLoss
from itr_study.losses.recall_at_k import RecallAtKLoss
from itr_study.losses.semantic_margin import SemanticMarginLoss
from itr_study.losses.sigmoid import SigmoidLoss
from itr_study.losses.smooth_ndcg import SmoothNDCGLoss
from itr_study.losses.soft_labels import SoftLabelsLoss
from itr_study.losses.structure import StructureLoss
from itr_study.losses.topk import TopKLoss
from itr_study.losses.triplet_hardest import TripletHardestLoss
from itr_study.losses.triplet_soft import TripletSoftLoss
from itr_study.losses.triplet_sum import TripletSumLoss
from itr_study.losses.variance_weighted import VarianceWeightedLoss

LOSSES: Registry[type[RankingLoss]] = Parts("loss", (
    TripletSumLoss, TripletHardestLoss, TripletSoftLoss, TopKLoss, KthLoss, InfoNCELoss,
    SigmoidLoss, SmoothNDCGLoss, ListNetLoss, ApproxNDCGLoss, KendallLoss, KendallWindowLoss,
    LadderLoss, SemanticMarginLoss, SoftLabelsLoss, RecallAtKLoss,
))
OUTPUT_LOSSES: Registry[type[RankingLoss]] = Registry("loss on outputs", (
    VarianceWeightedLoss, OrthogonalityLoss, DiversityLoss, MMDLoss, StructureLoss,
    DenseToSparseLoss))
