"""What every model must be; what a class of one's own must give and what it need not."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from itr_study.data.batches import InputSpec
from itr_study.models import MODELS
from itr_study.models.base import RetrievalModel
from tests.small import SmallData, with_regions

INPUTS = InputSpec(region_size=6, vocabulary=20, sentence_size=5)
WEIGHTS = {  # names in every checkpoint that was ever written
    "two_branch": {"image.0.weight", "image.4.bias", "text.0.weight", "text.8.bias"},
    "vsepp": {"image.linear.weight", "text.words.weight", "text.gru.weight_hh_l0"},
    "vse_infinity": {"image.map.linear.weight", "image.pool.linear.weight", "text.words.weight",
                     "text.pool.gru.weight_hh_l0"},
    "pvse": {"image.whole.weight", "image.heads.attention.hidden.weight", "text.heads.norm.weight"},
    "dvse": {"image.regions.weight", "image.w2", "image.heads.residual.weight"},
    "saf": {"image.whole.key.weight", "text.gru.weight_hh_l0", "pair.similarities.words.weight",
            "pair.norm.variance", "pair.score.bias"},
    "sgr": {"image.regions.weight", "text.whole.query.weight", "pair.steps.2.relation.weight"},
    "dan": {"image.maps.0.0.bias", "image.looks.1.memory.weight",
            "text.glimpses.looks.0.weight.weight"},
}


def encoded_split():
    split = with_regions(SmallData().splits["train"])
    return replace(split, sentences=np.ones((split.n_texts, 5), np.float32))


class RegionsAndLengths(RetrievalModel):
    """Nothing but the two encoders."""

    def encode_images(self, batch):
        return normalize(batch.regions.mean(dim=1)[:, :2], dim=1)

    def encode_texts(self, batch):
        return normalize(torch.stack((batch.lengths, batch.tokens[:, 0]), dim=1).float(), dim=1)


class OnlyImages(RetrievalModel):
    def encode_images(self, batch):
        return batch.regions.mean(dim=1)


@pytest.mark.parametrize("name", MODELS)
def test_registered_models_say_what_they_are(name):
    model = MODELS[name]
    assert issubclass(model, RetrievalModel) and model.name == name
    assert model.display_name and model.source and model.version >= 1
    weights = set(model(INPUTS).state_dict())
    assert WEIGHTS[name] <= weights and not [w for w in weights if w.split(".")[0] not in
                                             ("image", "text", "network", "pair")]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("images", "texts"), [(0, 3), (3, 0), (0, 0)])
@pytest.mark.parametrize("name", MODELS)
def test_no_images_or_no_texts_have_no_scores(name, images, texts, training):
    model, split = MODELS[name](INPUTS, size=8).train(training), encoded_split()
    scores = model.score(model.encode_images(split.image_batch(np.arange(images))),
                         model.encode_texts(split.text_batch(np.arange(texts)))).scores
    assert scores.shape == (images, texts)
    assert all(value.isfinite().all() for value in model.state_dict().values())


def test_two_encoders_are_a_model_that_scores_by_the_cosine():
    batch = SmallData().splits["dev"].pair_batch(range(4))
    model = RegionsAndLengths()
    images, texts = model.encode_images(batch), model.encode_texts(batch)
    expected = [[float(i @ t) for t in texts] for i in images]
    torch.testing.assert_close(model(batch).scores, torch.tensor(expected))


def test_a_model_without_one_of_its_encoders_is_refused_at_once():
    with pytest.raises(TypeError, match="encode_texts"):
        OnlyImages()
