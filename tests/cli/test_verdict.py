"""`score` and `verdict` on files written by numpy and json alone."""

import base64
import json
import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from itr_study.lab.cli.sides import check_sides, read_ids, read_side
from itr_study.lab.cli.verdict import judge_files, model_card
from itr_study.metrics import ranks
from tests.cli.test_app import run  # noqa: F401

TRUTH = np.random.default_rng(9).standard_normal((120, 16))
OWNER = np.repeat(np.arange(120), 5)


def matrix(seed: int, noise: float) -> np.ndarray:
    texts = TRUTH[OWNER] + noise * np.random.default_rng(seed).standard_normal((600, 16))
    return (TRUTH @ texts.T).astype(np.float32)


@pytest.fixture
def sides(tmp_path) -> Path:
    for side, noise, first in (("a", 1.0, 0), ("b", 1.3, 10), ("c", 1.02, 20)):
        (tmp_path / side).mkdir()
        for seed in range(5):
            np.save(tmp_path / side / f"seed{seed}.npy", matrix(first + seed, noise))
    return tmp_path


def test_score_prints_every_metric_below_its_protocol(run, sides):  # noqa: F811
    (sides / "ids.csv").write_text("image\n" + "\n".join(f"p{i}.jpg" for i in OWNER))
    code, told, _ = run("score", sides / "a" / "seed0.npy", "--ids", sides / "ids.csv")
    assert code == 0 and told.startswith("120 images, 600 texts, 5 an image")
    assert {"rsum", "i2t_map", "t2i_ndcg", "i2t_hubness"} <= set(re.findall(r"^\w+", told, re.M))
    np.save(sides / "pairs.npy", np.zeros(40456))
    code, _, error = run("score", sides / "pairs.npy")
    assert code == 2 and "scores of pairs alone" in error and "Traceback" not in error


def test_verdict_says_who_is_better_first_and_writes_what_is_asked(run, sides):  # noqa: F811
    made = {name: sides / name for name in ("page.html", "README.md", "t.tex", "d.svg", "d.pdf")}
    code, told, error = run(
        "verdict", "--a", sides / "a" / "*.npy", "--b", sides / "b", "--b", sides / "c",
        "--html", made["page.html"], "--card", made["README.md"], "--latex", made["t.tex"],
        "--figure", made["d.svg"], "--figure", made["d.pdf"])
    assert code == 0, error
    first, second = told.splitlines()[:2]
    assert re.match(r"a is better than b: \+\d+\.\d \[.*\] rsum over 5 pairs of runs\.", first)
    assert second.startswith("No difference larger than ±") and "a and c" in second
    page = made["page.html"].read_text(encoding="utf-8")
    pictures = re.findall(r'base64,([^"]+)"', page)
    assert len(pictures) == 2 and first in page and "http" not in page
    assert base64.b64decode(pictures[0])[:4] == b"\x89PNG"
    head, _, body = made["README.md"].read_text(encoding="utf-8")[4:].partition("\n---\n")
    (model,) = yaml.safe_load(head)["model-index"]
    metric = {m["type"]: m for m in model["results"][0]["metrics"]}["rsum"]
    assert metric["args"]["low_95"] < metric["value"] < metric["args"]["high_95"]
    assert "Contamination: unknown" in body and first in body
    latex = made["t.tex"].read_text(encoding="utf-8")
    rows = [line for line in latex.splitlines() if line.endswith(r"\\")]
    assert len({line.count("&") for line in rows}) == 1 and latex.count(r"\toprule") == 1
    assert latex.count("{") == latex.count("}") and r"\textbf" not in latex  # c is as good
    assert made["d.pdf"].read_bytes()[:4] == b"%PDF" and b"<svg" in made["d.svg"].read_bytes()
    code, *_ = run("verdict", "--a", sides / "a", "--b", sides / "b", "--latex", made["t.tex"])
    assert r"\textbf{" in made["t.tex"].read_text()


def test_one_run_each_cannot_tell(run, sides):  # noqa: F811
    code, told, _ = run("verdict", "--a", sides / "a" / "seed0.npy", "--b",
                        sides / "b" / "seed1.npy")
    assert code == 0 and told.startswith("Cannot tell whether seed0 is better than seed1: one run")
    assert re.search(r"by the seed alone such runs differ by more than this in \d+ % of \d,\d+ "
                     "pairs", told)


def test_matrices_ranks_and_embeddings_of_one_model_are_one(sides, tmp_path):
    best = ranks(np.load(sides / "a" / "seed0.npy"), OWNER)
    np.savez(tmp_path / "r0.npz", i2t=best.i2t, t2i=best.t2i)
    vectors = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (TRUTH, TRUTH[OWNER])]
    np.savez(tmp_path / "e1.npz", images=vectors[0], texts=vectors[1])
    ranked, _ = read_side(str(tmp_path / "r0.npz"))
    scored, _ = read_side(str(sides / "a" / "seed0.npy"))
    assert ranked.tables["0"] == scored.tables["0"] and list(ranked.tables) == ["0"]
    assert read_side(str(tmp_path / "e1.npz"))[0].tables["1"]["rsum"] == 600


def test_results_of_boards_are_read(tmp_path):
    for seed, value in enumerate((0.5, 0.52)):
        folder = tmp_path / f"seed{seed}"
        folder.mkdir()
        for task in ("T2I", "I2T"):
            (folder / f"Flickr30k{task}Retrieval.json").write_text(json.dumps({
                "task_name": f"Flickr30k{task}Retrieval", "scores": {"test": [{
                    "hf_subset": "default", "languages": ["eng-Latn"], "main_score": value,
                    "nauc_recall_at_1_max": 0.1, "recall_at_1": value}]}}))
    mteb, _ = read_side(str(tmp_path / "seed*"))
    assert mteb.tables["1"] == {f"Flickr30k{task}Retrieval {name}": 52.0
                                for task in ("I2T", "T2I")
                                for name in ("main_score", "recall_at_1")}
    (tmp_path / "clip.json").write_text(json.dumps({
        "dataset": "flickr8k", "model": "ViT-B-32", "task": "zeroshot_retrieval", "metrics": {
            "image_retrieval_recall@5": 0.9, "text_retrieval_recall@5": 0.95}}))
    clip, _ = read_side(str(tmp_path / "clip.json"))
    assert clip.tables["0"] == {"flickr8k image_retrieval_recall@5": 90.0,
                                "flickr8k text_retrieval_recall@5": 95.0}
    with pytest.raises(ValueError, match="no metric in common"):
        check_sides([mteb, clip])
    (tmp_path / "other.json").write_text("[1]")
    with pytest.raises(ValueError, match=r"other\.json: is no result of MTEB"):
        read_side(str(tmp_path / "other.json"))


def test_ids_are_rows_or_names_in_their_order(tmp_path):
    path = tmp_path / "ids.csv"
    for text, owner in (("image\n1\n0\n1\n", [1, 0, 1]), ("image,x\nb,1\na,2\nb,3\n", [0, 1, 0]),
                        ("image\n39\n12\n39\n", [0, 1, 0]), ("image\n1\n2\n3\n", [0, 1, 2]),
                        ("image\n1.0\n0.0\n2.0\n", [1, 0, 2])):
        path.write_text(text)
        assert read_ids(path).tolist() == owner
    path.write_text("image\n2\n1\n3\n")
    with pytest.raises(ValueError, match="numbered from 0, these from 1: take 1 off"):
        read_ids(path)
    path.write_text("picture\na\n")
    with pytest.raises(ValueError, match=r"ids\.csv: needs a column `image`"):
        read_ids(path)


@pytest.mark.parametrize(("change", "said"), [
    (lambda at: np.save(at / "b" / "seed0.npy", matrix(0, 1)[:, :480]), "those before it 480"),
    (lambda at: np.save(at / "b" / "seed0.npy", matrix(0, 1)), "a/0 and b/0 are the same run"),
    (lambda at: np.save(at / "b" / "seed0.npy", matrix(11, 1.3)), "0 and 1 are the same run"),
    (lambda at: (at / "b" / "seed4.npy").unlink(), "a has 0, 1, 2, 3, 4, b has 0, 1, 2, 3"),
    (lambda at: np.save(at / "b" / "run_4.npy", matrix(3, 2)), "a second file of seed 4"),
    (lambda at: (at / "b" / "seed2.npy").write_bytes(b"no"), r"seed2\.npy: "),
    (lambda at: np.save(at / "b" / "seed2.npy", matrix(1, 1).astype(object)),
     r"^\S+seed2\.npy: is no array of numbers"),
    (lambda at: np.save(at / "b" / "seed2.npy", matrix(1, 1)[:0]), "got .0, 600.: scores of pairs"),
    (lambda at: np.save(at / "b" / "seed0.npy", -0.0 * matrix(1, 1)), "all scores are equal"),
    (lambda at: np.savez(at / "b" / "seed5.npz", x=1), "must hold scores, or images and texts"),
    (lambda at: [p.unlink() for p in (at / "b").iterdir()], "no file of .npy, .npz, .json"),
    (lambda at: [(at / side / "ids.csv").write_text("image\n" + "\n".join(map(str, order)))
                 for side, order in (("a", OWNER), ("b", OWNER[::-1]))], "differ: other queries"),
])
def test_bad_sides_are_refused_with_the_remedy(sides, change, said):
    change(sides)
    with pytest.raises(ValueError, match=said):
        judge_files(str(sides / "a"), [str(sides / "b")], None, None)


def test_another_order_of_queries_is_named(sides):
    for seed in range(5):
        order = np.random.default_rng(0).permutation(120)
        scores = matrix(10 + seed, 1.3)
        np.save(sides / "b" / f"seed{seed}.npy",
                scores[order][:, (order[:, None] * 5 + np.arange(5)).ravel()])
    found = judge_files(str(sides / "a"), [str(sides / "b")], None, None)
    assert any("in another order?" in note for note in found.notes)
    alike = judge_files(str(sides / "a"), [str(sides / "c")], None, None)
    assert not any("in another order?" in note for note in alike.notes)


@pytest.mark.parametrize("part", ["rows", "columns", "ids"])
def test_ranks_of_chance_are_named(sides, part):
    order = np.random.default_rng(0).permutation(120 if part == "rows" else 600)
    owner = OWNER[order] if part == "ids" else OWNER
    for seed in range(5):
        scores = matrix(10 + seed, 1.3)
        np.save(sides / "b" / f"seed{seed}.npy", scores[order] if part == "rows" else
                scores[:, order] if part == "columns" else scores)
    if part == "ids":
        (sides / "ids.csv").write_text("image\n" + "\n".join(map(str, owner)))
    found = judge_files(str(sides / "a"), [str(sides / "b")],
                        sides / "ids.csv" if part == "ids" else None, None)
    named = {note.split()[0] for note in found.notes if "finds images as chance does" in note}
    assert named == ({"a", "b"} if part == "ids" else {"b"})


def test_looks_widen_the_intervals_of_more_than_five_pairs(run, sides):  # noqa: F811
    for side, first in (("a", 40), ("b", 50)):
        np.save(sides / side / "seed5.npy", matrix(first, 1.0 if side == "a" else 1.3))
    halves = []
    for looks in ((), ("--looks", 2)):
        _, told, _ = run("verdict", "--a", sides / "a", "--b", sides / "b", *looks)
        low, high = re.search(r"\[\+([\d.]+), \+([\d.]+)\] rsum over 6", told).groups()
        halves.append(float(high) - float(low))
    assert halves[1] > 1.2 * halves[0]  # t of 5 degrees at 97.5 %: 3.16 instead of 2.57


def test_a_pattern_without_quotes_is_named(run, sides):  # noqa: F811
    code, _, error = run("verdict", "--a", sides / "a", "--b", sides / "b", sides / "c")
    assert code == 2 and "put patterns in quotes" in error


def test_the_card_can_be_read_where_it_is_published(sides):
    data = pytest.importorskip("huggingface_hub").ModelCard(model_card([judge_files(
        str(sides / "a"), [str(sides / "b")], None, None)])).data
    assert data.model_name == "a" and len(data.eval_results) >= 9
