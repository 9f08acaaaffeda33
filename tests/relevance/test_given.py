"""Relevance by vectors that the user brings: image-text and image-image cosines."""

import numpy as np
import pytest

from itr_study.data.base import DataError
from itr_study.relevance import RELEVANCE
from tests.relevance.test_registry import batches, small_split


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "train_images.npy", rng.normal(size=(4, 5)).astype(np.float32))
    np.save(tmp_path / "train_texts.npy", rng.normal(size=(9, 5)).astype(np.float32))
    return tmp_path


@pytest.mark.parametrize("scale", ["unit", "cosine"])
@pytest.mark.parametrize("name", ["clip", "features"])
def test_by_loops(folder, name, scale):
    split = small_split()
    images, texts = (np.load(folder / f"train_{what}.npy") for what in ("images", "texts"))
    whole = RELEVANCE[name](str(folder), scale).block(split, slice(0, 4))
    for i in range(4):
        for j, owner in enumerate(split.image_of_text):
            other = {"clip": texts[j], "features": images[owner]}[name]
            cosine = images[i] @ other / np.linalg.norm(images[i]) / np.linalg.norm(other)
            value = cosine if scale == "cosine" else (1 + cosine) / 2
            expected = 1 if owner == i else min(value, 1 - 1e-4)
            assert whole[i, j] == pytest.approx(expected, abs=1e-6), (i, j)


@pytest.mark.parametrize("dtype", [">f4", np.float16, np.float64, np.longdouble])
def test_vectors_of_any_float_type_and_byte_order_label_a_batch(folder, dtype):
    split = small_split()
    for path in folder.iterdir():
        np.save(path, np.load(path).astype(dtype))
    for batch in batches(split):
        source = RELEVANCE["clip"](str(folder))
        whole = source.block(split, slice(0, 4))[np.ix_(batch.ids.images, batch.ids.texts)]
        np.testing.assert_allclose(source(batch, split), whole, atol=1e-6)


def test_bad_files_are_refused(folder):
    split = small_split()
    clip = RELEVANCE["clip"](str(folder))
    np.save(folder / "train_texts.npy", np.ones((8, 5), np.float32))
    with pytest.raises(ValueError, match="must have 9 rows, got 8"):
        clip(batches(split)[0], split)
    np.save(folder / "train_texts.npy", np.ones((9, 4), np.float32))
    with pytest.raises(DataError, match="equally wide, got 5 and 4"):
        clip(batches(split)[0], split)
    np.save(folder / "train_texts.npy", np.full((9, 5), np.nan, np.float32))
    with pytest.raises(ValueError, match="nan or inf first in row 0"):
        clip(batches(split)[0], split)
    (folder / "train_texts.npy").unlink()
    with pytest.raises(DataError, match="there is no .*train_texts.npy"):
        clip(batches(split)[0], split)
    (folder / "train_images.npy").write_bytes(b"no array")
    with pytest.raises(DataError, match="cannot be read"):
        RELEVANCE["features"](str(folder)).block(split, slice(0, 1))


@pytest.mark.parametrize("name", ["clip", "features"])
def test_bad_arguments_are_refused(folder, name):
    with pytest.raises(ValueError, match="give folder="):
        RELEVANCE[name]()
    with pytest.raises(ValueError, match="scale must be one of unit, cosine"):
        RELEVANCE[name](str(folder), scale="percent")
