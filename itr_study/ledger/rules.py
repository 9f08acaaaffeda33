"""The rule of the ledger: when runs of ours reproduce or contradict a claim.

All evidence is paired: both arms share the seed, hence initial weights and batch order. Every
rule comes down to samples of differences that must lie above zero, "wholly above" meaning that
the two-sided 95 % Student-t interval of their mean does. At least five pairs are needed.

difference   a - b is wholly above zero, for every pair of arms and every metric of the claim
order        the same for all neighbours of arm_a, listed from best to worst
equivalence  every a - b lies wholly inside +- margin ("5%": of b)
peak         the best arm of the region arm_a is wholly above every arm of arm_b outside

reproduced: all of that. contradicted: one pair (peak: one outside arm against the whole region)
lies wholly on the other side. Where the rule is free to pick among m places, as contradiction by
any of m cells and the best of a region are, the level is 1 - 0.05 / m. Everything else is
undecided, with the number of pairs that would decide, or not tested, with what is missing.

collapsed    an arm of the claim holds a run whose scores have drawn together although its loss
             wants them apart (training/collapse.py): no verdict rests on it, whatever its number
definition   nothing to measure: held by a test, which is named
misprint     the same, and what the test holds is not what is printed

Generalisation is 100 log(RSUM on test / RSUM on training images): how much of what was learnt by
heart is kept. The difference train - test is not it, for an arm that learns little has a small one.
Even so, only arms that fit their training images about equally well are compared: within 30 points
of RSUM of the best of the claim, else the claim is not tested.

Claims about label sources ("labels(sentence, max)") have no runs and no seeds. There the sample is
the images that were judged: both sources are judged on the same images, drawn anew with replacement
(the bootstrap), and the interval of their difference is mean -+ the quantile of the normal
distribution x the standard deviation over the draws. The kinds and levels are the same.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise, product
from typing import NamedTuple

from itr_study.ledger.evidence import Estimate, LabelArms, LabelPart
from itr_study.ledger.paired import Arms, Part, Sample
from itr_study.ledger.reported import split_list
from itr_study.metrics.intervals import LEVEL

# Kinds without a measurement, and their outcomes.
HELD = {"definition": "held by a test", "misprint": "not as printed"}
FIT = 30  # points of RSUM on training images


class Case(NamedTuple):
    """A claim as samples: all of `support` above zero, or all of one list of `against`."""

    support: list[Sample | Estimate]
    against: list[list[Sample | Estimate]]
    shown: list[Part | LabelPart]


def adjusted(places: int) -> float:
    """The level for a rule that may pick among some places (Bonferroni)."""
    return 1 - (1 - LEVEL) / places


def difference_case(claim: Mapping[str, str], arms: Arms | LabelArms) -> Case:
    """Pairs of arm_a and arm_b, or neighbours of arm_a for an order."""
    first, second = split_list(claim["arm_a"]), split_list(claim["arm_b"])
    couples = list(pairwise(first) if claim["kind"] == "order"
                   else zip(first, second, strict=True))
    parts = [arms.part(a, b, metric) for metric in split_list(claim["metric"])
             for a, b in couples]
    level = adjusted(len(parts))
    return Case([part.sample(LEVEL) for part in parts],
                [[part.sample(level, -1)] for part in parts], parts)


def equivalence_case(claim: Mapping[str, str], arms: Arms | LabelArms) -> Case:
    """Every difference inside the margin, which may be relative ("5%")."""
    margin, relative = float(claim["margin"].rstrip("%")), claim["margin"].endswith("%")
    couples = zip(split_list(claim["arm_a"]), split_list(claim["arm_b"]), strict=True)
    parts = [arms.part(a, b, metric, relative)
             for (a, b), metric in product(couples, split_list(claim["metric"]))]
    level = adjusted(len(parts))
    inside = [part.sample(LEVEL, sign, margin) for part in parts for sign in (1, -1)]
    outside = [[part.sample(level, sign, -margin)] for part in parts for sign in (1, -1)]
    return Case(inside, outside, parts)


def peak_case(claim: Mapping[str, str], arms: Arms | LabelArms) -> Case:
    """The best of a region against each arm outside; the best outside against the region."""
    region, outside = split_list(claim["arm_a"]), split_list(claim["arm_b"])
    metrics, support, against, shown = split_list(claim["metric"]), [], [], []
    for metric in metrics:
        best_in, best_out = (max(group, key=lambda arm: arms.values(arm, metric).mean())
                             for group in (region, outside))
        parts = [arms.part(best_in, other, metric) for other in outside]
        support += [part.sample(adjusted(len(region))) for part in parts]
        level = adjusted(len(metrics) * len(outside))
        against.append([arms.part(inside, best_out, metric).sample(level, -1)
                        for inside in region])
        shown += parts
    return Case(support, against, shown)


CASES: dict[str, Callable[[Mapping[str, str], Arms | LabelArms], Case]] = {
    "difference": difference_case, "order": difference_case,
    "equivalence": equivalence_case, "peak": peak_case}


def decide(case: Case) -> tuple[str, int | None]:
    """The outcome of a case, and the pairs that would decide an undecided one."""
    if all(sample.above() for sample in case.support):
        return "reproduced", None
    if any(all(sample.above() for sample in group) for group in case.against):
        return "contradicted", None
    groups = [group for group in [case.support, *case.against]
              if all(sample.mean > 0 for sample in group)]
    needed = [[sample.pairs_needed() for sample in group] for group in groups]
    finite = [max(counts) for counts in needed if None not in counts]
    return "undecided", min(finite, default=None)
