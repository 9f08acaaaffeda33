"""What the dvse paper defines and prints, but for re-ranking: equations by hand, tables by number.

claims.csv names these tests; that every name is one is checked in `test_definitions`.
"""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from itr_study.lab.ledger.reported import reported, wide
from itr_study.losses import OUTPUT_LOSSES
from itr_study.losses._batch import head_cosines
from itr_study.metrics.entropy import score_entropy
from itr_study.training.objective import OBJECTIVES, Objective, Term
from tests.losses.test_outputs import random_output
from tests.models.test_subembeddings import batch, double, model

K, D, BOUND = 6, 1024, 0.4  # of the paper


def softmax(values, axis=-1):
    exponents = np.exp(values - values.max(axis=axis, keepdims=True))
    return exponents / exponents.sum(axis=axis, keepdims=True)


def entropy_of(chances):
    return -sum(p * np.log(p) for p in chances if p > 0)


def entropy_at(cosines, m, temperature):
    """Of one image whose texts are the first m; all others are another's, which is as far."""
    both = np.stack([cosines, np.zeros(len(cosines))])
    return score_entropy(both, (np.arange(len(cosines)) >= m).astype(int), temperature)


def scored(heads):
    """An output of head scores (K, I, T), and the first texts as matches of the images."""
    return SimpleNamespace(scores=heads.amax(dim=0), head_scores=heads)


# Equations 1 and 2

def test_eq_2_is_an_entropy_where_the_noise_is_all_other_texts():
    """With the noise lumped m + 1 chances sum to 1; with the most likely other text as noise they
    do not."""
    cosines, m = np.random.default_rng(0).uniform(-1, 1, 20), 5
    chances = softmax(cosines / 0.5)
    lumped = [*chances[:m], chances[m:].sum()]
    assert sum(lumped) == pytest.approx(1) and sum([*chances[:m], chances[m:].max()]) < 0.9
    found = entropy_at(cosines, m, 0.5)
    assert found.nats[0] == pytest.approx(entropy_of(lumped)) and found.nats[0] < np.log(m + 1)
    assert found.noise[0] == pytest.approx(lumped[-1])


def test_the_entropy_of_m_equal_matches_grows_with_m():
    """Of 1,000 texts at cosine 0: without their noise log m; with it it grows, too."""
    for temperature in (0.01, 0.1):
        grown = [entropy_at(np.array([1.0] * m + [0.0] * 1000), m, temperature).nats[0]
                 for m in range(1, 6)]
        assert grown == sorted(grown) and grown[-1] > grown[0] + 1
        if temperature == 0.01:
            assert grown == pytest.approx(np.log(range(1, 6)), abs=1e-9)


# Equations 3 and 4

def test_the_number_of_heads_that_are_on_differs_between_images():
    dvse = model(heads=K)
    on = dvse.gate(torch.randn(200, 8, generator=torch.Generator().manual_seed(0)))
    assert on.shape == (200, K) and len(on.sum(dim=1).unique()) > 3
    assert len(on.unique(dim=0)) > 10 and (on.std(dim=0) > 0.3).all()


def test_only_a_sigmoid_makes_the_mask_0_or_1():
    dvse = model(heads=K)
    whole = torch.randn(200, 8, generator=torch.Generator().manual_seed(0))
    assert set(dvse.gate(whole).unique().tolist()) == {0.0, 1.0}
    printed = torch.tanh(whole @ dvse.image.w2.T).round()
    assert set(printed.unique().tolist()) == {-1.0, 0.0, 1.0}
    heads = random_output(0)[0].residuals
    values = [OUTPUT_LOSSES["orthogonality"](bound=0.0)(SimpleNamespace(
        scores=torch.zeros(5, 7), residuals=sign * heads, mask=torch.ones(5, 3)),
        torch.eye(5, 7)).item() for sign in (1, -1)]
    assert values[0] == pytest.approx(values[1]) and values[0] > 0  # -1 leaves a head on


def random_heads(heads, images=20):
    """Directions drawn at random: (images, heads, D)."""
    return torch.randn(images, heads, D, generator=torch.Generator().manual_seed(0))


def orthogonality(residuals, **arguments):
    images, heads = residuals.shape[:2]
    output = SimpleNamespace(scores=torch.zeros(images, images), residuals=residuals,
                             mask=torch.ones(images, heads))
    return OUTPUT_LOSSES["orthogonality"](**arguments)(output, torch.eye(images)).item()


def test_the_printed_bound_is_stricter_than_random_directions():
    pairs = K * (K - 1)
    heads = random_heads(K, images=200)
    mean = head_cosines(heads).abs().sum(dim=(1, 2)).mean().item() / pairs
    assert mean == pytest.approx(np.sqrt(2 / np.pi / D), rel=0.05)  # 0.025
    assert BOUND / pairs == pytest.approx(0.0133, abs=1e-4)  # what Eq. 4 leaves a pair
    assert orthogonality(heads, bound=BOUND) == pytest.approx(pairs * mean - BOUND, abs=1e-4)
    assert orthogonality(heads, bound=BOUND, over="mean") == 0


def test_every_pair_of_heads_counts_twice_and_more_heads_make_the_bound_stricter():
    two = torch.tensor([[[1.0, 0.0], [0.6, 0.8]]])
    assert orthogonality(two, bound=0.0) == pytest.approx(2 * 0.6)
    paid = [orthogonality(random_heads(heads), bound=BOUND) for heads in (2, 4, 6, 12)]
    assert paid[0] == 0 and paid[1] < 0.1 < paid[2] < paid[3]  # the same mean cosine


def test_with_a_sigmoid_heads_cannot_be_orthogonal():
    """Of 30 pairs, random heads, s a sigmoid: cosines of about 0.85; of tanh about 0."""
    before = 1.0 * random_heads(K)
    pairs = K * (K - 1)
    for activation, low, high in ((torch.sigmoid, 0.8, 0.9), (torch.tanh, 0.0, 0.03)):
        heads = activation(before)
        cosines = head_cosines(heads)
        assert low < orthogonality(heads, bound=0.0) / pairs < high
        assert (cosines.sum(dim=(1, 2)) / pairs > 0.8).all() == (activation is torch.sigmoid)
    assert (torch.sigmoid(before) > 0).all()


def test_a_mask_of_the_loss_alone_does_nothing_without_that_loss():
    """dvse/mask+var with such a mask: the loss and its gradient are those without a mask."""
    grads = []
    for mask in ("loss", "off", "residual"):
        one = model(mask=mask).double()
        output = one(double(batch()))
        OUTPUT_LOSSES["variance_weighted"]()(output, torch.eye(6)).backward()
        grads.append(one.image.regions.weight.grad)
    assert torch.equal(grads[0], grads[1]) and not torch.allclose(grads[0], grads[2])


def test_equal_heads_stay_equal_without_orthogonality():
    """Table V, row 4: nothing in the loss tells heads apart, so a step keeps equal ones equal."""
    dvse = model(heads=2, mask="off").double()
    with torch.no_grad():
        dvse.image.heads.attention.heads.weight[1] = dvse.image.heads.attention.heads.weight[0]
    output = dvse(double(batch()))
    OUTPUT_LOSSES["variance_weighted"](weights="equal")(output, torch.eye(6)).backward()
    grad = dvse.image.heads.attention.heads.weight.grad
    torch.testing.assert_close(grad[0], grad[1])
    assert grad.abs().sum() > 0


# Equations 5 to 12

COSINES = np.random.default_rng(1).normal(0.1, 0.12, 128)  # of one head with a batch of texts


def test_eq_6_asks_for_a_distribution_that_holds_what_it_defines():
    def eq_6(sigma):
        return softmax(np.array([0.9, 0.1, 0.0]) / sigma ** 2).std(ddof=1) + 1

    once = eq_6(1.0)
    assert once != pytest.approx(1, abs=0.1) and eq_6(once) != pytest.approx(once, abs=0.02)


def test_a_sum_of_two_distributions_is_none():
    negatives, positives = softmax(COSINES[:100]), softmax(COSINES[100:])
    assert negatives.sum() + positives.sum() == pytest.approx(2)
    samples = torch.tensor([[[0.9, 0.0, 0.2, 0.6, 0.8]]])
    # what the loss takes for the first as target: the deviation of all others together
    pooled = OUTPUT_LOSSES["variance_weighted"]().std(samples)[0, 0, 0].item()
    assert pooled == pytest.approx(np.std([0.0, 0.2, 0.6, 0.8], ddof=1))
    assert pooled > 2 * np.std([0.0, 0.2], ddof=1)  # of each part alone


@pytest.mark.parametrize("images, percent", [(29_000, 0.003), (6_000, 0.013)])
def test_other_texts_of_an_image_are_rare_in_a_batch(images, percent):
    """Four of the 5 n - 1 other texts belong to the image: counted in batches and by hand."""
    expected = 4 / (5 * images - 1)
    assert 100 * expected == pytest.approx(percent, abs=5e-4) and expected < 1e-3
    owner, random, found = np.repeat(np.arange(images), 5), np.random.default_rng(0), 0
    for _ in range(2000):
        drawn = owner[random.choice(len(owner), 128, replace=False)]
        found += (np.bincount(drawn, minlength=images)[drawn] - 1).sum()
    assert found / (2000 * 128 * 127) == pytest.approx(expected, rel=0.3)


def test_of_probabilities_the_standard_deviation_weighs_nothing():
    """1 / sigma^2 of a head in a batch of 128: with softmax 0.998, with cosines 0.8."""
    scores = torch.tensor(COSINES)[None, None]
    weights = {spread: (1 + OUTPUT_LOSSES["variance_weighted"](spread=spread).std(
        scores)[0, 0, 0]).item() ** -2 for spread in ("softmax", "cosine")}
    assert weights["softmax"] > 0.997 and weights["cosine"] == pytest.approx(0.8, abs=0.03)


def test_a_head_weighs_less_where_its_scores_of_others_spread_more():
    """All pay the same hinge; sigma - 1 is the Std of (0.5, 0.5 - 2 a), a x sqrt(2)."""
    paid = []
    for apart in (0.0, 0.1, 0.4):
        heads = torch.tensor([[[0.5, 0.5, 0.5 - 2 * apart]]], requires_grad=True)
        OUTPUT_LOSSES["variance_weighted"]()(scored(heads), torch.tensor([[1.0, 0, 0]])).backward()
        paid.append(-heads.grad[0, 0, 0].item())  # the text has no other image: no hinge
    assert paid == pytest.approx([(1 + a * 2 ** 0.5) ** -2 for a in (0.0, 0.1, 0.4)], abs=1e-6)
    assert (1 + np.std([-1.0, 1.0], ddof=0)) ** -2 == 0.25  # many texts at both ends


def third_line(cosines, sigma, match=0):
    """Eq. 9 of one head: the weighted loss, and what the last step calls log sigma."""
    usual = -np.log(softmax(cosines)[match])
    rest = np.log(np.exp(cosines / sigma ** 2).sum()) - np.log(np.exp(cosines).sum()) / sigma ** 2
    return usual / sigma ** 2, rest


def test_the_third_line_of_eq_9_equals_the_first():
    total, product = 0.0, 1.0
    for head, sigma in enumerate((1.0, 1.1, 1.3)):
        cosines = np.random.default_rng(head).uniform(-1, 1, 8)
        product *= softmax(cosines / sigma ** 2)[0]
        total += sum(third_line(cosines, sigma))
    assert -np.log(product) == pytest.approx(total)


def test_the_assumption_of_eq_9_holds_at_1_alone():
    """Exactly at 1; at 1.12, the sigma of cosines that spread by 0.12, it is 0.87 off in 0.98."""
    assert third_line(COSINES, 1.0)[1] == pytest.approx(0, abs=1e-12)  # log 1
    errors = [third_line(COSINES, sigma)[1] - np.log(sigma) for sigma in (1.01, 1.05, 1.12)]
    assert errors == sorted(errors) and errors[0] < 0.1
    assert np.log(1.12) == pytest.approx(0.11, abs=5e-3)
    assert third_line(COSINES, 1.12)[1] == pytest.approx(0.98, abs=0.01)


def test_eq_10_is_no_identity():
    """A match that wins by more than the margin: the logarithm is below 0, the hinge is 0."""
    others, match, margin = np.array([0.1, 0.3]), 0.9, 0.2
    printed = np.log(np.maximum(np.exp(others - match + margin), 0).max())
    hinge = np.maximum(others - match + margin, 0).max()
    assert printed == pytest.approx(-0.4) and hinge == 0
    trained = OUTPUT_LOSSES["variance_weighted"](margin=margin, weights="equal")
    heads = torch.tensor([[[match, *others]]])
    assert trained(scored(heads), torch.tensor([[1.0, 0, 0]])).item() == hinge
    assert np.log(max(1, np.exp(others - match + margin).max())) == hinge  # what would be right


def test_a_maximum_that_holds_the_match_never_falls_below_the_margin():
    scores, margin = np.array([1.0, -1.0, -1.0]), 0.2  # nothing is left to learn
    assert np.maximum(scores - scores[0] + margin, 0).max() == pytest.approx(margin)
    trained = OUTPUT_LOSSES["variance_weighted"](margin=margin, weights="equal")
    heads = torch.tensor(scores)[None, None]
    assert trained(scored(heads), torch.tensor([[1.0, 0, 0]])).item() == 0


def test_every_head_is_trained_on_every_text():
    """Each of three heads has a gradient at each match; of the largest over heads one would."""
    output, relevance = random_output(0)
    heads = output.head_scores.clone().requires_grad_()
    OUTPUT_LOSSES["variance_weighted"](margin=3.0)(scored(heads), relevance).backward()
    assert (heads.grad[:, relevance == 1] < 0).all()
    best = output.head_scores.clone().requires_grad_()
    OUTPUT_LOSSES["variance_weighted"](margin=3.0)(
        scored(best.amax(dim=0, keepdim=True)), relevance).backward()
    assert ((best.grad[:, relevance == 1] < 0).sum(dim=0) == 1).all()


@pytest.mark.parametrize("detach, same", [(True, True), (False, False)])
def test_the_logarithm_of_a_constant_trains_nothing(detach, same):
    """The gradient is that of the weighted hinge alone; the value holds the logarithm, too."""
    output, relevance = random_output(0)
    grads, values = [], []
    for logarithm in (True, False):
        heads = output.head_scores.clone().requires_grad_()
        loss = OUTPUT_LOSSES["variance_weighted"](detach=detach)
        value = loss(scored(heads), relevance)
        if not logarithm:
            for scores, labels in ((heads, relevance), (heads.transpose(1, 2), relevance.T)):
                match = labels == 1
                logs = (1 + loss.std(scores)).log().sum(dim=0)  # (queries, candidates)
                value = value - (match * logs).sum() / match.sum()
        value.backward()
        grads.append(heads.grad)
        values.append(value.item())
    assert values[0] > values[1] + 0.1
    assert torch.allclose(*grads, atol=1e-12) == same


def test_the_objective_holds_the_masked_orthogonality():
    """0.6 and 0.4 of the two losses; with a mask that switches heads off it is L_dc, not L_ort."""
    assert [(term.loss, round(term.weight, 9)) for term in OBJECTIVES["dvse"]] == [
        ("variance_weighted", 0.6), ("orthogonality", 0.4)]
    masked, plain = (Objective([Term("orthogonality", 0.4, arguments={"masked": on})]).losses[0]
                     for on in (True, False))
    ours = Objective("dvse").losses[1]
    output, relevance = random_output(0)
    values = [loss(output, relevance).item() for loss in (ours, masked, plain)]
    assert values[0] == values[1] < values[2]


# Tables

def test_printed_sums_of_recalls_are_sums():
    """62 rows of seven numbers; 17 are off by 0.1, which is rounding, none by more."""
    off = []
    for table in ("I", "II"):
        groups = reported("dvse", table).groupby(["dataset", "setting", "method", "variant"])
        for _, rows in groups:
            if len(rows) == 7:
                total = rows.loc[rows["metric"] == "RSUM", "value"].item()
                off.append(round(rows.loc[rows["metric"] != "RSUM", "value"].sum() - total, 1))
    assert len(off) == 62 and set(np.abs(off)) == {0.0, 0.1} and np.count_nonzero(off) == 17


def rsum(table, dataset, **named):
    rows = reported("dvse", table, dataset)
    for column, value in named.items():
        rows = rows[rows[column] == value]
    return rows.loc[rows["metric"] == "RSUM", "value"].item()


def test_the_gain_over_pvse_is_the_printed_one():
    ours, theirs = (rsum("II", "f30k", setting="ResNet-152 + Bi-GRU", method=method, variant="")
                    for method in ("DVSE", "PVSE"))
    assert round(100 * (ours / theirs - 1), 1) == 3.7


def test_tables_v_and_vi_have_two_baselines():
    whole, none = (rsum("V", "f30k", variant=f"combination {combination}")
                   for combination in ("1: DM+L_var+L_ort+SE", "5: none"))
    six, without = (rsum("VI", "coco5k", variant=variant) for variant in ("K=6", "w/o SE"))
    assert whole - none == pytest.approx(4.1) and six - without == pytest.approx(104.8)
    assert whole == rsum("II", "f30k", setting="Faster R-CNN + Bi-GRU", method="DVSE", variant="")
    assert six == rsum("I", "coco5k", setting="Faster R-CNN + Bi-GRU", method="DVSE", variant="")


def test_on_birds_r_precision_is_best_at_twelve_heads():
    birds = wide("dvse", "VI", "cub").set_index("method")
    best = {column: birds[column].idxmax() for column in birds}
    assert best == {"test_i2t_r1": "DVSE, K=8", "test_t2i_r1": "DVSE, K=8",
                    "test_i2t_rp": "DVSE, K=12", "test_t2i_rp": "DVSE, K=12"}


BIRDS = wide("dvse", "III").set_index("method")


def test_r1_of_pvse_does_not_keep_improving():
    heads = BIRDS.loc[[f"PVSE, K={heads}" for heads in (1, 2, 4)]]
    assert heads["test_i2t_r1"].is_monotonic_increasing
    assert not heads["test_t2i_r1"].is_monotonic_increasing


def test_p2rm_has_the_higher_r1_of_t2i():
    ahead = BIRDS.loc["DVSE"] - BIRDS.loc[["PCME", "P2RM"]]
    assert ahead.loc["P2RM", "test_t2i_r1"] == pytest.approx(-0.1)
    assert (ahead[["test_i2t_r1", "test_t2i_r1"]] > 0).to_numpy().sum() == 3


def test_r_precision_lags_behind_both():
    behind = BIRDS.loc[["PCME", "P2RM"], ["test_i2t_rp", "test_t2i_rp"]] - BIRDS.loc["DVSE"]
    lags = behind[["test_i2t_rp", "test_t2i_rp"]].to_numpy()
    assert lags.min() == pytest.approx(0.1) and lags.max() == pytest.approx(1.3)
