"""Fisher vectors against the hand-worked case and the slow oracle; what is fitted on what."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from itr_study.encoders import fisher, glove
from itr_study.encoders.fisher import (
    Fisher,
    HybridFisher,
    fisher_vectors,
    fit_hybrid,
    fit_mixture,
    fit_pca,
    hybrid_mixture,
    hybrid_parts,
    word_parts,
)
from itr_study.features.dataset import encode_dataset
from tests.encoders.fakes import WORDS, detector, fake_dataset
from tests.oracles.fisher import HAND, hybrid_oracle, oracle


def give_words(monkeypatch, table):
    def known(words):
        return {word: table[word] for word in words if word in table}

    monkeypatch.setattr(fisher, "known_vectors", known)
    monkeypatch.setattr(glove, "known_vectors", known)


@pytest.fixture
def table(monkeypatch):
    """Vectors of 50 numbers for the words of the fake texts; "unheard" has none."""
    rng = np.random.default_rng(3)
    table = {word: rng.normal(size=50).astype(np.float32) for word in WORDS}
    give_words(monkeypatch, table)
    return table


def mixture(components, dims, seed=0):
    rng = np.random.default_rng(seed)
    return {"weights": rng.dirichlet(np.ones(components) * 5),
            "means": rng.normal(size=(components, dims)),
            "variances": rng.uniform(0.5, 2, (components, dims))}


def test_hand_worked_case(monkeypatch):
    words, expected = HAND["words"], HAND["expected"]
    parameters = {k: HAND[k] for k in ("weights", "means", "variances")}
    assert oracle(words, **parameters) == pytest.approx(expected, abs=1e-12)
    give_words(monkeypatch, {"three": np.array(words[0]), "one": np.array(words[1])})
    parameters = {k: np.array(v) for k, v in parameters.items()}
    found = fisher_vectors(["three one"], word_parts, **parameters)[0]
    assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_equals_the_slow_oracle(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    table = {word: rng.normal(size=4) for word in WORDS}
    give_words(monkeypatch, table)
    parameters = mixture(3, 4, seed)
    texts = [" ".join(rng.choice(WORDS, n)) for n in (1, 2, 7)] + ["dog dog unheard cat"]
    ours = fisher_vectors(texts, word_parts, **parameters)
    for row, text in zip(ours, texts, strict=True):
        words = [table[word].tolist() for word in text.split() if word in table]
        assert row == pytest.approx(oracle(words, **{k: v.tolist() for k, v in
                                                     parameters.items()}), abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_the_hybrid_equals_its_slow_oracle(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    table = {word: rng.normal(size=4) for word in WORDS}
    give_words(monkeypatch, table)
    start = mixture(3, 4, seed)
    mixed = {"weights": start["weights"], "means": start["means"],
             "scales": start["variances"], "laplacian": rng.random((3, 4)) < 0.5}
    texts = [" ".join(rng.choice(WORDS, n)) for n in (1, 2, 7)]
    turned = {"rotation": np.linalg.qr(rng.normal(size=(4, 4)))[0], "shift": rng.normal(size=4)}
    ours = fisher_vectors(texts, hybrid_parts, **mixed, **turned)
    for row, text in zip(ours, texts, strict=True):
        words = [((table[word] - turned["shift"]) @ turned["rotation"]).tolist()
                 for word in text.split()]
        assert row == pytest.approx(
            hybrid_oracle(words, **{k: v.tolist() for k, v in mixed.items()}), abs=1e-6)


def test_em_finds_which_numbers_are_laplacian():
    """Two clusters far apart: in the first number 0 is Laplacian, in the second number 1."""
    rng = np.random.default_rng(0)
    words = np.concatenate([np.c_[rng.laplace(-9, 1, 3000), rng.normal(0, 2, 3000)],
                            np.c_[rng.normal(9, 1, 1000), rng.laplace(5, 0.5, 1000)]])
    start = np.repeat(np.eye(2), [3500, 500], axis=0)  # some are in the wrong cluster
    found = hybrid_mixture(words, start)
    assert found["laplacian"].tolist() == [[True, False], [False, True]]
    assert found["weights"] == pytest.approx([0.75, 0.25], abs=0.01)
    assert found["means"] == pytest.approx(np.array([[-9, 0], [9, 5]]), abs=0.1)
    assert found["scales"] == pytest.approx(np.array([[1, 2], [1, 0.5]]), abs=0.1)


def test_a_component_may_lose_its_words_and_a_scale_has_a_floor():
    """Nine words at one place and one elsewhere: a component each, a third has none."""
    words = np.array([[0.0, 1.0]] * 9 + [[5.0, 5.0]])
    start = np.c_[np.repeat([1.0, 0.0], [9, 1]), np.repeat([0.0, 1.0], [9, 1]), np.zeros(10)]
    found = hybrid_mixture(words, start)
    assert found["weights"] == pytest.approx([0.9, 0.1, 0], abs=1e-9)
    assert found["means"][:2] == pytest.approx(words[[0, 9]])
    assert (found["scales"] == fisher.FLOOR).all()
    # of numbers without spread a Laplacian is likelier: 1 / (2 * 0.01) over 1 / sqrt(2 pi 0.01^2)
    assert found["laplacian"].all()


def test_frequent_words_take_no_component_each(monkeypatch):
    """A text of which half are two words has the mixture of its different words."""
    rng = np.random.default_rng(4)
    table = {f"word{n}": rng.laplace(size=50) for n in range(80)}
    give_words(monkeypatch, table)
    once = fit_hybrid([" ".join(table)], 3)
    often = fit_hybrid([" ".join(table) + 40 * " word1 word2"], 3)
    for name in once:
        np.testing.assert_array_equal(once[name], often[name])
    assert (once["scales"] > fisher.FLOOR).all(axis=1).any()


def test_what_does_not_settle_is_refused(monkeypatch):
    table = {f"word{n}": np.random.default_rng(n).laplace(size=50) for n in range(80)}
    give_words(monkeypatch, table)
    monkeypatch.setattr(fisher, "MOST", 2)
    with pytest.raises(ValueError, match="ICA has not settled"):
        fit_hybrid([" ".join(table)], 3)
    words = np.random.default_rng(0).normal(size=(60, 3))
    with pytest.raises(ValueError, match="the mixture has not settled"):
        hybrid_mixture(words, np.eye(2)[np.arange(60) % 2])


def test_words_that_differ_in_the_last_digits_have_the_same_hybrid_vectors(monkeypatch):
    """So CPUs that round differently agree: ICA and EM settle, and a centre has no sign."""
    rng = np.random.default_rng(2)
    groups = 4 * rng.normal(size=(5, 50))
    table = {f"word{n}": (groups[n % 5] + rng.laplace(size=50) ** 3).astype(np.float32)
             for n in range(90)}
    texts = [" ".join(rng.choice(list(table), 8)) for _ in range(300)]
    found = []
    for noise in (0, 1e-10):
        give_words(monkeypatch, {word: vector.astype(np.float64) * (1 + noise * rng.normal(size=50))
                                 for word, vector in table.items()})
        found.append(fisher_vectors(texts, hybrid_parts, **fit_hybrid(texts, 5)))
    first, second = found
    assert np.abs(first @ first.T - second @ second.T).max() < 1e-5


def test_length_one_and_nothing_for_unknown_words(table):
    vectors = fisher_vectors(["dog cat", "unheard", ""], word_parts, **mixture(2, 50))
    assert vectors.dtype == np.float32 and vectors.shape == (3, 200)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 0, 0])
    assert not fisher_vectors(["unheard"], word_parts, **mixture(2, 50)).any()


def test_pca_is_that_of_a_plain_svd():
    data = np.random.default_rng(0).normal(size=(300, 6)) * [5, 4, 3, 2, 1, 0.5]
    mean, axes = fit_pca(lambda rows: data[rows], list(range(300)), dims=3)
    _, _, plain = np.linalg.svd(data - data.mean(axis=0))
    assert mean == pytest.approx(data.mean(axis=0), abs=1e-5)
    assert np.abs((plain[:3] * axes.T).sum(axis=1)) == pytest.approx(1, abs=1e-5)
    assert (axes[np.abs(axes).argmax(axis=0), range(3)] > 0).all()


def test_pca_in_blocks_is_pca_at_once(monkeypatch):
    data = np.random.default_rng(1).normal(size=(100, 5)) + 3
    whole = fit_pca(lambda rows: data[rows], list(range(100)), dims=2)
    monkeypatch.setattr(fisher, "BLOCK", 7)
    for once, blocks in zip(whole, fit_pca(lambda r: data[r], list(range(100)), 2), strict=True):
        np.testing.assert_allclose(once, blocks, atol=1e-5)


def test_too_few_words_are_refused(table):
    with pytest.raises(ValueError, match="at least 30 known words"):
        fit_mixture(["dog cat unheard"], 30)
    with pytest.raises(ValueError, match="not fitted"):
        Fisher().encode(["dog"])
    with pytest.raises(ValueError, match="hglmm is not fitted"):
        HybridFisher().encode(["dog"])
    with pytest.raises(ValueError, match="at least 51 different known words, found 2"):
        HybridFisher(components=2).fit(["dog cat unheard"])


def test_same_fit_twice_and_state_carries_over(table):
    texts = [" ".join(np.random.default_rng(i).choice(WORDS, 8)) for i in range(60)]
    first, second, loaded = (Fisher(components=3, dims=10) for _ in range(3))
    fitted = first.fit(texts)
    second.fit(texts)
    loaded.load(fitted)
    vectors = first.encode(texts)
    assert vectors.shape == (60, 10) and vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, second.encode(texts))
    np.testing.assert_array_equal(vectors, loaded.encode(texts))
    assert np.abs(vectors.mean(axis=0)).max() < 1e-5  # centred on the texts it was fitted on


def test_fitted_on_training_texts_only_and_kept_for_new_texts(table, tmp_path, monkeypatch):
    def encode(dataset, folder):
        return encode_dataset(dataset, "detector", sentences="fisher+glove-mean", store=folder)

    monkeypatch.setattr(Fisher.__init__, "__defaults__", ("cpu", 3, 10))
    data = encode(fake_dataset(features={"detector": detector}), tmp_path / "a")
    changed = fake_dataset(features={"detector": detector})
    test = changed.splits["test"]
    object.__setattr__(test, "texts", ("dog dog",) * len(test.texts))
    other = encode(changed, tmp_path / "b")
    np.testing.assert_array_equal(data.splits["train"].sentences, other.splits["train"].sentences)
    assert data.inputs.sentence_size == 60
    monkeypatch.setattr(Fisher, "fit", lambda self, texts: pytest.fail("fitted again"))
    again = encode(fake_dataset(features={"detector": detector}), tmp_path / "a")
    text = fake_dataset().splits["test"].texts[0]
    np.testing.assert_allclose(again.encode_texts([text])[1][0],
                               data.splits["test"].sentences[0], atol=1e-6)


def test_a_damaged_fit_is_set_aside_and_made_again(table, tmp_path, monkeypatch):
    dataset = fake_dataset(features={"detector": detector})
    monkeypatch.setattr(Fisher.__init__, "__defaults__", ("cpu", 3, 10))
    first = encode_dataset(dataset, "detector", sentences="fisher", store=tmp_path)
    (fitted,) = tmp_path.glob("*.fitted.safetensors")
    fitted.write_bytes(fitted.read_bytes()[:-1] + b"x")
    again = encode_dataset(dataset, "detector", sentences="fisher", store=tmp_path)
    assert list(tmp_path.glob("*.corrupt"))
    np.testing.assert_array_equal(first.encode_texts(["dog"])[1], again.encode_texts(["dog"])[1])


FIT_AND_ENCODE = """
import hashlib, numpy as np
from itr_study.encoders.fisher import Fisher
from tests.golden.cases import WORDS
random = np.random.default_rng(0)
texts = [" ".join(random.choice(WORDS.split(), 8)) for _ in range(997)]
fisher = Fisher(components=13, dims=37)  # odd sizes: BLAS parts them unevenly among its threads
arrays = fisher.fit(texts) | {"encoded": fisher.encode(texts)}
for name, array in arrays.items():
    print(name, hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest())
"""


def fitted_elsewhere(folder: Path, threads: int) -> str:
    """Digests of what is fitted and encoded in a process of its own, in another folder."""
    environment = {name: str(threads) for name in
                   ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PYTHONHASHSEED")}
    done = subprocess.run([sys.executable, "-c", FIT_AND_ENCODE], cwd=folder, text=True,
                          capture_output=True, timeout=120,
                          env=os.environ | environment | {"PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_threads_folders_and_hash_seeds_change_no_bit(tmp_path):
    """Without the limit of threads two of them fit other means, on any machine of two cores."""
    one = fitted_elsewhere(tmp_path, 1)
    assert one == fitted_elsewhere(Path.cwd(), 2) and len(one.splitlines()) == 6
