"""Detector features: exact without noise, and as often wrong as they say."""

import numpy as np
import pytest

from itr_study.data.scenes import load
from itr_study.data.scenes.words import COLOURS
from itr_study.data.scenes.world import MOST_THINGS, family

SCENES = [scene for g in range(60) for scene in family(8, g)]
KEYS = [(8, i) for i in range(len(SCENES))]


@pytest.fixture
def perfect(monkeypatch):
    for name, value in {"NOISE": 0, "MISSED": 0, "INVENTED": 0, "MISTAKEN": (0,) * 5,
                        "JITTER": 0}.items():
        monkeypatch.setattr(load, name, value)


def test_without_noise_a_region_is_the_sum_of_its_directions(perfect):
    features, mask = load.detect_all(SCENES[:5], KEYS[:5])
    shape, colour, size, texture, pair, place, geometry = load._tables()
    for i, scene in enumerate(SCENES[:5]):
        assert mask[i].sum() == len(scene.things) + 1
        np.testing.assert_array_equal(features[i, -1], place[scene.place])
        for row, t in zip(features[i], scene.things, strict=False):
            wide, high = t.extent
            box = np.array([t.x, t.y, 2 * wide, 2 * high]) / 500 - 1
            np.testing.assert_allclose(row, shape[t.shape] + colour[t.colour] + size[t.size]
                                       + texture[t.texture]
                                       + pair[t.shape * len(COLOURS) + t.colour]
                                       + box @ geometry, atol=1e-5)


def test_noise_has_mean_0_and_variance_1():
    noise = load._noise(np.random.default_rng(1), (400, 500))
    assert abs(noise.mean()) < 0.01 and abs(noise.std() - 1) < 0.01
    assert abs((noise ** 4).mean() - 3) < 0.4  # nearly normal


def test_things_are_missed_and_invented_as_often_as_said():
    _, mask = load.detect_all(SCENES, KEYS)
    things = np.array([len(scene.things) for scene in SCENES])
    real = np.arange(MOST_THINGS) < things[:, None]
    assert abs(1 - mask[:, :MOST_THINGS][real].mean() - load.MISSED) < 0.02
    assert abs(mask[:, MOST_THINGS:-1].mean() - load.INVENTED) < 0.05
    assert not mask[:, :MOST_THINGS][~real].any()


def test_attributes_are_sometimes_mistaken(perfect, monkeypatch):
    exact, mask = load.detect_all(SCENES, KEYS)
    monkeypatch.setattr(load, "MISTAKEN", (0, 0.2, 0, 0, 0))
    features, _ = load.detect_all(SCENES, KEYS)
    changed = (features != exact).any(axis=-1)[:, :MOST_THINGS][mask[:, :MOST_THINGS]]
    assert abs(changed.mean() - 0.2 * 8 / 9) < 0.03  # one in nine draws is right by chance
    np.testing.assert_array_equal(features[:, -1], exact[:, -1])


def test_a_picture_does_not_depend_on_the_others():
    features, mask = load.detect_all(SCENES, KEYS)
    alone, alone_mask = load.detect_all(SCENES[7:8], KEYS[7:8])
    np.testing.assert_array_equal(alone[0], features[7])
    np.testing.assert_array_equal(alone_mask[0], mask[7])
