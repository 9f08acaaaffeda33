"""Losses in JavaScript give torch's values and gradients; what cannot be written is named."""

import json
import random

import numpy as np
import pytest
import torch

from itr_study.checks import gathered
from itr_study.losses import LOSSES
from itr_study.losses.base import RankingLoss
from tools.site.build import HERE
from tools.site.graphs import describe, write_losses, write_nodes

ITEMS, LISTS, NEAR = 10, 1000, 1e-5
PUSH = """
const losses = load("graph").open(input.written);
return Object.fromEntries(Object.entries(input.cases).map(([name, cases]) => [name, cases.map(
  ([scores, relevance, values]) => {
    const { value, gradient } = losses[name].push(scores, relevance, values);
    return [String(value), gradient.map(String)];
  })]));
"""


class ReadsLoss(RankingLoss):
    """Stops at a number of its scores."""

    def forward(self, scores, relevance):
        return scores.sum() if scores.max().item() > 0 else -scores.sum()


class MarginLoss(RankingLoss):
    """Has a branch that a value decides."""

    def __init__(self, margin=0.2):
        super().__init__()
        self.margin = margin

    def forward(self, scores, relevance):
        return (scores * (relevance - self.margin)).relu().sum()


def compute(name, scores, relevance, values):
    loss = LOSSES[name](**values) if isinstance(name, str) else name(**values)
    given = scores[None].clone().requires_grad_()
    labels = 2 * relevance[None] - 1 if loss.relevance_scale == "cosine" else relevance[None]
    with gathered() as checks:  # k may be more than a list without a match has
        value = loss(given, labels)
        checks.waiting.clear()
    (gradient,) = torch.autograd.grad(value, given)
    return float(value.detach()), gradient[0].numpy()


def lists(count, seed=0):
    """Scores and relevance: half with ties, some all equal; none, one, two, three, all relevant."""
    draw = torch.Generator().manual_seed(seed)
    for n in range(count):
        scores = torch.rand(ITEMS, generator=draw) * 1.2 - 0.2
        scores = (5 * scores).round() / 5 if n % 2 else scores
        scores = torch.full((ITEMS,), 0.5) if n % 10 == 3 else scores
        relevance = torch.rand(ITEMS, generator=draw) * 0.99
        relevance = (5 * relevance).round() / 5.05 if n % 4 == 1 else relevance
        matches = torch.randperm(ITEMS, generator=draw)[:(0, 1, 1, 2, 3, ITEMS, 1, 2)[n % 8]]
        relevance[matches] = 1.0
        yield scores, relevance


def draw_values(told, draw):
    """Values of the sliders of a loss that have a graph."""
    return {name: draw.choice(values) if values else
            round(least + step * draw.randrange(round((most - least) / step) + 1), 6)
            for name, _, least, most, step, _, values in told["sliders"]}


def largest_errors(node, written, count):
    """Of each loss the largest error of value and gradient; of what exceeds 1, relative."""
    draw, cases, expected = random.Random(0), {}, {}
    for name, told in written["losses"].items():
        for n, (scores, relevance) in enumerate(lists(count)):
            values = draw_values(told, draw) if n % 2 else {}
            cases.setdefault(name, []).append([scores.tolist(), relevance.tolist(), values])
            expected.setdefault(name, []).append(compute(name, scores, relevance, values))
    errors = {}
    for name, found in node(PUSH, {"written": written, "cases": cases}).items():
        ours = np.array([[value, *gradient] for value, gradient in found], float)
        torchs = np.array([[value, *gradient] for value, gradient in expected[name]])
        assert np.array_equal(np.isnan(ours), np.isnan(torchs)), name
        scale = np.maximum(1, np.abs(torchs))
        errors[name] = float(np.nan_to_num(np.abs(ours - torchs) / scale).max())
    return errors


@pytest.mark.slow
def test_all_losses_are_equal_in_node_and_torch(node):
    written = write_losses()
    assert list(written["losses"]) == list(LOSSES)
    assert not [name for name, told in written["losses"].items() if "why" in told]
    size = len(json.dumps(written)) + (HERE / "static" / "graph.js").stat().st_size
    assert size <= 300_000
    errors = largest_errors(node, written, LISTS)
    assert max(errors.values()) <= NEAR, errors


def test_a_graph_of_defaults_is_equal_in_node(node):
    written = write_losses({"topk": LOSSES["topk"]}, whole=False)
    assert max(largest_errors(node, written, 40).values()) <= NEAR


def test_scores_that_change_alone_are_computed_again(node):
    """Half of a graph depends on relevance alone, and is kept while a score is dragged."""
    written = write_losses({"smooth_ndcg": LOSSES["smooth_ndcg"]}, whole=False)
    (_, relevance), *more = lists(8)
    cases = [[scores.tolist(), relevance.tolist(), values]
             for values in ({}, {"temperature": 0.1}) for scores, _ in more[::2]]
    for (value, _), (scores, _, values) in zip(node(PUSH, {"written": written, "cases": {
            "smooth_ndcg": cases}})["smooth_ndcg"], cases, strict=True):
        expected, _ = compute("smooth_ndcg", torch.tensor(scores), relevance, values)
        assert abs(float(value) - expected) <= NEAR


def test_a_loss_that_reads_a_number_is_named_with_the_reason():
    told = describe("reads", ReadsLoss, ITEMS)
    assert "graphs" not in told and told["name"] == "reads"
    assert told["why"] == "it reads a number of its tensors (item, if)"


def test_a_new_loss_needs_no_javascript(node):
    written = write_losses({"mine": MarginLoss})
    scores, relevance = next(lists(1))
    [[value, gradient]] = node(PUSH, {"written": written, "cases": {
        "mine": [[scores.tolist(), relevance.tolist(), {}]]}})["mine"]
    expected, theirs = compute(MarginLoss, scores, relevance, {})
    assert abs(float(value) - expected) <= NEAR
    assert np.abs(np.array(gradient, float) - theirs).max() <= NEAR


def test_of_equal_scores_topk_takes_those_that_torch_takes(node):
    draw = torch.Generator().manual_seed(1)
    rows = [torch.randint(0, 4, (n,), generator=draw).float() for n in range(2, 40)
            for _ in range(5)]
    counts = [1 + int(torch.randint(0, min(len(row), 16), (1,), generator=draw)) for row in rows]
    found = node("return input.map(([row, k]) => load('graph').largest(row, k));",
                 [[row.tolist(), k] for row, k in zip(rows, counts, strict=True)])
    assert found == [row.topk(k).indices.tolist() for row, k in zip(rows, counts, strict=True)]


def test_an_infinite_number_is_written_as_text():
    graph = torch.fx.Graph()
    node = graph.call_function(torch.ops.aten.full.default, ([2], float("-inf")))
    node.meta["val"] = torch.empty(2)
    graph.output([node])
    assert write_nodes(graph) == [["full", "f", [2], "~-inf"], ["output", "f", "#0"]]
