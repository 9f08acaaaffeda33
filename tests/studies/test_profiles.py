import pytest

from itr_study.lab.studies import parameters as profiles
from itr_study.lab.studies.parameters import choose, read_profiles

TEXT = """
["03_topk".smoke]
seeds = 1
ks = [1, 5]
rate = 0.1
["03_topk".quick]
seeds = 2
ks = [1, 2, 5]
rate = 0.1
["03_topk".full]
seeds = 5
ks = [1, 2, 3]
rate = 0.1
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    path = tmp_path / "profiles.toml"
    path.write_text(TEXT)
    monkeypatch.setattr(profiles, "FILE", path)
    return path


def test_the_profile_gives_numbers_and_an_explicit_parameter_wins(file):
    assert vars(choose("03_topk", "quick", seeds=None, ks=None)) == {
        "seeds": 2, "ks": [1, 2, 5], "rate": 0.1, "profile": "quick", "explicit": {},
        "data_options": {}}
    parameters = choose("03_topk", "full", seeds=7, ks=[4], rate=1)
    assert (parameters.seeds, parameters.ks, parameters.rate) == (7, [4], 1)
    assert parameters.profile == "full"
    assert parameters.explicit == {"seeds": 7, "ks": [4], "rate": 1}
    assert choose("03_topk", "full", seeds=0).seeds == 0
    parameters = choose("03_topk", "full", data_options={"skip_bad": True})
    assert parameters.data_options == {"skip_bad": True} == parameters.explicit["data_options"]


@pytest.mark.parametrize("arguments,message", [
    (("03_topk", "fast"), "profile must be one of smoke, quick, full"),
    (("04_none", "quick"), "notebook with profiles must be one of 03_topk"),
])
def test_unknown_names_are_refused(file, arguments, message):
    with pytest.raises(ValueError, match=message):
        choose(*arguments)
    with pytest.raises(ValueError, match="parameter of 03_topk must be one of seeds, ks, rate"):
        choose("03_topk", "quick", seed=1)


@pytest.mark.parametrize("parameter", [{"seeds": "2"}, {"seeds": 2.5}, {"ks": "(1, 2)"},
                                  {"ks": [1, "2"]}, {"rate": "1e-3"}, {"rate": True}])
def test_another_type_is_refused(file, parameter):
    with pytest.raises(ValueError, match=f"{next(iter(parameter))} must be like"):
        choose("03_topk", "quick", **parameter)


def test_profiles_of_a_notebook_have_the_same_names(file):
    file.write_text(TEXT.replace("seeds = 2", "seed = 2"))
    with pytest.raises(ValueError, match="seed, seeds must be in all profiles or in none"):
        read_profiles(file)
    file.write_text(TEXT.split('["03_topk".full]')[0])
    with pytest.raises(ValueError, match="must have the profiles smoke, quick, full"):
        read_profiles(file)


def test_the_file_of_the_package_is_sound():
    read_profiles(profiles.FILE)
