"""CLIP and SigLIP from a folder: the vectors are those of transformers, whatever is beside them."""

import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from itr_study.encoders import (
    IMAGE_ENCODERS,
    TEXT_ENCODERS,
    WeightsError,
    trainable_image_encoder,
    trainable_text_encoder,
)
from itr_study.encoders.sentences import WordPieces
from itr_study.features.dataset import encode_dataset, text_readers
from itr_study.features.images import FrozenImages
from itr_study.features.specs import image_parts
from itr_study.lab.runs.config import RunConfig
from itr_study.lab.runs.run import check_model
from tests.encoders.fakes import detector, fake_dataset, picture
from tests.tiny_clip import PROJECTED, SIZE, save_tiny_clip, save_tiny_siglip

pytest.importorskip("transformers", reason="the extra 'offline'")
TEXTS = ["a red dog", "Two men on the green grass, with a ball", "cat", "a cat"]
PICTURES = [picture(f"c{i}", SIZE) for i in range(3)]
MODELS = {"clip": (save_tiny_clip, PROJECTED), "siglip": (save_tiny_siglip, 32)}


@pytest.fixture(scope="module", params=MODELS)
def model(request, tmp_path_factory):
    """The folder, and how many numbers a vector has."""
    save, size = MODELS[request.param]
    return save(tmp_path_factory.mktemp("weights") / request.param), size


def theirs(folder):
    """What transformers computes, by the processors of the folder: images, texts, patches."""
    from transformers import AutoImageProcessor, AutoModel, AutoTokenizer

    net, tokenizer = (part.from_pretrained(folder) for part in (AutoModel, AutoTokenizer))
    places = net.config.text_config.max_position_embeddings
    tokens = tokenizer(TEXTS, padding="max_length", truncation=True, max_length=places,
                       return_tensors="pt")
    pixels = AutoImageProcessor.from_pretrained(folder)(images=PICTURES, return_tensors="pt")
    with torch.inference_mode():
        images, texts = net.eval().get_image_features(**pixels), net.get_text_features(**tokens)
    unit = [torch.nn.functional.normalize(found.pooler_output).numpy() for found in (images, texts)]
    return *unit, images.last_hidden_state.numpy()


def frozen(folder, kind):
    return FrozenImages(image_parts(f"clip:{folder}:{kind}:one")[0]).encode(PICTURES)[:, 0]


def test_vectors_are_those_of_transformers(model):
    folder, size = model
    images, texts, states = theirs(folder)
    assert images.shape == (3, size) and texts.shape == (4, size)
    np.testing.assert_allclose(frozen(folder, "pooled")[:, 0], images, atol=1e-5)
    np.testing.assert_allclose(frozen(folder, "grid"), states[:, -16:], atol=1e-4)
    np.testing.assert_allclose(TEXT_ENCODERS["clip"]("cpu", str(folder)).encode(TEXTS), texts,
                               atol=1e-5)
    assert len({vector.round(3).tobytes() for vector in (*images, *texts)}) == 7


def test_what_is_beside_a_text_or_before_it_changes_nothing(model):
    encoder = TEXT_ENCODERS["clip"]("cpu", str(model[0]))
    together = encoder.encode(TEXTS)
    np.testing.assert_allclose(encoder.encode(TEXTS[::-1])[::-1], together, atol=1e-5)
    np.testing.assert_allclose(np.concatenate([encoder.encode([text]) for text in TEXTS]),
                               together, atol=1e-5)


def test_a_long_text_is_cut_where_the_places_end(model):
    from transformers import AutoTokenizer

    folder = model[0]
    encoder, pieces = TEXT_ENCODERS["clip"]("cpu", str(folder)), WordPieces(f"clip:{folder}")
    most, long = encoder.settings["max_tokens"], "the dog " * 60
    assert most in (24, 96)
    expected = AutoTokenizer.from_pretrained(folder)(long, truncation=True, max_length=most)
    assert pieces.encode(long).tolist() == expected["input_ids"]
    assert len(pieces.encode(long)) == most
    np.testing.assert_array_equal(encoder.encode([long]), encoder.encode([long + "more"]))
    assert [one.cut for one in encoder.unread([long, "cat"])] == [most, 0]
    assert [one.cut for one in pieces.unread([long, "cat"])] == [most, 0]


def test_words_without_a_piece_are_said(tmp_path):
    encoder = TEXT_ENCODERS["clip"]("cpu", str(save_tiny_siglip(tmp_path)))
    assert [one.words for one in encoder.unread(["蝴蝶 cat", "dog"])] == [["蝴蝶"], []]


def test_towers_learn_and_hold_nothing_of_the_other(model):
    folder, size = model
    images, texts, _ = theirs(folder)
    image = trainable_image_encoder(f"clip:{folder}")
    text = trainable_text_encoder(f"clip:{folder}")
    assert (image.width, text.width) == (size, size)
    pixels = torch.from_numpy(np.stack([np.asarray(one) for one in PICTURES])).permute(0, 3, 1, 2)
    regions = image.eval()(pixels)
    np.testing.assert_allclose(regions.detach()[:, 0], images, atol=1e-5)
    pieces = WordPieces(f"clip:{folder}")
    tokens = torch.nn.utils.rnn.pad_sequence(
        [torch.from_numpy(pieces.encode(one)) for one in TEXTS], batch_first=True)
    lengths = torch.tensor([len(pieces.encode(one)) for one in TEXTS])
    vectors = text.eval()(tokens, lengths)
    np.testing.assert_allclose(vectors.detach(), texts, atol=1e-5)
    for net, value, other in ((image, regions, "text"), (text, vectors, "vision")):
        (value * torch.arange(size)).sum().backward()
        assert all(part.grad is not None for name, part in net.named_parameters()
                   if "logit" not in name)
        assert not any(other in name for name in net.state_dict())


def test_other_weights_give_other_features_and_another_key(tmp_path):
    from safetensors.torch import load_file, save_file

    folder, data = (save_tiny_clip(tmp_path / "model"),
                    fake_dataset(features={"none": detector}))
    file = folder / "model.safetensors"

    def encoded(images, tokens=None, sentences=None):
        return encode_dataset(data, images, tokens, sentences, store=tmp_path / "store")

    specs = [(f"clip:{folder}:pooled:one", None, f"clip:{folder}"), (f"pixels:clip:{folder}",),
             ("none", f"wordpiece:clip:{folder}")]
    first, *keys = [encoded(*spec) for spec in specs]
    assert encoded(*specs[0]).key == first.key
    save_file({name: values * 1.5 for name, values in load_file(file).items()}, file,
              {"format": "pt"})
    other, *others = [encoded(*spec) for spec in specs]
    for field in ("regions", "sentences"):
        found = [getattr(one.splits["test"], field) for one in (first, other)]
        assert not np.allclose(*found, atol=1e-3)
    for one, two in zip([first, *keys], [other, *others], strict=True):
        assert one.key != two.key


def test_a_specs_readers_are_those_that_encode(tmp_path):
    folder = save_tiny_clip(tmp_path / "model")
    pieces, encoder = text_readers(fake_dataset(), f"wordpiece:clip:{folder}", f"clip:{folder}")
    assert isinstance(pieces, WordPieces) and encoder.name == "clip"


def test_a_config_trains_a_clip_of_a_folder(tmp_path):
    """Its model is built before any data is read, with as many words as its tokenizer has."""
    clip = f"clip:{save_tiny_clip(tmp_path / 'model')}"
    config = RunConfig(dataset="scenes", model="vsepp", images=f"{clip}:pooled:one",
                       tokens=f"wordpiece:{clip}", objective=[{"loss": "triplet_sum"}],
                       model_arguments={"text": clip, "tuned": 1})
    check_model(config)
    with pytest.raises(ValueError, match="needs tokens='wordpiece:clip"):
        check_model(config.with_(tokens="words"))


def test_an_absent_folder_says_where_was_looked(tmp_path, store, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    message = "no usable weights for 'no-such-clip'.*weights.*hub.*give a folder"
    for make in (lambda: TEXT_ENCODERS["clip"]("cpu", "no-such-clip"),
                 lambda: IMAGE_ENCODERS["clip"]("no-such-clip").network(),
                 lambda: trainable_text_encoder("clip:no-such-clip")):
        with pytest.raises(WeightsError, match=message):
            make()
    for make in (TEXT_ENCODERS["clip"], IMAGE_ENCODERS["clip"]):
        with pytest.raises(ValueError, match="needs the name"):
            make()


def test_a_folder_of_another_model_or_without_files_is_refused(tmp_path):
    from transformers import BertConfig, BertModel

    folder = save_tiny_clip(tmp_path / "clip")
    bert = shutil.copytree(folder, tmp_path / "bert")
    BertModel(BertConfig(vocab_size=99, hidden_size=8, num_hidden_layers=1, num_attention_heads=1,
                         intermediate_size=8)).save_pretrained(bert)
    for make in (IMAGE_ENCODERS["clip"](str(bert)).network,
                 lambda: trainable_text_encoder(f"clip:{bert}")):
        with pytest.raises(WeightsError, match="is a BertModel.*folder of a CLIP, SigLIP"):
            make()
    weights = load_file(folder / "model.safetensors")
    for tower, lost in ((lambda at: trainable_text_encoder(f"clip:{at}"), "text_projection.weight"),
                        (lambda at: IMAGE_ENCODERS["clip"](str(at)).network(),
                         "vision_model.post_layernorm.weight")):
        spoilt = shutil.copytree(folder, tmp_path / lost)
        save_file({name.replace(lost, f"module.{lost}"): values for name, values in
                   weights.items()}, spoilt / "model.safetensors", {"format": "pt"})
        with pytest.raises(WeightsError, match=f"1 weights are missing .*'{lost}'"):
            tower(spoilt)
    small = folder / "config.json"
    wide = shutil.copytree(folder, tmp_path / "wide") / "config.json"
    wide.write_text(small.read_text().replace(f'"projection_dim": {PROJECTED}',
                                              '"projection_dim": 24'))
    with pytest.raises(WeightsError, match="of another size, such as 'text_projection.weight'"):
        trainable_text_encoder(f"clip:{wide.parent}")
    with pytest.raises(WeightsError, match='name belongs after the ":"'):
        trainable_text_encoder("clip:")
    for file in folder.glob("*token*"):
        file.unlink()
    with pytest.raises(WeightsError, match="of 2 pieces of words.*of 82; put the model's"):
        TEXT_ENCODERS["clip"]("cpu", str(folder))
    assert IMAGE_ENCODERS["clip"](str(folder)).size == SIZE
    (folder / "processor_config.json").unlink()
    with pytest.raises(WeightsError, match="no usable weights.*all that save_pretrained writes"):
        IMAGE_ENCODERS["clip"](str(folder)).network()
