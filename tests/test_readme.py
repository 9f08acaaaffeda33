"""Every number of findings in the README is that of a committed table."""

import re
from pathlib import Path

import pandas as pd

from itr_study.ledger.paired import differences
from itr_study.ledger.table import ORIGINS, counted
from itr_study.studies.bases import at_edge, frozen_rates

ROOT = Path(__file__).resolve().parent.parent
FLICKR8K = ROOT / "figures" / "flickr8k"
README = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())


def test_the_counts_of_claims_are_those_of_the_ledger():
    """Claims of the papers, checks of ours and composites, never added up."""
    table = pd.read_csv(FLICKR8K / "12_claims__ledger.csv", keep_default_na=False)
    page = (FLICKR8K / "claims.md").read_text(encoding="utf-8").splitlines()
    for kind in ORIGINS:
        line = f"- {counted(table, kind)}."
        assert line in page and line in README, f"claims.md and README should say: {line}"
    totals = re.findall(r"- (\d+) (?:claims|counter-checks|composites)", README)
    assert sum(map(int, totals)) == len(table)


def test_the_learning_rates_at_an_edge_are_counted():
    arms = [f"{setting}/{loss}" for setting, rates in frozen_rates("flickr8k").items()
            for loss in rates]
    edges = sum(at_edge("flickr8k", arm) for arm in arms)
    assert (edges, len(arms)) == (10, 12) and "Ten of twelve learning rates" in README


def test_the_answer_to_which_loss_is_that_of_the_comparison():
    runs = pd.read_csv(FLICKR8K / "06_kendall__compare.csv").rename(columns={"method": "arm"})
    runs = runs.assign(dataset="flickr8k", model="one")
    assert runs["arm"].nunique() == 15 and "Fifteen ranking losses on one model" in README
    assert runs.groupby("arm").size().eq(5).all() and "five paired seeds" in README
    table = differences(runs, [(arm, "hardest") for arm in ("bcls", "soft", "ladder")],
                        ["test_rsum", "test_human_expert_tau_c"]).set_index(["arm_a", "metric"])
    rsum, experts = (table.xs(metric, level="metric") for metric in (
        "test_rsum", "test_human_expert_tau_c"))
    hardest = runs.loc[runs["arm"] == "hardest", "test_rsum"].mean()
    assert rsum.loc["bcls", "high"] < 0 and experts.loc["bcls", "low"] > 0
    assert (f"soft negatives with windows lose {-rsum.loc['bcls', 'difference']:.0f} of "
            f"{hardest:.0f} points of RSUM and gain {experts.loc['bcls', 'difference']:.1f} points "
            "of agreement with experts") in README
    assert experts.loc["ladder", "low"] > 0
    assert (f"the ladder loss gains {experts.loc['ladder', 'difference']:.1f} and loses none that "
            "five seeds can see") in README
    apart = ((rsum["low"] > 0) | (rsum["high"] < 0)).to_dict()
    assert apart == {"bcls": True, "soft": False, "ladder": False}
    assert "the hardest negative, soft negatives and the ladder loss cannot be told apart" in README
