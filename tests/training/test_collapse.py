"""When a training has collapsed: by hand, and seen in trainings that do."""

import warnings

import pandas as pd
import pytest
import torch

from itr_study.training.collapse import EqualScores, collapse, equal_scores, flattened
from itr_study.training.loop import fit
from itr_study.training.objective import Objective, Term
from itr_study.training.settings import Settings
from itr_study.training.state import TaughtNothing
from tests.small import SmallData, SmallLoss, small_model

HINGE = EqualScores({"hinge": 1.0}, 0.4, False)


def curve(spreads, losses=None, first=None) -> pd.DataFrame:
    table = pd.DataFrame({"score_std": spreads, "hinge": losses or [0.1] * len(spreads)})
    return table if first is None else table.assign(first_score_std=first)


@pytest.mark.parametrize("spreads, losses, expected", [
    ([0.2, 0.1, 0.021], None, ""),  # a tenth of 0.2 is 0.02
    ([0.2, 0.1, 0.019], None, "by 0.019, at their widest by 0.2"),
    ([0.1, 0.3, 0.029], None, "by 0.029, at their widest by 0.3"),  # it spread first
    ([0.2, 0.1, 0.090], [9.0, 0.41, 0.419], "the loss stands at 0.419, 0.4 being its value"),
    ([0.2, 0.1, 0.090], [9.0, 0.41, 0.382], "the loss stands at 0.382"),
    ([0.2, 0.1, 0.090], [9.0, 0.41, 0.421], ""),  # further than 5 %
    ([0.2, 0.1, 0.090], [9.0, 0.41, 0.379], ""),
    ([0.2, 0.1, 0.101], [9.0, 0.41, 0.400], ""),  # more than half of the widest: on its way down
    ([0.06, 0.10], [0.48, 0.41], ""),  # so does every hinge in its second epoch
    ([0.2, 0.1, 0.090], [9.0, 0.41, None], "")])  # a loss that was not finite
def test_by_hand(spreads, losses, expected):
    found = collapse(curve(spreads, losses), HINGE)
    assert (expected in found and found.startswith("collapsed: ")) if expected else not found


def test_without_a_known_loss_only_the_spread_tells():
    near = curve([0.2, 0.09], [0.4, 0.4])
    assert collapse(near, HINGE) and not collapse(near)
    assert not collapse(near, EqualScores({}, 0.0, False))
    assert not collapse(near, EqualScores({"of warm-up": 1.0}, 0.4, False))
    assert collapse(curve([0.2, 0.019]))
    assert not collapse(pd.DataFrame()) and not collapse(pd.DataFrame({"loss": [1.0]}))


def test_the_start_is_that_of_the_first_step():
    """A collapse within the first epoch: its mean spread is small already."""
    within = [0.006, 0.004]
    assert collapse(curve(within, first=[0.08, 0.005]))
    assert not collapse(curve(within, first=[0.03, 0.005]))
    assert collapse(curve([0.0039, 0.0039])) and not collapse(curve([0.0041, 0.0041]))
    # where it was not kept: that of untrained cosines, 0.04


def named(*terms) -> EqualScores:
    return equal_scores(Objective([Term(*term) if isinstance(term, tuple) else term
                                   for term in terms]), 4)


def test_losses_say_their_value_for_equal_scores_themselves():
    assert named(("triplet_hardest",)).loss == pytest.approx(2 * 0.2)
    assert named(("triplet_sum",)).loss == pytest.approx(2 * 3 * 0.2)
    soft = named(Term("triplet_soft", arguments={"margin": 0.1, "scale": 10.0}))
    assert soft.loss == pytest.approx(2 * (0.1 + torch.tensor(3.0).log().item() / 10))
    assert named(("info_nce",)).loss == pytest.approx(2 * torch.tensor(4.0).log().item())


def test_terms_count_by_their_weights_and_graded_ones_not_at_all():
    both = named(("triplet_hardest", 0.5), ("triplet_sum", 2.0), ("smooth_ndcg", 1.0, "sentence"))
    assert both.weights == {"triplet_hardest": 0.5, "triplet_sum": 2.0}
    assert both.loss == pytest.approx(0.5 * 0.4 + 2 * 1.2) and not both.flat
    epoch = pd.DataFrame({"score_std": [0.2, 0.09], "triplet_hardest": [0.4, 0.4],
                          "triplet_sum": [1.2, 1.2], "smooth_ndcg": [5.0, 5.0]})
    assert "stands at 2.6, 2.6 being" in collapse(epoch, both)
    assert not collapse(epoch.assign(triplet_sum=0.6), both)
    binary = named(("smooth_ndcg", 1.0, "binary"))  # fed 0 and 1: known
    assert binary.loss == pytest.approx(2 * (1 - 1 / torch.tensor(3.5).log2().item()))
    assert named(("triplet_hardest", 0.0), ("triplet_sum",)).weights == {"triplet_sum": 1.0}


def test_a_loss_that_asks_for_equal_scores_does_not_collapse():
    cosines = {"labels": "sentence", "label_arguments": {"scale": "cosine"}}
    alone = named(Term("kendall_window", **cosines))
    shrunk = curve([0.04, 0.001])
    assert alone.flat and not collapse(shrunk, alone)
    assert "equal scores are a minimum of this objective" in flattened(shrunk, alone)
    assert not flattened(curve([0.04, 0.03]), alone) and not flattened(shrunk, HINGE)
    beside = named(Term("kendall_window", **cosines), ("triplet_soft",))
    assert not beside.flat and collapse(shrunk, beside)


def test_an_own_loss_is_told_by_its_spread_alone():
    assert equal_scores(Objective([Term(SmallLoss())]), 4) == EqualScores({}, 0, False)


class DrawTogether(SmallLoss):
    """Asks for equal scores from the first step on, and says that it is another loss."""

    def forward(self, scores, relevance):
        return 1 + 100 * scores.var()


def test_fit_warns_and_the_history_says_why():
    settings = Settings(epochs=12, batch_size=18, learning_rate=0.2, optimizer="adam")
    with pytest.warns(TaughtNothing, match="collapsed: in the last epoch the scores spread by"):
        history = fit(small_model(), DrawTogether(), SmallData(), settings)
    first = history.table()[["first_score_std", "score_std"]].iloc[0]
    assert first["first_score_std"] > 0.1 and first["score_std"] < first["first_score_std"]
    assert history.doubt().startswith("collapsed: ") and "more warm-up epochs" in history.doubt()


def test_fit_is_silent_where_scores_stay_apart():
    with warnings.catch_warnings(action="error", category=TaughtNothing):
        history = fit(small_model(), Objective("triplet_hardest"), SmallData(),
                      Settings(epochs=2, batch_size=18))
    assert history.equal_scores == EqualScores({"triplet_hardest": 1.0}, pytest.approx(0.4), False)
    assert history.doubt() == ""
