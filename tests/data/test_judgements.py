"""Human judgements of Flickr8k: what is read, and what is refused."""

import numpy as np
import pytest

from itr_study.data.base import DataError, read_lines
from itr_study.data.flickr8k import JUDGEMENTS, read_judgements

EXPERT, CROWD = (collection.file for collection in JUDGEMENTS.values())
EXPERTS = ["a.jpg\tb.jpg#2\t1\t2\t1", "a.jpg\ta.jpg#0\t4\t4\t3", "b.jpg\ta.jpg#0\t1\t1\t2"]
CROWDS = ["a.jpg\ta.jpg#2\t1\t3\t0", "a.jpg\tb.jpg#2\t0.333333333333333\t1\t2",
          "b.jpg\ta.jpg#1\t0\t0\t4"]


def read_expert(root):
    return read_judgements(root, "expert")


def read_crowdflower(root):
    return read_judgements(root, "crowdflower")


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "flickr8k"
    folder.mkdir()
    (folder / EXPERT).write_text("\n".join(EXPERTS) + "\n")
    (folder / CROWD).write_text("\n".join(CROWDS) + "\n")
    return folder


def test_experts(folder):
    read = read_expert(folder.parent)
    assert (read.name, read.tau, len(read)) == ("expert", "c", 3) and "JAIR" in read.terms
    assert read.image_ids == ("a.jpg", "a.jpg", "b.jpg")
    assert read.text_ids == ("b.jpg#2", "a.jpg#0", "a.jpg#0")
    assert read.ratings.tolist() == [[1, 2, 1], [4, 4, 3], [1, 1, 2]]
    assert read.own.tolist() == [False, True, False]
    part = read.take(np.array([2, 0]))
    assert part.text_ids == ("a.jpg#0", "b.jpg#2") and part.ratings[0].tolist() == [1, 1, 2]
    assert part.own.tolist() == [False, False] and part.tau == "c"


def test_crowd_in_the_layout_of_the_archive(folder):
    inner = folder / "Flickr8k_text"
    inner.mkdir()
    (folder / CROWD).rename(inner / CROWD)
    read = read_crowdflower(folder)
    assert (read.name, read.tau) == ("crowdflower", "b")
    assert read.ratings.tolist() == [[1], [1 / 3], [0]]
    assert read.own.tolist() == [True, False, False]


@pytest.mark.parametrize(("read", "file", "line", "message"), [
    (read_expert, EXPERT, "a.jpg\tb.jpg#2\t1\t2", "malformed line: ExpertAnnotations.txt:4"),
    (read_expert, EXPERT, "a.jpg\tb.jpg#1\t1\t2\t5", "three grades from 1 to 4"),
    (read_expert, EXPERT, "a.jpg\tb.jpg\t1\t2\t3", "malformed line"),
    (read_expert, EXPERT, "\tb.jpg#1\t1\t2\t3", "malformed line"),
    (read_expert, EXPERT, EXPERTS[0], "rated twice: a.jpg, b.jpg#2: 2 lines"),
    (read_crowdflower, CROWD, "a.jpg\tb.jpg#1\t0.5\t1\t2", "which agree"),
    (read_crowdflower, CROWD, "a.jpg\tb.jpg#1\tnan\t1\t2", "malformed line"),
    (read_crowdflower, CROWD, "a.jpg\tb.jpg#1\t0\t0\t0", "malformed line"),
    (read_crowdflower, CROWD, "a.jpg\tb.jpg#1\t0\t-1\t2", "malformed line"),
])
def test_bad_lines_are_refused(folder, read, file, line, message):
    with open(folder / file, "a") as out:
        out.write(line + "\n")
    with pytest.raises(DataError, match=message):
        read(folder)


def test_all_problems_at_once_and_missing_files(folder):
    (folder / EXPERT).write_text("\n".join([EXPERTS[0], EXPERTS[0], "rubbish"]))
    with pytest.raises(DataError, match="2 problems(.|\n)*:3(.|\n)*rated twice(.|\n)*text.zip"):
        read_expert(folder)
    (folder / EXPERT).write_text("")
    with pytest.raises(DataError, match="no ratings"):
        read_expert(folder)
    (folder / EXPERT).unlink()
    with pytest.raises(DataError, match="ExpertAnnotations.txt missing"):
        read_expert(folder)


def test_real_counts(real_data):
    expert, crowd = read_expert(real_data), read_crowdflower(real_data)
    assert (len(expert), int(expert.own.sum())) == (5822, 158)
    assert expert.ratings.shape == (5822, 3) and crowd.ratings.shape == (47830, 1)
    lines = read_lines(real_data / "flickr8k" / "Flickr_8k.testImages.txt")
    assert {*expert.image_ids, *crowd.image_ids} <= set(lines)
