"""Models by name. To add one: its file, and its class here."""

from itr_study.checks import Registry
from itr_study.losses.base import Parts
from itr_study.models.base import RetrievalModel
from itr_study.models.cross_attention import SAF, SGR
from itr_study.models.dan import DAN
from itr_study.models.subembeddings import DVSE, PVSE
from itr_study.models.two_branch import TwoBranch
from itr_study.models.vse_infinity import VSEInfinity
from itr_study.models.vsepp import VSEPP

MODELS: Registry[type[RetrievalModel]] = Parts("model", (
    TwoBranch, VSEPP, VSEInfinity, PVSE, DVSE, SAF, SGR, DAN))
