"""The object a notebook talks to."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from itr_study.evaluation.search import Searcher
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.run import execute
from itr_study.lab.studies import nb03_topk, nb09_stronger_models
from itr_study.lab.studies import study as study_module
from itr_study.lab.studies.arms import ArmRun
from itr_study.lab.studies.plans import choose
from itr_study.lab.studies.study import Study
from itr_study.plots import histogram
from itr_study.plots.names import name_of
from tests.cards import Card, put_in
from tests.small_runs import SMALL, without_asked

CELL = {"dataset": "scenes", "profile": "smoke", "data": None, "workers": 0, "epochs": None,
        "scenes": None, "k_seeds": 2, "ks": None, "dims": None, "dim_seeds": None, "settings": None,
        "setting_seeds": None, "rates": None, "best_seeds": None}
RUNS = [ArmRun(label, SMALL.with_(**{"seed": seed, "objective.0.arguments.k": k}))
        for label, k in (("k=1", 1), ("k=2", 2)) for seed in (0, 1)]


@pytest.fixture
def study(tmp_path):
    return Study("03_topk", CELL | {"figures": str(tmp_path / "figures")})


@pytest.fixture(scope="module")
def rows():
    return Study("03_topk", CELL | {"figures": None}).train(RUNS)


def test_a_variable_with_a_type_that_is_no_parameter_is_refused():
    """A typing error in a parameters cell was ignored without a word."""
    cell: dict = {"itr": None, "path": "not of the cell"}
    exec('k_sees: int = 5  # runs of each k', cell)
    with pytest.raises(ValueError, match="parameter of 03_topk .*'k_sees'; did you mean 'k_seeds'"):
        Study("03_topk", CELL | cell)


def test_its_numbers_are_those_of_the_profile_and_of_the_cell(study):
    assert study.parameters.k_seeds == 2 and study.parameters.explicit == {"k_seeds": 2}
    assert {run.config.seed for run in study.arms(nb03_topk.k_arms)} == {0, 1}
    assert study.generated and len(study.dataset.splits["test"].image_ids) > 0


def test_a_notebook_that_trains_nothing_has_its_data_too():
    study = Study("01_data_and_judgements", CELL | {"figures": None, "scenes": {
        "train": 6, "dev": 2, "test": 3}})
    assert len(study.dataset.splits["test"].image_ids) == 3


def test_runs_that_take_more_texts_an_image_than_there_are_get_a_sentence(capsys):
    cell = CELL | {"figures": None, "scenes": {"train": 6, "dev": 2, "test": 3}}
    for texts in (1, 2):
        study = Study("09_stronger_models", cell | {"data_options": {"texts_per_image": texts}})
        labels = {run.label for run in study.arms(nb09_stronger_models.stronger_arms)}
        assert ("dspe/sum" in labels) == (texts == 2) and len(labels) > 2
        assert ("scenes has too few texts an image: DSPE: sum" in capsys.readouterr().out) == (
            texts == 1)
    published = Study("09_stronger_models", {"dataset": "flickr8k", "profile": "full"})
    assert published.arms(nb09_stronger_models.stronger_arms)  # without its folder


def test_options_of_the_data_reach_its_data_and_all_its_runs(tmp_path):
    """skip_bad could be given to no notebook."""
    few = {"train": 6, "dev": 2, "test": 3}
    cell = CELL | {"figures": None, "scenes": few, "data_options": {"texts_per_image": 2}}
    study = Study("03_topk", cell)
    assert len(study.dataset.splits["test"].texts) == 6
    for run in study.arms(nb03_topk.k_arms) + study.arms(nb03_topk.setting_arms):
        assert run.config.data_options == few | {"texts_per_image": 2}
    assert study.provenance()["parameters"]["data_options"] == {"texts_per_image": 2}
    with pytest.raises(ValueError, match="argument of dataset 'scenes' must be one of train"):
        Study("03_topk", cell | {"data_options": {"skip": True}})


def test_a_cell_may_leave_out_a_parameter_but_not_give_it_another_type():
    cell = {name: value for name, value in CELL.items() if name != "dims"} | {"figures": None}
    assert Study("03_topk", cell).parameters.dims == choose("03_topk", "smoke").dims
    with pytest.raises(ValueError, match="dims must be a valid list, got"):
        Study("03_topk", cell | {"dims": "(1, 2)"})


def test_it_trains_compares_and_searches(study, rows):
    assert list(rows.arm) == ["k=1", "k=1", "k=2", "k=2"] and set(rows.status) == {"done"}
    table = study.compare(rows, [("k=2", "k=1"), ("k=9", "k=1")])
    assert list(table.comparison) == ["k=2 − k=1"] and table.n[0] == 2
    by_seed = rows.pivot(index="seed", columns="arm", values="test_rsum")
    assert table.difference[0] == pytest.approx((by_seed["k=2"] - by_seed["k=1"]).mean())
    assert set(study.curves(rows).epoch) == {1, 2}
    assert len(study.ranks(rows.iloc[0]).i2t) == 10
    searcher = study.searcher(RUNS[0])
    assert len(searcher.search_text("a red circle", top=3)) == 3
    assert searcher.name == "test" and study.searcher(RUNS[0], "dev").name == "dev"
    assert study.encoded(RUNS[0]).n_images == 10


def test_runs_as_a_paper_trains_stand_in_tables_once_somebody_trained_them(study, rows, store,
                                                                           monkeypatch):
    """Profile paper trains them; others showed them to nobody, published or not."""
    fast = SMALL.with_(**{"settings.learning_rate": 1e30})
    monkeypatch.setattr(study_module, "paper_arms",
                        lambda *_: [*RUNS[2:], ArmRun("fast", fast)])
    assert len(study.and_paper(rows[:2])) == 2
    study.train([*RUNS[3:], ArmRun("fast", fast)])
    shown = study.and_paper(rows[:2])
    assert list(shown.arm) == ["k=1", "k=1", "k=2"] and list(shown.seed) == [0, 1, 1]
    monkeypatch.setattr(study, "profile", "paper")
    assert list(study.and_paper(rows[:2]).seed) == [0, 1, 0, 1]


def test_models_are_trained_where_they_are_missing(study, store, capsys):
    """Named by their arms or as told; a second call trains nothing and says nothing."""
    models = study.models({"seed 0": RUNS[0], "seed 1": RUNS[1]})
    assert [type(one) for one in models.values()] == [Searcher, Searcher]
    assert list(models) == ["seed 0", "seed 1"]
    assert "2 of 2 models must be trained first" in capsys.readouterr().out
    found = study.models([RUNS[0], RUNS[2]], split="dev")
    assert list(found) == [name_of("k=1"), name_of("k=2")]
    assert {one.name for one in found.values()} == {"dev"}
    assert "1 of 2 models must be trained first" in capsys.readouterr().out
    study.models([RUNS[0], RUNS[2]])
    assert capsys.readouterr().out == ""
    with pytest.raises(ValueError, match="2 runs have 1 names, those of their variants"):
        study.models(RUNS[:2])


def test_all_arms_are_held_beside_one(study):
    """Of arms that were picked by their mean, at a level that pays for the choice."""
    rows = pd.DataFrame([(arm, seed, mean + wiggle * spread)
                         for arm, mean, spread in (("k=1", 20, 0), ("k=2", 18.6, 1), ("k=5", 9, 2))
                         for seed, wiggle in enumerate((-1.2, -0.6, 0, 0.6, 1.2))],
                        columns=["arm", "seed", "test_rsum"]).assign(dataset="scenes", model="m")
    held = study.beside(rows)
    assert list(held.comparison) == ["k=2 − k=1", "k=5 − k=1"]
    assert list(held.verdict) == ["undecided", "lower"] and set(held.arm_b) == {"k=1"}
    at_95 = study.beside(rows, reference="k=1")
    assert list(at_95.verdict) == ["lower", "lower"] and at_95.high[0] < held.high[0]
    assert study.beside(rows, reference="k=5").difference[0] == pytest.approx(11)
    assert study.finding(rows) == "" and study.finding(rows, reference="k=5") == "all above it"
    assert study.finding(rows, reference="k=1") == "hardest (k = 1) is best"
    few = rows[rows.seed < 4]
    assert study.finding(few) == study.finding(few, reference="k=5") == ""  # settles nothing
    assert study.beside(rows[rows.arm == "k=1"]).empty


def test_each_arm_has_the_measures_that_it_needs(study, store):
    """Of two older runs only that is measured again which is to be re-ranked."""
    for run in RUNS[:2]:
        without_asked(execute(identify(run.config)))
    rows = study.train([RUNS[0], RUNS[1]._replace(needs=("reranked",))])
    assert rows["test_fast_rsum"].notna().tolist() == [False, True]


def test_data_workers_and_device_of_the_cell_go_to_whatever_asks_for_them(monkeypatch):
    asked = {}

    def noting(name, answer):
        def call(*arguments, **named):
            asked[name] = (arguments, named)
            return answer
        return call

    splits = SimpleNamespace(splits={"test": "the test split"})
    trained = pd.DataFrame({"status": ["done"], "run": ["ab12"], "arm": ["k=1"]})
    for name, answer in (("train_arms", trained), ("collapses", pd.Series([""])),
                         ("dataset_of", splits), ("encoded_data", splits), ("weights", None),
                         ("searcher", "found"), ("curves", None), ("ranks_of", None)):
        monkeypatch.setattr(study_module, name, noting(name, answer))
    put_in(monkeypatch, Card(), Card())
    study = Study("03_topk", CELL | {"dataset": "flickr8k", "data": "photos/", "workers": 3,
                                     "figures": None, "device": "cuda:1"})
    study.train(RUNS), study.encoded(RUNS[0]), study.model(RUNS[0]), study.curves("rows")
    study.ranks("row")
    assert study.dataset is splits
    assert asked["train_arms"] == ((RUNS,), {"root": "photos/", "workers": 3, "device": "cuda:1",
                                             "weights": False})
    Study("03_topk", CELL | {"figures": None}).train(RUNS, weights=True)
    assert asked["train_arms"][1]["weights"] is True and asked["train_arms"][1]["device"] == "auto"
    assert asked["dataset_of"][0][1:] == ("photos/",)
    assert asked["encoded_data"][0][1:] == ("photos/", "cuda:1")
    assert asked["weights"] == ((RUNS[0].config, "photos/"), {"device": "cuda:1"})
    assert asked["curves"][0] == ("rows",) and asked["ranks_of"][0] == ("row",)
    study.searcher(RUNS[0], "dev")
    assert asked["searcher"] == ((RUNS[0].config, "photos/", "dev"), {"device": "cuda:1"})


@pytest.mark.parametrize(("device", "told"), [
    ("gpu", "device must be one of auto, cpu, cuda; got 'gpu'"),
    ("cuda:5", "'cuda:5' is not here")])
def test_a_device_that_is_none_is_refused_before_anything_is_computed(device, told):
    with pytest.raises(ValueError, match=told):
        Study("03_topk", CELL | {"figures": None, "device": device})


def test_intervals_are_over_the_images_of_test(monkeypatch):
    asked = []
    monkeypatch.setattr(study_module, "over_images", lambda *given: asked.append(given))
    study = Study("03_topk", CELL | {"figures": "drawn/", "scenes": {
        "train": 6, "dev": 2, "test": 3}})
    study.over_images("rows", "t2i_r1")
    (rows, owner, metric), = asked
    assert (rows, metric) == ("rows", "t2i_r1")
    assert owner.tolist() == [0] * 5 + [1] * 5 + [2] * 5


def test_the_first_run_of_an_arm_has_seed_0_and_an_unknown_arm_is_refused(study):
    run = study.first(nb03_topk.k_arms, "k=1")
    assert (run.label, run.config.seed) == ("k=1", 0)
    with pytest.raises(ValueError, match="no variant 'k=x'; there are k=1, "):
        study.first(nb03_topk.k_arms, "k=x")


def test_a_failed_run_is_kept_only_when_asked_for(study):
    diverged = [ArmRun("fast", SMALL.with_(**{"settings.learning_rate": 1e30}))]
    assert study.train(diverged).empty
    assert list(study.train(diverged, failed=True).status) == ["diverged"]


@pytest.mark.parametrize("failed", [False, True])
def test_an_accident_of_a_run_is_told_instead_of_a_finding_without_it(study, monkeypatch, failed):
    """A killed worker once ended a notebook with a message about JSON and NaN."""
    rows = pd.DataFrame({"run": ["1" * 16, "2" * 16], "arm": ["k=1", "k=2"], "seed": [0, 1],
                         "status": ["done", "failed"],
                         "reason": ["", "its worker ended by signal 9 (SIGKILL)"]})
    monkeypatch.setattr(study_module, "train_arms", lambda *_, **__: rows)
    told = (r"run 2{16} \(k=2, seed 1\) failed: its worker ended by signal 9 .*1 of 2 runs did not "
            "end; the others are kept: execute this again")
    with pytest.raises(RuntimeError, match=told):
        study.train(RUNS, failed=failed)


def test_a_figure_is_saved_with_what_made_it(study, rows, tmp_path):
    table = pd.DataFrame({"words": np.arange(5)})
    picture = histogram(table, "words", "Words", "words")
    assert study.save(picture, table, "lengths", "Texts are short", rows, k=3) is picture
    record = json.loads((tmp_path / "figures/scenes/03_topk__lengths.json").read_text())
    assert picture.alt == "Texts are short."
    assert record["summary"] == "Texts are short." and record["k"] == 3
    assert record["seeds"] == [0, 1] and record["run_ids"] == sorted(rows.run)
    assert record["profile"] == "smoke" and record["parameters"] == {"k_seeds": 2}
    assert record["data"] == rows.data.iloc[0]
    assert record["devices"] == [rows.device.iloc[0]] and record["devices"][0].startswith("cpu ")
    assert study.saved["lengths"] == tmp_path / "figures/scenes/03_topk__lengths.png"


def test_a_table_that_no_data_set_changes_is_kept_without_a_picture(study, tmp_path):
    table = pd.DataFrame({"printed": [32.7]})
    assert study.save(None, table, "table_2", "As printed", common=True) is None
    record = json.loads((tmp_path / "figures/common/03_topk__table_2.json").read_text())
    assert record["summary"] == "As printed." and not {"profile", "parameters"} & set(record)
    assert study.saved["table_2"] == tmp_path / "figures/common/03_topk__table_2.csv"


def test_pictures_of_photographs_are_never_kept(study, tmp_path):
    table = pd.DataFrame({"words": np.arange(5)})
    picture = histogram(table, "words", "Words", "words")
    study.save(picture, table, "people", "Of real data.", only="real")
    assert not (tmp_path / "figures").exists()
    study.dataset_name = "flickr8k"
    study.save(picture, table, "grid", "Shows images.", only="generated")
    assert not (tmp_path / "figures").exists()
    study.save(picture, table, "people", "Of real data.", only="real")
    assert (tmp_path / "figures/flickr8k/03_topk__people.png").exists()


def test_where_a_figure_may_be_kept_is_one_of_two_words(study):
    with pytest.raises(ValueError, match="only"):
        study.save(None, None, "grid", "Shows images.", only="scenes")


def test_nothing_that_git_keeps_is_drawn_unasked(tmp_path, monkeypatch):
    """A folder that is given takes everything."""
    monkeypatch.setattr("itr_study.files.paths.project_root", lambda: tmp_path)
    table = pd.DataFrame({"value": [0.1, 0.2]})

    def saved(dataset, figures, **more):
        study = Study("03_topk", CELL | {"dataset": dataset, "figures": figures})
        study.save(None, table, "values", "Two values.", **more)
        return study.saved["values"].relative_to(tmp_path).parent.as_posix()

    for dataset, own in (("scenes", "figures/scenes"), ("flickr8k", "my/figures/flickr8k")):
        assert saved(dataset, None) == own
        assert saved(dataset, None, common=True) == "my/figures/common"
        assert saved(dataset, tmp_path / "figures") == f"figures/{dataset}"
        assert saved(dataset, str(tmp_path / "mine"), common=True) == "mine/common"


def test_only_published_figures_are_saved_as_such(tmp_path, monkeypatch):
    monkeypatch.setattr("itr_study.files.paths.project_root", lambda: tmp_path)
    asked = []
    monkeypatch.setattr(study_module, "save_figure",
                        lambda *_, published: asked.append(published))
    for figures, dataset, common, published in (
            (None, "flickr8k", False, False), (None, "scenes", False, False),
            (tmp_path / "figures", "flickr8k", False, True),
            (tmp_path / "figures", "scenes", True, True),
            (tmp_path / "figures", "scenes", False, False)):
        Study("03_topk", CELL | {"dataset": dataset, "figures": figures}).save(
            None, pd.DataFrame({"value": [1]}), "values", "A value.", common=common)
        assert asked.pop() == published


def test_saved_tables_are_looked_up_where_they_are_drawn_then_where_they_are_published(
        tmp_path, monkeypatch):
    monkeypatch.setattr("itr_study.files.paths.project_root", lambda: tmp_path)

    def found(dataset, figures=None):
        folders = Study("03_topk", CELL | {"dataset": dataset, "figures": figures}).kept_in
        return [folder.relative_to(tmp_path).as_posix() for folder in folders]

    assert found("flickr8k") == ["my/figures/flickr8k", "figures/flickr8k"]
    assert found("scenes") == ["figures/scenes"]
    assert found("flickr8k", tmp_path / "mine") == ["mine/flickr8k", "figures/flickr8k"]


def test_collapsed_runs_are_told_marked_and_settle_nothing(study, rows, monkeypatch, capsys):
    reasons = pd.Series(["", "", "", "collapsed: " + "by hand " * 20], index=rows.index)
    monkeypatch.setattr(study_module, "collapses", lambda given: reasons[given.index])
    again = study.train(RUNS)
    told = capsys.readouterr().out
    assert told.startswith("1 of 2 runs of top-2 have collapsed: by hand by hand ")
    assert max(map(len, told.splitlines())) <= 100  # longer ones JupyterLab breaks in a word
    study.train(RUNS)
    assert capsys.readouterr().out == ""  # said once
    (line,) = study.compare(again, [("k=2", "k=1")]).to_dict("records")
    assert (line["verdict"], line["note"]) == ("collapsed", "collapsed")
    noted = study.noted(again).drop_duplicates("arm").set_index("arm")
    assert noted.note.to_dict() == {"k=1": "", "k=2": "collapsed"}
    assert noted.method.to_dict() == {"k=1": "hardest (k = 1)", "k=2": "top-2"}
    kept = again[["arm", "seed", "dataset", "model", "test_rsum"]]  # rows without their run
    assert study.compare(kept, [("k=2", "k=1")]).note[0] == ""


def test_what_a_reader_must_know_of_an_arm_is_noted(study, rows):
    glove = "vsepp+bigru-glove"
    named = rows.assign(setting=[glove, glove, None, None], loss=["sum", "sum", None, None],
                        arm=[f"{glove}/sum", f"{glove}/sum", "k=2", "k=2"],
                        seen=["", "", "sentence", "sentence"])
    (line,) = study.compare(named, [(f"{glove}/sum", "k=2")]).to_dict("records")
    assert line["note"] == "has seen captions"
    assert line["verdict"] != "collapsed"
    assert (line["setting"], line["loss"]) == (glove, "sum") and pd.isna(line["loss_b"])


def test_a_table_is_kept_and_shown_with_its_notes(study, rows, tmp_path):
    page = study.table(rows, ["test_rsum"], "table_4", "Table IV on scenes")
    assert "Table IV on scenes" in page and page.count("<tr") == 1 + rows.arm.nunique()
    kept = pd.read_csv(tmp_path / "figures/scenes/03_topk__table_4.csv")
    assert list(kept.method) == ["hardest (k = 1)", "top-2"]
    assert not (tmp_path / "figures/scenes/03_topk__table_4.png").exists()


def test_a_printed_table_has_ours_beside_it_where_the_data_has_its_columns(study, rows, tmp_path):
    printed = pd.DataFrame({"method": ["theirs"], "test_rsum": [400.5], "test_i2t_rp_eccv": 1.5})
    page = study.printed(printed, "table_2", "Table II", ours=rows.assign(test_i2t_rp_eccv=None))
    assert "Table II, as printed<" in page and page.count("<tr") == 2
    common = tmp_path / "figures/common/03_topk__table_2.csv"
    pd.testing.assert_frame_equal(pd.read_csv(common), printed)
    page = study.printed(printed, "table_4", "Table IV", ["test_rsum"], rows, "not alike")
    assert "Table IV, and ours on scenes<" in page and "not alike" in page
    assert page.count("<tr") == 2 + rows.arm.nunique() and page.count("reported") == 1
    kept = pd.read_csv(tmp_path / "figures/scenes/03_topk__table_4.csv")
    assert list(kept.method) == ["hardest (k = 1)", "top-2", "theirs"]


@pytest.mark.parametrize("title, told", [
    ("x " * 30 + "y", "the title of words has 61 letters, at most 60"),
    ("Words\n" + "x" * 91, "the subtitle of words has 91 letters, at most 90")])
def test_a_title_that_is_not_read_at_a_glance_is_refused(study, title, told):
    table = pd.DataFrame({"words": np.arange(5)})
    with pytest.raises(ValueError, match=told):
        study.save(histogram(table, "words", title, "words"), table, "words", "Words")


def test_a_difference_by_the_labels_that_trained_an_arm_says_so(study):
    rows = pd.DataFrame(
        [(arm, seed, labels, value, value) for arm, labels, value in (("a", "cider", 2.0),
                                                                      ("b", None, 1.0))
         for seed in range(2)], columns=["arm", "seed", "labels", "test_i2t_tau_cider", "test_rsum"]
    ).assign(dataset="folder", model="two_branch")
    table = study.compare(rows, [("a", "b"), ("b", "a")], ["test_rsum", "test_i2t_tau_cider"])
    assert table.groupby("metric")["note"].unique().map(list).to_dict() == {
        "test_rsum": [""], "test_i2t_tau_cider": ["trained on these labels"]}


def test_a_note_names_the_data_set_how_little_it_is_and_leaves_out_empty_words(study):
    assert study.note("", "k = 5") == ("scenes; profile smoke: too little to judge; 30 test "
                                       "images; k = 5")
    dev = len(study.dataset.splits["dev"].image_ids)
    assert study.note(split="dev").endswith(f"; {dev} dev images")
    assert Study("03_topk", {"profile": "quick"}).note("", "k = 5") == "scenes; k = 5"
