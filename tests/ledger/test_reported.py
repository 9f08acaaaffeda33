"""Printed numbers and claims: complete, resolvable, and computed rather than typed."""

import doctest

import pytest

import itr_study.lab.ledger.reported as module
from itr_study.lab.ledger.reported import (
    RECALLS,
    load_claims,
    read_table,
    reported,
    reported_differences,
    split_list,
    wide,
)
from itr_study.lab.ledger.verdict import CASES, HELD

CLAIMS = load_claims().to_dict("records")
# Where a paper makes its claims: all of these must be named.
PLACES = {
    "topk": ("Fig. 1", "Fig. 2", "Figs. 4-5", "Fig. 6", "Fig. 7", "Tables I-III", "Table IV",
             "Sec. III-C", "Sec. IV-B", "Sec. IV-C", "Eq. 9", "Abstract"),
    "listwise": (*(f"Fig. {n}" for n in range(1, 11)), "Table I", "Tables II-IV", "Tables V and VI",
                 "Table VII", "Table VIII", "Eqs. 7-8", "12-13", "Eq. 15", "16", "Eq. 22",
                 "Eq. 23", "Sec. III-C", "Sec. III-D", "Sec. III-E", "Sec. IV-B", "Sec. IV-C",
                 "Sec. V", "Abstract"),
    "bcls": (*(f"Fig. {n}" for n in range(1, 8)), *(f"Table {n}" for n in (
                 "I", "II", "IV", "V", "VI", "VII", "VIII", "IX")), "Tables III", "Eqs. 2-3",
             "Eqs. 4-5", "Eqs. 6-9", "Eqs. 10-11", "Eqs. 14-16", "Eq. 17", "Eqs. 18-20", "Sec. V",
             "Abstract"),
    "dvse": ("Eqs. 1-2", *(f"Eq. {n}" for n in (2, 3, 4, *range(6, 16))), "Fig. 2(b)", "Figs. 2(a)",
             "Fig. 3", "Fig. 4", "Fig. 5", "Figs. 2(a) and 6(a)", "Fig. 6(b)", "Fig. 6(c)",
             "Fig. 6(d)", "Fig. 7(a)", "Fig. 7(b)", "Fig. 8", "Fig. 9", "Fig. 10(a)", "Fig. 11",
             "Fig. 12", "Table IV", "Table V", "Table VI", "Tables I and II", "Table III",
             "Sec. III-A", "Sec. III-B", "Sec. III-C", "Sec. III-D", "Sec. IV-B", "Sec. IV-C",
             "Sec. IV-D", "Sec. V", "Abstract"),
}


def claim(short: str, paper: str = "topk") -> dict[str, str]:
    return next(row for row in CLAIMS if row["id"] == f"{paper}-{short}")


def test_a_table_has_its_numbers_and_unknown_ones_are_refused():
    table = reported("topk", table="I")
    assert set(table["dataset"]) == {"flickr8k"} and table["value"].between(0, 100).all()
    row = table.query("method == 'TOP-k Ranking' and variant == 'k=5' and direction == 'i2t' "
                      "and metric == 'R@5'")
    assert row["value"].tolist() == [62.7]
    with pytest.raises(ValueError, match="table of topk must be one of I, II, III, IV; got 'IX'"):
        reported("topk", table="IX")
    with pytest.raises(ValueError, match="paper must be one of topk"):
        reported("clip")


def test_a_wide_table_has_every_printed_number_once_and_keeps_the_order():
    for table in ("I", "II", "III", "IV"):
        frame = wide("topk", table)
        assert list(frame.columns) == ["method", *RECALLS]
        assert frame[list(RECALLS)].notna().sum().sum() == len(reported("topk", table))
        assert frame["method"].is_unique
    assert wide("listwise", "VI", "coco5k")["test_rsum"].tolist() == [395.4, 335.3, 398.6]
    assert wide("listwise", "IV")["test_rsum"].isna().sum() == 3  # dashes
    eccv = wide("listwise", "VII")
    assert eccv["test_i2t_map_eccv"].tolist() == [26.80, 21.40, 27.75] and eccv.shape == (3, 7)
    tau = wide("bcls", "VI", "coco5k")  # in percent; the paper prints fractions
    assert tau["test_i2t_tau"].tolist()[-1] == pytest.approx(41.7) and tau.shape == (4, 3)
    first = wide("topk", "I")
    assert first["method"].tolist()[-2:] == ["TOP-k Ranking, k=5", "TOP-k Ranking, k=6"]
    assert first.iloc[-2]["test_t2i_r10"] == 69.3 and first["test_i2t_r10"].isna().sum() == 1


@pytest.mark.parametrize("paper", ["topk", "listwise", "bcls", "dvse"])
def test_every_paper_can_be_read(paper):
    frame = reported(paper)
    assert set(frame["paper"]) == {paper} and frame["value"].notna().all()


def test_competitors_can_be_read_too():
    frame = reported("clipscore")
    assert frame.set_index(["dataset", "method"])["value"].to_dict() == {
        ("flickr8k-expert", "CLIP-S"): 51.2, ("flickr8k-expert", "RefCLIP-S"): 53.0,
        ("flickr8k-cf", "CLIP-S"): 34.4, ("flickr8k-cf", "RefCLIP-S"): 36.4}


def test_claims_are_well_formed():
    ids = [row["id"] for row in CLAIMS]
    assert len(set(ids)) == len(ids)
    assert all(len(load_claims(paper)) >= 45 for paper in PLACES)
    for row in CLAIMS:
        assert row["id"].startswith(row["paper"] + "-"), row["id"]
        assert row["kind"] in CASES | HELD and row["statement"] and row["place"], row["id"]
        assert row["arm_a"] or row["needs"] or row["test"], f"{row['id']} has no arms, no reason"
        assert row["kind"] not in HELD or not row["arm_a"], row["id"]
        assert set(split_list(row["parts"])) <= set(ids) - {row["id"]}, row["id"]
        assert not row["arm_a"] or row["metric"], row["id"]
        assert (row["kind"] == "equivalence") == bool(row["margin"]), row["id"]
        if row["arm_a"] and row["kind"] in ("difference", "equivalence"):
            assert len(split_list(row["arm_a"])) == len(split_list(row["arm_b"])), row["id"]
        if row["kind"] == "peak":
            assert not set(split_list(row["arm_a"])) & set(split_list(row["arm_b"])), row["id"]


@pytest.mark.parametrize("paper", PLACES)
def test_every_part_of_the_paper_and_every_figure_and_table_is_covered(paper):
    rows = [row for row in CLAIMS if row["paper"] == paper]
    assert {row["part_of_paper"] for row in rows} == {"2", "3", "4", "5"}
    places = "; ".join(row["place"] for row in rows)
    for place in PLACES[paper]:
        assert place in places, place


@pytest.mark.parametrize("row", [row for row in CLAIMS if row["reported_a"]],
                         ids=lambda row: row["id"])
def test_every_reported_difference_can_be_computed(row):
    table = reported_differences(row)
    assert len(table) >= len(split_list(row["metric"]))
    assert table["difference"].notna().all()


def test_differences_equal_those_worked_by_hand():
    ours = reported_differences(claim("tab4-two_branch-fisher"))
    assert ours["difference"].tolist() == pytest.approx(
        [41.3 - 39.2, 70.3 - 68.1, 79.8 - 76.8, 33.1 - 30.9, 61.5 - 58.4, 72.9 - 69.4])
    every = reported_differences(claim("tab4-all"))["difference"]
    assert (len(every), every.min(), every.max()) == (24, 1.2, 4.4)
    order = reported_differences(claim("order-r1"))
    flickr30k = order[(order["table"] == "II") & (order["metric"] == "test_t2i_r1")]
    assert flickr30k["difference"].tolist() == pytest.approx([30.2 - 33.1, 33.1 - 31.2])
    contrast = reported_differences(claim("larger-k-larger-K")).query("table == 'I'")
    assert contrast["difference"].iloc[0] == pytest.approx((75.5 - 74.6) - (32.1 - 33.3))


@pytest.mark.parametrize("data, improvements", [("flickr8k", [2.3, 1.8]), ("f30k", [7.0, 6.3]),
                                                ("coco1k", [8.3, 10.0])])
def test_improvements_are_those_the_text_states(data, improvements):
    table = reported_differences(claim(f"cca-r1-{data}"))
    assert table["difference"].tolist() == pytest.approx(improvements)


def test_differences_of_listwise_equal_those_its_text_states():
    """RSUM points as the text states them, from recalls: printed RSUMs are rounded once more."""
    gains = reported_differences(claim("tab2-all", "listwise"))
    f30k = gains[gains["table"] == "II"]["difference"].tolist()
    assert f30k == pytest.approx([9.8, 10.6, 9.5, 5.0, 3.9], abs=0.21)
    assert len(gains) == 3 * 2 + 2 * 3 and gains["difference"].min() > 0
    terms = reported_differences(claim("tab5-order", "listwise"))
    assert terms["table"].tolist() == ["V", "VI@coco1k", "VI@coco5k"] * 2
    assert terms["difference"].tolist()[:3] == pytest.approx(
        [477.7 - 472.7, 507.7 - 505.8, 398.6 - 395.4], abs=0.21)
    eccv = reported_differences(claim("tab7-eccv", "listwise"))
    first = eccv[eccv["metric"] == "test_i2t_map_eccv"]["difference"].tolist()
    assert first == pytest.approx([27.75 - 26.80, 26.80 - 21.40])
    assert reported_differences(claim("tab1-all", "listwise"))["difference"].tolist() == \
        pytest.approx([39.93 - 31.33, 43.73 - 31.41, 37.53 - 13.62, 44.94 - 13.67])


def test_differences_of_bcls_equal_those_its_text_states():
    gains = reported_differences(claim("tab3-all", "bcls"))
    assert gains["difference"].tolist()[:6] == pytest.approx(
        [12.4, 4.1, 12.8, 2.7, 11.9, 2.8], abs=0.21)
    order = reported_differences(claim("tab8-order", "bcls"))
    assert order["difference"].tolist() == pytest.approx(
        [415.6 - 400.1, 335.2 - 329.4, 400.1 - 390.4, 329.4 - 326.3, 390.4 - 363.5, 326.3 - 235.5],
        abs=0.21)
    tau = reported_differences(claim("tab6-much-sentence", "bcls"))
    assert tau["difference"].tolist()[1] == pytest.approx(100 * (0.417 - 0.129))
    assert reported_differences(claim("sgraf-gain", "bcls"))["difference"].tolist() == \
        pytest.approx([43.1 - 41.9])


def test_differences_of_dvse_equal_those_its_text_states():
    """Table IV: RSUM and seconds of one setting on two data sets; Tables I, II: three settings."""
    gains = {key: reported_differences(claim(f"tab4-{key}", "dvse"))["difference"].tolist()
             for key in ("fr", "rr", "mr")}
    assert gains == {"fr": pytest.approx([20.6, 18.9]), "rr": pytest.approx([10.1, 7.4]),
                     "mr": pytest.approx([9.5, 10.3])}
    assert round(20.6 / 10.1, 1) == 2.0 and round(20.6 / 9.5, 1) == 2.2  # as Sec. IV-B says
    seconds = reported_differences(claim("tab4-seconds-rr", "dvse"))["difference"].tolist()
    assert seconds == pytest.approx([4.6 - 1.9, 113.5 - 56.3])
    models = reported_differences(claim("fr-any", "dvse")).set_index("table")["difference"]
    assert len(models) == 9 and models["II@f30k@Faster R-CNN"] == pytest.approx(20.6, abs=0.21)
    drops = {key: reported_differences(claim(f"tab5-{key}", "dvse"))["difference"].tolist()
             for key in ("var", "ort", "dm", "se", "order", "best")}
    assert drops == {key: pytest.approx(value) for key, value in {
        "var": [2.5], "ort": [2.0], "dm": [1.1], "se": [0.0], "order": [0.9, 0.5],
        "best": [1.1]}.items()}
    heads = reported_differences(claim("tab6-se", "dvse")).query("metric == 'test_rsum'")
    assert heads["difference"].tolist() == pytest.approx([89.3, 102.3, 104.8])
    recalls = reported_differences(claim("fr-recalls", "dvse"))
    (lower,) = recalls[recalls["difference"] < 0].to_dict("records")
    assert len(recalls) == 54 and (lower["table"], lower["metric"]) == (
        "I@coco1k@ResNeXt-101", "test_t2i_r10")


def test_with_fr_dvse_is_not_ahead_on_all_metrics():
    """The claim dvse-fr-all-metrics is false as printed: eight cells are below a competitor."""
    ahead = []
    for table in ("I", "II", "III"):
        rows = reported("dvse", table).assign(setting=lambda rows, table=table: rows["setting"]
                                              if table != "III" else "")  # III names few
        for key, cells in rows[rows["metric"] != "RSUM"].groupby(
                ["dataset", "setting", "direction", "metric"]):
            ours = cells.loc[cells["variant"] == "+FR", "value"].item()
            others = cells.loc[cells["method"] != "DVSE"].nlargest(1, "value")
            ahead += [(*key, *others["method"])] if (others["value"] > ours).any() else []
    assert len(ahead) == 8
    assert {method for *_, method in ahead} == {"DiVE", "NAAF", "P2RM"}
    assert ("f30k", "Faster R-CNN + Bi-GRU", "i2t", "R@10", "NAAF") in ahead


def test_a_relative_margin_gives_differences_in_percent():
    told = reported_differences(claim("tab8-train", "listwise"))
    assert told["difference"].tolist() == pytest.approx([100 * (241.9 / 229.6 - 1)])


@pytest.mark.parametrize("paper,table", [
    *[("listwise", table) for table in ("II", "III", "IV", "V", "VI")],
    *[("bcls", table) for table in ("III", "IV", "V", "VIII")]])
def test_printed_sums_of_recalls_are_sums(paper, table):
    """The claims *-rsum-printed: off by no more than 0.1, which is rounding."""
    frame = reported(paper, table)
    groups = frame.groupby(["dataset", "method", "variant"])
    whole = [part for _, part in groups if len(part) == 7]
    assert len(whole) >= 3
    for part in whole:
        total = part.loc[part["metric"] == "RSUM", "value"].iloc[0]
        assert part.loc[part["metric"] != "RSUM", "value"].sum() == pytest.approx(total, abs=0.11)


def test_no_difference_is_typed_by_hand():
    assert "reported_difference" not in read_table("claims.csv").columns


def test_a_wrong_selector_is_refused():
    wrong = claim("tab4-dspe") | {"reported_a": "IV|DSPE|Top-7 ranking loss"}
    with pytest.raises(ValueError, match="expected one printed i2t R@1, found 0"):
        reported_differences(wrong)


def test_examples():
    failed, tried = doctest.testmod(module)
    assert tried and not failed
