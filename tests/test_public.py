"""The public face: every name is there, none costs anything before it is used, and the README's
lines do what they say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import itr_study

README = Path(__file__).resolve().parent.parent / "README.md"


@pytest.mark.parametrize("name", itr_study.PUBLIC)
def test_a_public_name_is_the_thing_itself(name):
    found = vars(itr_study)["__getattr__"](name)
    assert found is not None and name in dir(itr_study)
    if hasattr(found, "__module__"):  # of a registry's name the module tells nothing
        assert found.__module__.startswith("itr_study.")


def test_an_unknown_name_is_refused_with_those_there_are():
    with pytest.raises(AttributeError, match="one of DATASETS, .*'fitt'; did you mean 'fit'"):
        itr_study.fitt  # noqa: B018


def test_nothing_heavy_is_loaded_before_a_name_is_asked_for():
    code = "import sys, itr_study; dir(itr_study); assert not {'torch', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_lines_of_the_readme_train_a_model(store):
    (block,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S)
    space: dict = {}
    exec(block, space)  # as a reader would paste it
    losses = [row["loss"] for row in space["history"].rows]
    assert losses[-1] < losses[0]
    table = space["itr"].evaluate(space["model"], space["data"].splits["test"]).table
    assert table["rsum"] > 150  # chance with 60 images: 70
    assert space["scores"].shape == (8, 8)
