"""Dev on its first images: as the cut split by hand, in `fit`, in runs, and after a stop."""

import pytest
import torch

from itr_study.evaluation.evaluate import evaluate
from itr_study.lab.runs import run
from itr_study.lab.runs.data import encoded_data
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.run import execute, weights
from itr_study.training.loop import fit
from itr_study.training.settings import Settings
from tests.small import SmallData, SmallLoss, small_model
from tests.small_runs import SMALL

SETTINGS = Settings(epochs=3, batch_size=8, learning_rate=0.02, dev_images=5)
WHOLE = SETTINGS.model_copy(update={"dev_images": 0})


def trained(settings, data=None, **named):
    model = small_model()
    history = fit(model, SmallLoss(), data or SmallData(), settings, seed=1, **named)
    return model, [row | {"seconds": 0} for row in history.rows]


def test_an_epoch_is_evaluated_on_the_first_images_and_their_texts():
    """As on a dev split that was cut by hand; training itself is that of the whole split."""
    cut = SmallData()
    cut.splits["dev"] = cut.splits["dev"].head(5)
    assert (cut.splits["dev"].n_images, cut.splits["dev"].n_texts) == (5, 15)
    (model, rows), (expected, by_hand), (_, whole) = (
        trained(SETTINGS), trained(WHOLE, cut), trained(WHOLE))
    assert rows == by_hand
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), expected.parameters(),
                                                 strict=True))
    assert [row["loss"] for row in rows] == [row["loss"] for row in whole]
    assert [row["dev_rsum"] for row in rows] != [row["dev_rsum"] for row in whole]
    assert trained(replace_dev_images(18))[1] == whole  # all there are


def replace_dev_images(count):
    return SETTINGS.model_copy(update={"dev_images": count})


def test_a_training_that_broke_off_goes_on_bit_equal(tmp_path):
    def fail(history):
        if len(history.rows) == 2:
            raise RuntimeError("the machine is gone")

    expected, rows = trained(SETTINGS)
    with pytest.raises(RuntimeError, match="the machine is gone"):
        trained(SETTINGS, folder=tmp_path, save_seconds=0, on_epoch=fail)
    again, found = trained(SETTINGS, folder=tmp_path)
    assert found == rows
    assert all(torch.equal(a, b) for a, b in zip(expected.parameters(), again.parameters(),
                                                 strict=True))
    with pytest.raises(ValueError, match="dev_images was 5, is 6"):
        trained(replace_dev_images(6), folder=tmp_path)


def test_more_images_than_dev_has_are_all_there_are():
    assert trained(replace_dev_images(19))[1] == trained(replace_dev_images(18))[1]
    data = SmallData()
    del data.splits["dev"]
    with pytest.raises(ValueError, match="dev_images=5, but the data has no dev split"):
        trained(SETTINGS.model_copy(update={"select": "last"}), data)
    for wrong in (-1, 2.5, True):
        with pytest.raises(ValueError, match="dev_images"):
            Settings(dev_images=wrong)


def test_a_run_measures_train_on_as_many_and_dev_whole(store, monkeypatch):
    config = SMALL.with_(**{"settings.dev_images": 4})
    result, splits = execute(identify(config)), encoded_data(config).splits
    model, best = weights(config), result.history.rows[result.history.best_epoch - 1]
    assert result.tables["train"] == evaluate(model, splits["train"].head(4),
                                              measures_of="scenes").table
    assert best["dev_rsum"] == evaluate(model, splits["dev"].head(4)).table["rsum"]
    whole = evaluate(model, splits["dev"]).table
    assert whole.items() <= result.tables["dev"].items() and best["dev_rsum"] != whole["rsum"]
    monkeypatch.setattr(run, "TRAIN_IMAGES", 7)
    assert run.train_images(0) == 7 and run.train_images(200) == 200


def test_as_it_is_by_default_a_run_is_called_what_it_was():
    written = SMALL.with_(**{"settings.dev_images": 0, "settings.texts_per_image": 1})
    assert written.differing() == SMALL.differing()
    assert {"dev_images", "texts_per_image"}.isdisjoint(SMALL.differing()["settings"])
    part = SMALL.with_(**{"settings.dev_images": 4})
    assert part.differing()["settings"]["dev_images"] == 4
