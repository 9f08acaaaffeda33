"""The encoders that models share: what their options change, and what padding must not."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from itr_study.data.batches import InputSpec
from itr_study.encoders import sentences
from itr_study.encoders.sentences import TrainableText
from itr_study.models import MODELS
from itr_study.models.image import LinearRegions
from itr_study.models.text import RecurrentText, TransformerText
from itr_study.training.loop import fit
from itr_study.training.settings import Settings
from tests.small import SmallData, SmallLoss, with_regions
from tests.training.test_loop import StopAt, fail

INPUTS = InputSpec(region_size=6, vocabulary=20)
TEXTS = [[5, 7, 9, 4], [3], [8, 6, 2]]
OPTIONS = {"region_dropout": 0.4, "word_dropout": 0.4, "text_size": 12, "image_hidden": 10,
           "hidden_dropout": 0.5, "pool": "gpo"}


def padded(width=4):
    tokens = torch.zeros(len(TEXTS), width, dtype=torch.int64)
    for row, text in zip(tokens, TEXTS, strict=True):
        row[:len(text)] = torch.tensor(text)
    return tokens, torch.tensor([len(text) for text in TEXTS])


def text_encoder(**options):
    torch.manual_seed(0)
    return RecurrentText(INPUTS, 8, 5, **options)


def vsepp(**options):
    torch.manual_seed(0)
    return MODELS["vsepp"](INPUTS, size=8, word_size=5, **options)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("state_size", [None, 12])
def test_a_text_is_what_torch_reads_of_it_alone(bidirectional, state_size):
    """Value and gradient; each text by itself, without padding."""
    net, grads = text_encoder(bidirectional=bidirectional, state_size=state_size), []
    half = state_size or 8

    def alone(text):
        states = net.gru(net.words(torch.tensor([text])))[0][0]
        last = (states[-1, :half] + states[0, half:]) / 2 if bidirectional else states[-1]
        return last if state_size is None else net.head[1](last)

    for found in (net(*padded()), net(*padded(9)), torch.stack([alone(text) for text in TEXTS])):
        net.zero_grad()
        found.square().sum().backward()
        grads.append([found.detach(), *(p.grad.clone() for p in net.parameters())])
    for ours, wider, expected in zip(*grads, strict=True):
        torch.testing.assert_close(ours, expected)
        torch.testing.assert_close(wider, expected)


def table_of(states):
    """In a transformer's place: the state of a word is its row, of padding too."""
    class Table(torch.nn.Module):
        def forward(self, tokens, lengths):
            return states[tokens]
    return Table()


def test_word_pieces_by_hand():
    """States of words 1 and 2 are (1, 2) and (3, 4), of padding (100, 100). The mean of the two is
    (2, 3), mapped to 2·5 + 3·2 + 1 = 17; of the first alone it is 1·5 + 2·2 + 1 = 10."""
    table = torch.tensor([[100.0, 100], [1, 2], [3, 4]])
    net = TransformerText(table_of(table), 2, 1, dropout=0.5).eval()
    with torch.no_grad():
        net.linear.weight.copy_(torch.tensor([[5.0, 2]]))
        net.linear.bias.fill_(1)
    tokens, lengths = torch.tensor([[1, 2, 0], [1, 0, 0]]), torch.tensor([2, 1])
    assert net(tokens, lengths).tolist() == [[17], [10]]
    torch.manual_seed(0)
    dropped = {round(net.train()(tokens, lengths)[1].item(), 4) for _ in range(60)}
    assert dropped == {1.0, 9.0, 11.0, 19.0}  # each of the mean's two is 0, or twice itself


@pytest.fixture
def tiny_minilm(monkeypatch):
    """A transformer of MiniLM's kind with two layers of 8 in the place of the packaged one."""
    transformers = pytest.importorskip("transformers", reason="the extra 'offline'")

    def tiny(name):
        torch.manual_seed(0)
        config = transformers.BertConfig(vocab_size=20, hidden_size=8, num_hidden_layers=2,
                                         num_attention_heads=2, intermediate_size=16)
        return TrainableText(transformers.BertModel(config, add_pooling_layer=False))

    monkeypatch.setattr(sentences, "trainable_text_encoder", tiny)


def test_word_pieces_beside_padding_are_what_they_are_alone(tiny_minilm):
    """Value and gradient of each text; the transformer without its own dropout."""
    net, grads = vsepp(text="minilm").text.eval(), []

    def alone(text):
        states = net.transformer.transformer(torch.tensor([text])).last_hidden_state[0]
        return net.linear(states.mean(dim=0))

    for found in (net(*padded()), net(*padded(9)), torch.stack([alone(text) for text in TEXTS])):
        net.zero_grad()
        found.square().sum().backward()
        grads.append([found.detach(), *(p.grad.clone() for p in net.parameters()
                                        if p.requires_grad)])
    for ours, wider, expected in zip(*grads, strict=True):
        torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(wider, expected, atol=1e-5, rtol=1e-5)


def test_all_of_a_transformer_is_trained_but_its_embeddings(tiny_minilm):
    model, batch = vsepp(text="minilm"), SmallData().splits["train"].pair_batch(np.arange(9))
    model(batch).scores.square().sum().backward()
    still = {name for name, weights in model.named_parameters() if weights.grad is None}
    inside = "text.transformer.transformer.embeddings"
    assert f"{inside}.word_embeddings.weight" in still
    assert still == {name for name, _ in model.named_parameters() if name.startswith(inside)}
    assert not any(dict(model.named_parameters())[name].requires_grad for name in still)


@pytest.mark.parametrize(("precision", "close"), [("float32", 1e-5), ("bfloat16", 2e-2)])
@pytest.mark.parametrize("tuned", [0, 1])
def test_what_does_not_learn_computes_each_text_once_in_a_training(
        tiny_minilm, monkeypatch, tmp_path, tuned, precision, close):
    """72 texts in batches of 32, three epochs, in each dev's 54 and one more; SGD, as AdamW makes a
    step of rounding, where a gradient is 0."""
    settings, trained = Settings(epochs=3, batch_size=8, learning_rate=0.1, optimizer="sgd",
                                 precision=precision), {}
    monkeypatch.setattr(sentences, "BATCH", 32)
    other = replace(SmallData().splits["train"].text_batch(np.arange(1)),
                    tokens=torch.full((1, 9), 19), lengths=torch.tensor([9]))

    def training(kept, loss, **folder):
        monkeypatch.setattr(sentences, "KEPT", kept)
        model, computed = vsepp(text="minilm", tuned=tuned), []
        model.text.transformer.embeddings.word_embeddings.register_forward_hook(
            lambda part, given, found: computed.append(len(found)))
        fit(model, loss, SmallData(), settings, seed=1, **folder,
            on_epoch=lambda history: model.train().encode_texts(other))  # no text of train
        assert model.text.transformer.states is None
        return model.state_dict(), computed

    for kept in (0, 72 * 8 * 5):
        trained[kept], computed = training(kept, SmallLoss())
        assert sum(computed) == (3 if kept == 0 else 1) * 72 + 3 * (54 + 1)
    plain, once = trained.values()
    for name, values in plain.items():
        torch.testing.assert_close(once[name], values, atol=close, rtol=close)
    # a training that is resumed goes on with the same states, to the bit
    with pytest.raises(RuntimeError, match="the machine is gone"):
        training(72 * 8 * 5, StopAt(11, fail), folder=tmp_path)
    for name, values in training(72 * 8 * 5, StopAt(-1, fail), folder=tmp_path)[0].items():
        assert torch.equal(values, once[name]), name


def test_a_skipped_part_gets_back_what_others_put_in_the_place_of_its_forward():
    part, plain = torch.nn.ReLU(), torch.nn.ReLU()
    part.forward = hooked = lambda given: given + 1
    with sentences.passing([part, plain]):
        assert part(torch.tensor(-2.0)) == plain(torch.tensor(-2.0)) == -2
    assert part.forward is hooked and "forward" not in vars(plain)
    assert plain(torch.tensor(-2.0)) == 0


def test_words_are_left_out_in_training_only():
    net, (tokens, lengths) = text_encoder(word_dropout=0.5), padded()
    plain = text_encoder()(tokens, lengths)
    assert torch.equal(net.eval()(tokens, lengths), plain)
    net.train()
    short = {tuple(net(tokens, lengths)[2].tolist()) for _ in range(60)}
    without = [[8, 6, 2], [8, 6], [8, 2], [6, 2], [8], [6], [2]]
    parts = [text_encoder()(torch.tensor([text]), torch.tensor([len(text)]))[0].detach()
             for text in without]
    for found in map(torch.tensor, short):  # every one is that of a part of the text
        assert min((found - part).abs().max() for part in parts) < 1e-6
    assert len(short) > 4


def test_regions_are_left_out_in_training_only():
    torch.manual_seed(0)
    net = LinearRegions(2, 3, "mean", region_dropout=0.5)
    regions, mask = torch.randn(1, 3, 2), torch.tensor([[True, True, False]])
    both = net.linear(regions[0, :2]).mean(dim=0)
    assert torch.equal(net.eval()(regions, mask)[0], both)
    net.train()
    seen = [net(regions, mask)[0] for _ in range(40)]
    choices = [both, net.linear(regions[0, 0]), net.linear(regions[0, 1])]
    for found in seen:
        assert min((found - choice).abs().max() for choice in choices) < 1e-6
    assert all(any((found - choice).abs().max() < 1e-6 for found in seen) for choice in choices)


@pytest.mark.parametrize("pool", ["mean", "max"])
def test_all_regions_of_an_image_may_lack_the_same_features(pool):
    """Then of regions that are alike the pool is one of them, and of others it is not."""
    torch.manual_seed(0)
    net = LinearRegions(40, 3, pool, dropout=0.5, alike=True)
    regions, mask = torch.randn(6, 1, 40).expand(6, 4, 40), torch.ones(6, 4, dtype=torch.bool)
    assert torch.allclose(net.eval()(regions, mask), net(regions[:, :1], mask[:, :1]), atol=1e-6)
    torch.manual_seed(1)
    several = net.train()(regions, mask)
    torch.manual_seed(1)
    torch.testing.assert_close(several, net(regions[:, :1], mask[:, :1]))
    apart = LinearRegions(40, 3, pool, dropout=0.5)
    torch.manual_seed(1)
    read = []
    apart.linear.register_forward_pre_hook(lambda _, given: read.append(given[0]))
    apart(regions, mask)
    assert not torch.equal(read[0][:, 0], read[0][:, 1])


def test_hidden_units_by_hand():
    """ReLU(1·2 - 3·1) = 0 and ReLU(2 + 1) = 3, mapped to 0·5 + 3·2 + 1 = 7."""
    net = LinearRegions(2, 1, "mean", hidden=2, hidden_dropout=0.5).eval()
    with torch.no_grad():
        net.linear[0].weight.copy_(torch.tensor([[1.0, -3], [1, 1]]))
        net.linear[0].bias.zero_()
        net.linear[3].weight.copy_(torch.tensor([[5.0, 2]]))
        net.linear[3].bias.fill_(1)
    regions, mask = torch.tensor([[[2.0, 1]]]), torch.tensor([[True]])
    assert net(regions, mask).item() == 7
    torch.manual_seed(0)
    dropped = {round(net.train()(regions, mask).item(), 4) for _ in range(40)}
    assert dropped == {1.0, 13.0}  # the unit of 3 is 0, or twice itself


def test_options_that_are_off_change_no_weight_and_no_score():
    batch = SmallData().splits["train"].pair_batch(np.arange(9))
    off = vsepp(region_dropout=0.0, word_dropout=0.0, text_size=None, image_hidden=None,
                hidden_dropout=0.0)
    assert list(off.state_dict()) == list(vsepp().state_dict())
    torch.manual_seed(1)
    found = off.train()(batch).scores
    torch.manual_seed(1)
    assert torch.equal(found, vsepp().train()(batch).scores)


@pytest.mark.parametrize("text", ["gru", "bigru"])
def test_with_all_options_padding_changes_no_score(text):
    """In evaluation, however wide the batch; in training the same seed gives the same."""
    model, split = vsepp(text=text, **OPTIONS), with_regions(SmallData().splits["train"])
    batch = split.pair_batch(np.arange(12))
    torch.manual_seed(1)
    first = model.train()(batch).scores
    torch.manual_seed(1)
    assert torch.equal(model(batch).scores, first)
    assert not torch.equal(model(batch).scores, first)
    scores = model.eval()(batch).scores
    one = torch.stack([model.score(model.encode_images(split.image_batch([i])),
                                   model.encode_texts(split.text_batch([t]))).scores[0, 0]
                       for t, i in enumerate(split.image_of_text[:12])])
    torch.testing.assert_close(scores.diagonal(), one)


@pytest.mark.parametrize(("options", "told"), [
    ({"region_dropout": 0.95}, "region_dropout must be >= 0 and <= 0.9"),
    ({"word_dropout": -0.1}, "word_dropout must be >= 0"),
    ({"text_size": 0}, "text_size must be an integer >= 1"),
    ({"image_hidden": 2.5}, "image_hidden must be an integer"),
    ({"hidden_dropout": 0.5}, "set image_hidden or text_size"),
    ({"dropout_alike": 1}, "dropout_alike must be True or False, got 1"),
    ({"hidden_dropout": 1.0, "text_size": 4}, "hidden_dropout must be >= 0 and <= 0.9"),
    ({"text": "minilm", "word_dropout": 0.2}, "for recurrent text encoders"),
    ({"text": "minilm", "text_size": 64}, "for recurrent text encoders"),
    ({"pool": "gop"}, "did you mean 'gpo'")])
def test_what_cannot_be_is_refused(options, told):
    with pytest.raises(ValueError, match=told):
        vsepp(**options)
