"""Every number of findings in the README is that of a committed table."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from itr_study.features.windows import FINE
from itr_study.ledger.judges import JUDGE, agreement
from itr_study.ledger.models import resting, twice_judged
from itr_study.ledger.paired import FEWEST, differences
from itr_study.ledger.reported import load_claims, reported
from itr_study.ledger.table import ORIGINS, counted, covered
from itr_study.metrics.intervals import student_interval
from itr_study.runs.published import rows as rows_of
from itr_study.studies.bases import at_edge, base, frozen_rates
from itr_study.studies.best_clean import ALL
from itr_study.studies.forgive import MODEL

ROOT = Path(__file__).resolve().parent.parent
FLICKR8K = ROOT / "figures" / "flickr8k"
SQUARE = FLICKR8K / "13_when_to_forgive__which_loss"
README = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())


def test_the_counts_of_claims_are_those_of_the_ledger():
    """Claims of the papers, checks of ours and composites, never added up."""
    table = pd.read_csv(FLICKR8K / "12_claims__ledger.csv", keep_default_na=False)
    page = (FLICKR8K / "claims.md").read_text(encoding="utf-8").splitlines()
    for kind in ORIGINS:
        line = f"- {counted(table, kind)}."
        assert line in page and line in README, f"claims.md and README should say: {line}"
    assert covered(table) in page and covered(table) in README, covered(table)
    totals = re.findall(r"- (\d+) (?:claims|counter-checks|composites)", README)
    assert sum(map(int, totals)) == len(table)


@pytest.mark.parametrize("dataset", ["flickr8k", "scenes"])
def test_the_committed_ledger_is_of_the_claims_as_they_stand(dataset):
    """Or README would count what the claims no longer say."""
    kept = FLICKR8K.with_name(dataset) / "12_claims__ledger.csv"
    kept = pd.read_csv(kept, keep_default_na=False)
    claims, columns = load_claims(), ["statement", "kind", "note", "waits_for"]
    kept, claims = (table.set_index("id").sort_index()[columns] for table in (kept, claims))
    assert kept.to_dict("index") == claims.to_dict("index")


def test_the_claims_that_rest_on_too_few_seeds_are_counted():
    table = pd.read_csv(FLICKR8K / "12_claims__ledger.csv", keep_default_na=False)
    undecided = table.query("outcome == 'undecided' and origin == 'claim'")
    pairs = pd.to_numeric(undecided["pairs"])
    few = undecided[pairs < FEWEST]
    assert set(few["paper"]) == {"dvse"}
    assert (f"{len(few)} of the {len(undecided)} undecided claims are about sub-embeddings and "
            "rest on fewer than five seeds") in README and FEWEST == 5


def test_the_learning_rates_inside_their_grids_are_counted():
    inside = {judged: [not at_edge("flickr8k", f"{setting}/{loss}")
                       for setting, rates in frozen_rates("flickr8k").items() for loss in rates
                       if (setting == JUDGE) == judged] for judged in (False, True)}
    counts = [f"{sum(of)} of {len(of)}" for of in inside.values()]
    stronger = pd.read_csv(FLICKR8K / "09_stronger_models__rates.csv", keep_default_na=False)
    edges = stronger.loc[stronger["best"], "edge"]
    assert (f"{counts[0]} learning rates of notebook 03, {sum(edges == '')} of {len(edges)} of "
            f"notebook 09 and {counts[1]} of the second judge lie inside the grid that they were "
            "chosen from") in README


def test_the_committed_searches_chose_these_rates_inside_what_they_tried():
    tables = [pd.read_csv(FLICKR8K / f"{name}.csv", keep_default_na=False)
              for name in ("12_claims__judge_rates", "03_topk__learning_rates")]
    best = pd.concat(tables).query("best == 'True' or best == True")
    counts = best.groupby(best["setting"] == JUDGE).size()
    assert counts.to_dict() == {False: 12, True: 11} and set(best["edge"]) == {""}
    frozen = frozen_rates("flickr8k")
    for line in best.itertuples():
        assert frozen[line.setting][line.loss] == float(line.rate), line


def spread(values: pd.Series) -> str:
    """A share over seeds as the README writes it: "57.1 % [55.7, 58.4]"."""
    low, high = student_interval(values)
    return f"{values.mean():.1f} % [{low:.1f}, {high:.1f}]"


def interval(line: pd.Series) -> str:
    """A difference as the README writes it: "−9.2 [−12.4, −6.0]"."""
    numbers = f"{line['difference']:+.1f} [{line['low']:+.1f}, {line['high']:+.1f}]"
    return numbers.replace("-", "−")


def test_the_answer_to_which_loss_is_that_of_the_comparison():
    runs = pd.read_csv(f"{SQUARE}.csv").rename(columns={"method": "arm"})
    second = runs[runs["judge"] != MODEL].assign(dataset="flickr8k", model="one")
    assert second["arm"].nunique() == 10 and "ten of them on a second one too" in README
    assert second.groupby("arm").size().eq(5).all() and "(five seeds each)" in README
    rsum, experts = (differences(second, [("bcls", "hardest")], [metric]).iloc[0]
                     for metric in ("test_rsum", "test_human_expert_tau_c"))
    assert (f"soft negatives with windows change RSUM by {interval(rsum)} and agreement by "
            f"{interval(experts)}; the maker of their labels") in README
    runs = runs[runs["judge"] == MODEL].assign(dataset="flickr8k", model="one")
    assert runs["arm"].nunique() == 15 and "Fifteen ranking losses on one model" in README
    assert runs.groupby("arm").size().eq(12).all() and "twelve paired seeds" in README
    table = differences(runs, [(arm, "hardest") for arm in ("bcls", "soft", "ladder")],
                        ["test_rsum", "test_human_expert_tau_c"]).set_index(["arm_a", "metric"])
    rsum, experts = (table.xs(metric, level="metric") for metric in (
        "test_rsum", "test_human_expert_tau_c"))
    hardest = runs.loc[runs["arm"] == "hardest", "test_rsum"].mean()
    assert (f"the hardest negative ({hardest:.0f} points of RSUM); they change agreement with "
            f"experts by {interval(experts.loc['soft'])}") in README
    assert (f"soft negatives with windows change RSUM by {interval(rsum.loc['bcls'])} points and "
            f"agreement with experts by {interval(experts.loc['bcls'])}; the ladder loss changes "
            f"RSUM by {interval(rsum.loc['ladder'])} and agreement by "
            f"{interval(experts.loc['ladder'])}") in README
    apart = ((rsum["low"] > 0) | (rsum["high"] < 0)).to_dict()
    assert apart == {"bcls": True, "soft": False, "ladder": True}
    assert "soft negatives cannot be told apart from the hardest negative" in README


def test_where_forgiving_begins_to_pay_is_where_the_curves_cross():
    answers = pd.read_csv(FLICKR8K / "13_when_to_forgive__predictions.csv")
    crossed = answers[answers["prediction"].str.contains("the curves cross")
                      & (answers["measure"] == "RSUM")]["measured"].item()
    rising, _, _ = crossed.removeprefix("rise above it: ").partition("; ")
    assert crossed.startswith("rise above it: ") and f"{rising} (same notebook" in README
    curves = pd.read_csv(FLICKR8K / "13_when_to_forgive__curves.csv")
    assert curves["n"].eq(5).all() and "n = 5 seeds" in README
    fallen = curves.loc[curves["verdict"] == "collapsed", "x"]
    assert curves.loc[~curves.index.isin(fallen.index), "x"].max() < fallen.min()
    assert f"from {fallen.min():.0f} % on runs of the hardest negative have collapsed" in README
    soft = curves[(curves["loss"] == "soft") & (curves["metric"] == "test_rsum")]
    places = soft.groupby("verdict")["x"].min()
    assert "lower" not in places and f"above it from {places['higher']:.2g} % on" in README


def test_what_wrong_captions_change_is_that_of_the_second_judge():
    answers = pd.read_csv(FLICKR8K / "13_when_to_forgive__predictions.csv")
    answers = answers[answers["prediction"].str.startswith("2.") & (answers["measure"] == "RSUM")]
    by_judge = answers.set_index("judge")["measured"]
    assert by_judge["second judge"] == "so for soft; it moves by more for top-5"
    assert "collapsed" in by_judge["first judge"] and "so for" not in by_judge["first judge"]
    gains = pd.read_csv(FLICKR8K / "13_when_to_forgive__noise.csv")
    gains = gains[(gains["metric"] == "test_rsum") & (gains["judge"] == JUDGE)]
    assert gains["n"].eq(5).all()
    top5, soft = (" to ".join(interval(line) for _, line in gains[gains["loss"] == loss].iterrows())
                  for loss in ("top5", "soft"))
    assert (f"that of top-5 goes from {top5} and that of soft negatives from {soft}; in the first "
            "one runs of the hardest negative have collapsed") in README


def test_what_becomes_of_gains_without_near_duplicates_is_counted():
    changes = pd.read_csv(FLICKR8K / "13_when_to_forgive__near_duplicates.csv")
    assert changes["n"].eq(5).all() and set(changes["judge"]) == {MODEL, JUDGE}
    settled = changes["verdict"].value_counts()
    assert set(settled.index) <= {"lower", "higher", "undecided"}  # collapsed ones need words
    assert (f"of {len(changes)} changes {settled.get('lower', 0)} are settled so, "
            f"{settled.get('higher', 0)} the other way round") in README


def test_the_losses_compared_rest_on_rows_of_one_arithmetic():
    """Old rows state none; what differs between them and new ones may be rounding."""
    shown = json.loads(Path(f"{SQUARE}.json").read_text(encoding="utf-8"))
    rows = rows_of("flickr8k").set_index("run")
    assert len(shown["run_ids"]) == len(pd.read_csv(f"{SQUARE}.csv")) >= 15 * 5
    assert rows.loc[shown["run_ids"], "arithmetic"].notna().all()


def test_what_re_ranking_adds_is_that_of_every_model():
    table = pd.read_csv(FLICKR8K / "08_reranking__models.csv").sort_values("difference")
    fast, bank = (table[table["arm_a"].str.endswith(way)] for way in ("@fast", "@fast_bank"))
    assert len(fast) == len(bank) and table["n"].ge(5).all()
    spans = [f"{interval(part.iloc[0])} to {interval(part.iloc[-1])}" for part in (fast, bank)]
    assert (f"Fast re-ranking adds {spans[0]} points of RSUM to {(fast['low'] > 0).sum()} of "
            f"{len(fast)} models of notebook 08") in README
    assert (f"{spans[1]} are left, and for {(bank['low'] <= 0).sum()} of {len(bank)} no gain is "
            "settled") in README


def test_how_far_a_single_model_without_a_leak_comes():
    found = pd.read_csv(FLICKR8K / "09_stronger_models__best_clean_found.csv",
                        keep_default_na=False)
    assert set(found["seen"]) == {""}
    means = found.groupby("arm")["test_rsum"].mean()
    printed = reported("topk", "I").groupby("variant")["value"].sum()
    best = found.loc[found["arm"] == "best_clean", "test_rsum"]
    low, high = student_interval(best)
    assert (f"finds {best.mean():.1f} points of RSUM on test [{low:.1f}, {high:.1f}] (mean of "
            f"{len(best)} seeds; the best row that topk prints for Flickr8k has "
            f"{printed['k=5']:.1f}, one run)") in README
    steps = pd.read_csv(FLICKR8K / "09_stronger_models__best_clean.csv")
    assert (f"{(steps['difference'] > 0).sum()} of its {len(steps)} steps lie higher on dev, "
            f"{steps['n'].min()} seeds each, which settles nothing") in README
    assert steps["n"].max() < FEWEST
    rivals = pd.read_csv(FLICKR8K / "09_stronger_models__table_ours.csv")
    rivals = rivals[rivals["column"] == "test_rsum"]
    assert low > (rivals["mean"] + rivals["half"]).max()  # "finds more", says the leaderboard of 09
    assert (f"The mean of all its scores and those of as many runs of Two-branch over Fisher "
            f"vectors, one ensemble without an interval, finds {means[ALL]:.1f}, re-ranked "
            f"{means[f'{ALL}@fast']:.1f}, which looks at all test queries at once") in README


def sgraf() -> tuple[pd.DataFrame, str]:
    """RSUM of SAF, SGR and SGRAF of one loss and seed, a row each; and what README says of them."""
    made = pd.read_csv(FLICKR8K / "09_stronger_models__ensembles.csv")
    known = rows_of("flickr8k").set_index("run")["test_rsum"]
    members = made["members"].str.split(" + ", regex=False)
    table = pd.DataFrame({"loss": made["arm"].str.partition("/")[2], "seed": made["seed"],
                          "both": made["test_rsum"], "saf": known[members.str[0]].to_numpy(),
                          "sgr": known[members.str[1]].to_numpy()})
    more = {}  # (model, loss) -> difference and interval
    for loss, part in table.groupby("loss", sort=False):
        for model in ("saf", "sgr"):
            more[model, loss] = of_pairs(part["both"] - part[model])
    least, most = (pick(more.values(), key=lambda line: line["difference"])
                   for pick in (min, max))
    by_loss = table.pivot(index="seed", columns="loss", values="both")
    windows, listwise = (of_pairs(by_loss[loss] - by_loss["hardest"])
                         for loss in ("bcls", "hardest+listwise"))
    return table, (
        f"Two models or a better loss? SGRAF, the mean of the scores of SAF and SGR (here one step "
        f"of its graph, three in its paper), finds {interval(least)} to {interval(most)} points of "
        f"RSUM more than either, in each of three losses; soft negatives with windows change SGRAF "
        f"by {interval(windows)}, Smooth-NDCG beside the hardest negative by {interval(listwise)} "
        "(five seeds each; labels of "
        "MiniLM in both)")


def of_pairs(differences: pd.Series) -> pd.Series:
    low, high = student_interval(differences)
    return pd.Series({"difference": differences.mean(), "low": low, "high": high})


def test_two_models_find_more_than_one():
    table, told = sgraf()
    assert table.groupby("loss").size().to_dict() == dict.fromkeys(
        ("bcls", "hardest", "hardest+listwise"), FEWEST)
    for model in ("saf", "sgr"):
        for _, part in table.groupby("loss"):
            assert of_pairs(part["both"] - part[model])["low"] > 0
    assert told in README


def better_places() -> str:
    """What README says of a better loss and better places, from the differences of notebook 11."""
    moved = pd.read_csv(FLICKR8K / "11_attention_maps__losses.csv").set_index(["arm_a", "metric"])
    assert set(moved["arm_b"]) == {"saf/hardest"} and (moved["n"] == FEWEST).all()
    settled = moved.index[moved["verdict"] != "undecided"].tolist()
    assert settled == [("saf/bcls", "test_rsum")]
    assert moved.loc[settled[0], "verdict"] == "higher"
    settings = base("flickr8k", "saf").settings
    assert (settings.epochs, settings.warmup_epochs) == (5, 3)
    windows, listwise = ([interval(moved.loc[arm, metric]) for metric in ("test_rsum", "mass")]
                         for arm in ("saf/bcls", "saf/hardest+listwise"))
    return (
        "A better ranking came with no better places that could be told: beside the hardest "
        f"negative, soft negatives with windows change RSUM by {windows[0]} and the weight in the "
        f"boxes by {windows[1]} points, Smooth-NDCG added to it (labels of MiniLM, too) RSUM by "
        f"{listwise[0]} and the weight by {listwise[1]}; hit and overlap are open in both")


def test_where_words_look_is_that_of_every_seed():
    table = pd.read_csv(FLICKR8K / "11_attention_maps__places.csv")
    words = table[table["label"] == "saf/hardest"]
    assert set(words["kind"]) == {"words"} and len(words) >= 3
    mass, hit, iou = (spread(words[measure]) for measure in ("mass", "hit", "iou"))
    uniform, centre, middle, overlap = words[
        ["uniform", "centre", "centre_hit", "uniform_iou"]].mean()
    assert (f"words of SAF that name an object have {mass} of their weight there (mean [95 % "
            f"interval] of {len(words)} seeds), where all regions alike have {uniform:.1f} % and a "
            "blob in the "
            f"middle {centre:.1f} %. The middle of the region that a word looks at most lies in "
            f"such a box in {hit} of all cases, that of the picture in {middle:.1f} %; and by "
            f"overlap (IoU) words have {iou}, all regions alike {overlap:.1f} %") in README
    windows = table[table["label"] == "saf/bcls"]
    assert len(windows) == FEWEST
    for own, other in (("mass", "rest"), ("mass_beside_others", "others")):
        assert student_interval(windows[own] - windows[other])[0] > 0
    assert ("The other words of a sentence have less in the same boxes: with soft negatives and "
            "windows (labels of MiniLM) for the last two of five epochs, the one loss of which all "
            f"seeds were measured so, a word has {spread(windows['mass'])} there and the rest of "
            f"its sentence {spread(windows['rest'])}; where a sentence names things of several "
            f"classes, a name has {spread(windows['mass_beside_others'])} in the boxes of its own "
            f"and the names of the others {spread(windows['others'])} in these") in README
    in_words = table[table["label"].str.startswith("saf/")]
    measured = in_words["rest"].notna().groupby(in_words["label"]).all()
    assert set(measured[measured].index) == {"saf/bcls"}
    assert better_places() in README
    assert f"gave up to {36 - len(FINE)} of the 36 regions" in README  # lite0:nanodet:36
    one = words.iloc[0]
    assert (f"{one['commonest_share']:.0f} % of these names are of one class, "
            f"{one['commonest']}") in README


def test_how_many_verdicts_rest_on_one_model():
    table = pd.read_csv(FLICKR8K / "12_claims__ledger.csv", keep_default_na=False)
    assert resting(table) in README
    assert agreement(table) in README
    both = twice_judged(table)
    assert len(both) and all("VSE++" in name for name in list(both)[-2:])


def test_every_difference_of_the_findings_has_its_interval():
    """Between the picture and the notebooks: no signed number without the interval behind it."""
    findings = README[README.index("Which ranking loss?"):README.index("Every figure with its")]
    signed = re.findall(r"(?<![\[,] )(?<!\[)[+−]\d+\.\d(?! \[)", findings)
    assert not signed and len(re.findall(r"[+−][\d.]+ \[[+−][\d.]+, [+−][\d.]+\]", findings)) == 23
