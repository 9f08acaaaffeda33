"""`check_loss` finds what is wrong with a loss, and what its documentation lacks."""

import doctest

import pytest
import torch

import itr_study.losses.check as module
from itr_study.losses.base import RankingLoss
from itr_study.losses.check import check_loss


def good(scores, relevance):
    """The mean of the others less that of the matches, which no batch makes a division by 0."""
    return ((1 - relevance) * scores).mean() - (relevance * scores).mean()


class Declared(RankingLoss):
    """As `good`, but it says what it takes."""

    name, relevance_scale = "declared", "binary"

    def forward(self, scores, relevance):
        return good(scores, relevance.to(scores.dtype))


class WithAnExample(Declared):
    """Has an example.

    Example:
        >>> 1 + 1
        3
    """


class AnotherDiagnosis(Declared):
    def diagnose(self, scores, relevance):
        return 2 * self(scores, relevance), {"many": scores}


class AnotherMask(Declared):
    def forward(self, scores, relevance):
        return super().forward(scores, relevance) * (2 if relevance.dtype == torch.bool else 1)


class InPercent(Declared):
    relevance_scale = "percent"


class OneDirection(Declared):
    def forward(self, scores, relevance):
        return (good(scores, relevance.to(scores.dtype))
                + scores.softmax(dim=1)[0].square().sum())


def of_output(output, relevance):
    return output.residuals.nan_to_num().square().mean()


of_output.takes = "output"


@pytest.mark.parametrize(("loss", "message"), [
    (lambda s, r: s.mean(dim=1), r"gives \(7,\) for scores \(7, 12\), not a 0-dim.*\.mean\(\)"),
    (lambda s, r: 0.5, "gives float for scores"),
    (lambda s, r: good(s, r).float(), "in torch.float32 for scores in torch.float64"),
    (lambda s, r: (0 * good(s, r) - 1).log(), "gives nan in"),
    (lambda s, r: good(s.detach(), r), "passes no gradient"),
    (lambda s, r: good(s, r) + (s.detach() * s).sum(), "not the slope of its value"),
    (lambda s, r: -good(s, r), "does not fall when scores of matches rise"),
    (lambda s, r: good(s, r) / r.sum(), "not finite.*of the kind: no match"),
    (lambda s, r: good(s, r) + (1 - r).sum() ** -1 - 1, "not finite.*of the kind: all relevant"),
    (lambda s, r: good(s.nan_to_num(), r), "hides a NaN of scores"),
    (lambda s, r: good(s, r) + s[0, 0], "depends on the order"),
    (lambda s, r: good(s, r) if s.sum() > 0 else good(s, r), "reads a number.*a GPU stops"),
    (lambda s, r: good(s, r) - s[r == 1].sum(), "reads a number.*boolean mask as index"),
    (lambda s, r: r.no_such_thing, "check_value: AttributeError: .*no_such_thing"),
    (lambda s, r: s @ r if len(s) == 1 else good(s, r), "check_edges: RuntimeError"),
    (of_output, "hides a NaN of residuals"),
    (OneDirection, r"another value for scores\.T"), (OneDirection, "depends on the order"),
    (Declared, "does not refuse relevance of another shape by a ValueError"),
    (Declared, "relevance of 2 by a Val"), (Declared, "relevance of -1.5 by a ValueError: call"),
    (Declared, "does not widen half precision"),
    (AnotherMask, "another value for a bool mask"), (InPercent, "'percent', not one of"),
    (AnotherDiagnosis, "diagnose that gives another value"), (AnotherDiagnosis, "whose many is no"),
    (WithAnExample, "prints something else:\n(.*\n)*.*Got:\n +2"),
])
def test_what_is_wrong_is_found(loss, message):
    with pytest.raises(AssertionError, match=message):  # the text of the findings
        assert check_loss(loss).wrong == [], repr(check_loss(loss))


def test_a_name_is_no_loss():
    with pytest.raises(ValueError, match="takes a class, a module or a function.*got 'topk'"):
        check_loss("topk")


def test_a_function_that_is_right_has_nothing_wrong_and_much_undocumented():
    found = check_loss(good)
    assert found.wrong == [] and "wrong:\n  nothing\nundocumented:\n  no name" in repr(found)
    lacks = "\n".join(found.undocumented)
    for part in ("display_name", "version", "relevance_scale", "Use:, See:", "formula"):
        assert part in lacks


class OneWay(torch.nn.Module):
    """Of the images' lists alone, which a module of one's own may be."""

    def forward(self, scores, relevance):
        return good(scores.softmax(dim=1), relevance)


def test_an_own_loss_has_both_directions_only_if_it_says_so():
    def function(scores, relevance):
        return good(scores.softmax(dim=1), relevance)

    for loss in (OneWay(), function):
        assert check_loss(loss).wrong == []
        loss.symmetric = True
        assert "symmetric = False" in check_loss(loss).wrong[0]


def test_an_argument_that_no_word_is_said_of_is_named():
    class Silent(Declared):
        """Nothing is said.

        Args:
            margin: a gap.
        """

        def __init__(self, margin=0.2, power=1):
            super().__init__()

    assert check_loss(Silent).undocumented[-1].endswith("under Args: about power")


def test_the_random_state_of_a_training_is_left_alone():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    check_loss(Declared)
    assert torch.equal(torch.get_rng_state(), before)


def test_example_in_docstring():
    result = doctest.testmod(module)
    assert result.attempted and not result.failed
