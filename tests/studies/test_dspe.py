"""What is said of DSPE with top-5, whose second term has another weight than beside the sum."""

import pandas as pd
import pytest

from itr_study.lab.ledger.reported import load_claims
from itr_study.lab.runs.config import RunConfig
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.published import rows
from itr_study.lab.studies import bases
from itr_study.lab.studies.nb03_topk import setting_arms
from itr_study.lab.studies.nb09_stronger_models import stronger_config
from itr_study.lab.studies.plans import choose
from itr_study.metrics.intervals import student_interval

pytestmark = pytest.mark.evidence
SEEDS, OTHER = range(5), 25.0  # the weight beside the sum, that top-5 had, too
RATES = (2.5e-4, 5e-4, 1e-3, 2e-3)
WORDS = {3: "three", 4: "four"}
ROWS = rows("flickr8k").set_index("run")
pytestmark = pytest.mark.evidence


def dspe(loss: str, weight: float | None = None) -> RunConfig:
    config = stronger_config(f"dspe/{loss}", "flickr8k", choose("09_stronger_models", "full"))
    return config if weight is None else config.with_(**{"objective.1.weight": weight})


def rsum(config: RunConfig, measure: str = "test_rsum", seeds=SEEDS) -> pd.Series:
    """Of the published rows of a config, by seed; those that nobody trained are left out."""
    runs = {seed: identify(config.with_(seed=seed)).id for seed in seeds}
    return pd.Series({seed: ROWS.at[run, measure] for seed, run in runs.items()
                      if run in ROWS.index}, dtype=float)


def without_the_term(loss: str) -> RunConfig:
    """The same model of notebook 03, at its own rate."""
    arms = setting_arms("flickr8k", choose("03_topk", "full"))
    return next(run.config for run in arms if run.label == f"two_branch+fisher/{loss}")


def test_what_the_base_says_of_the_other_weight_is_what_its_rows_say():
    told = []
    for config in (dspe("top5", OTHER), dspe("top5")):
        found = [rsum(config.with_(**{"settings.learning_rate": rate}), "dev_rsum", [0])
                 for rate in RATES]
        of_rates = pd.concat(found)
        told += [WORDS[len(of_rates)], f"{of_rates.max():.1f}"]
    said = (bases.BASES / "settings.toml").read_text(encoding="utf-8").replace("#", " ")
    assert (f"its best of {told[0]} rates found {told[1]} of RSUM on dev, with 0.2 {told[3]} of "
            f"{told[2]}" in " ".join(said.split()))


def test_what_the_ledger_says_of_dspe_is_what_its_rows_say():
    """Undecided with 25 beside both; as taken, neither loss differs from itself without it."""
    pairs = [(rsum(dspe("top5", OTHER)), rsum(dspe("sum"))),
             (rsum(dspe("top5")), rsum(without_the_term("top5"))),
             (rsum(dspe("sum")), rsum(without_the_term("sum")))]
    for one, other in pairs:
        assert set(one.index) == set(other.index) == set(SEEDS)
        low, high = student_interval(one - other)
        assert low < 0 < high
    low, _ = student_interval(rsum(dspe("top5")) - rsum(dspe("sum")))
    assert low > 0
    note = next(claim["note"] for claim in load_claims().to_dict("records")
                if claim["id"] == "topk-tab4-dspe")
    assert "set after 25 beside both had left this undecided" in note
    assert "beside runs without these terms neither loss can be told apart" in note
