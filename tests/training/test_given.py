"""What a user's loss, model and settings may be: it trains, or one ValueError says what came."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from itr_study.evaluation.evaluate import evaluate
from itr_study.models.base import ModelOutput
from itr_study.training.loop import fit
from itr_study.training.objective import LOGGED, Objective, Term
from itr_study.training.settings import Settings
from tests.small import SmallData, SmallLoss, SmallModel, small_model

ONE = Settings(epochs=1, batch_size=16)


def trained(model=None, loss=None, **options):
    return fit(model or small_model(), loss or SmallLoss(), SmallData(), ONE, **options)


def hinge(scores, relevance):
    return SmallLoss()(scores, relevance)


class Own(nn.Module):
    """A loss of a user's with a report."""

    def __init__(self, report):
        super().__init__()
        self.report = report

    def forward(self, scores, relevance):
        return hinge(scores, relevance)

    def diagnose(self, scores, relevance):
        return self.report(self(scores, relevance))


class Labelled(nn.Module):
    """A label source of a user's."""

    scale = "unit"

    def __init__(self, labels):
        super().__init__()
        self.labels = labels

    def forward(self, batch, split):
        return self.labels(batch.match.float())


RETURNED = {
    "a float": lambda s, r: hinge(s, r).item() + 1, "a NoneType": lambda s, r: print(end=""),
    r"\(16,\) of torch.float32": lambda s, r: (s * r).sum(dim=0),
    r"\(16, 16\)": lambda s, r: (s - r) ** 2, r"\(1,\)": lambda s, r: hinge(s, r)[None],
    "a tuple": lambda s, r: (hinge(s, r), {}), "a dict": lambda s, r: {"value": hinge(s, r)},
    "a list": lambda s, r: [hinge(s, r)], "an? int": lambda s, r: 2,
    r"\(\) of torch.int64": lambda s, r: (s > 0.5).sum(),
    "torch.bool": lambda s, r: s.max() > 0, "a float64": lambda s, r: np.float64(1.0),
    "torch.complex64": lambda s, r: torch.complex(hinge(s, r), hinge(s, r))}


@pytest.mark.parametrize("what", RETURNED)
def test_a_loss_gives_one_floating_number(what):
    for loss in (RETURNED[what], [Term("triplet_sum"), Term(RETURNED[what])]):
        with pytest.raises(ValueError, match=f"<lambda> must return one number, .* got .*{what}"):
            trained(loss=loss)


@pytest.mark.parametrize("what", ["a float", r"\(16,\) of torch.float32", r"\(16, 16\)"])
def test_a_loss_gives_one_number_of_later_batches_too(what):
    losses = iter([hinge, RETURNED[what]])
    with pytest.raises(ValueError, match=f"<lambda> must return one number, .* got .*{what}"):
        trained(loss=lambda s, r: next(losses)(s, r))


@pytest.mark.parametrize("loss", [
    lambda s, r: hinge(s.detach(), r), lambda s, r: torch.tensor(hinge(s, r).item()),
    lambda s, r: (s.argmax(dim=1) == r.argmax(dim=1)).float().mean() + 1])
def test_a_loss_has_a_gradient_beside_others_too(loss):
    for terms in (loss, [Term("topk", arguments={"k": 1}), Term(loss, 0.1)]):
        with pytest.raises(ValueError, match="<lambda> has no gradient: compute it of scores"):
            trained(loss=terms)


def test_a_loss_that_finds_no_pair_may_be_0_without_a_gradient():
    history = trained(loss=[Term("triplet_sum"), Term(lambda s, r: s.new_zeros(()))])
    assert history.rows[0]["<lambda>"] == 0 < history.rows[0]["triplet_sum"]
    with pytest.raises(ValueError, match="the loss has no gradient: compute it, and the scores"):
        trained(loss=lambda s, r: s.new_zeros(()))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_a_loss_in_another_precision_trains(dtype):
    history = trained(loss=lambda s, r: hinge(s, r).to(dtype))
    assert 0 < history.rows[0]["loss"] < 1


@pytest.mark.parametrize("loss", [
    lambda: 1.0, lambda scores: scores.sum(), lambda s, r, margin: hinge(s, r),
    lambda s, r, *, margin: hinge(s, r), nn.Linear(2, 2), nn.Identity(), len])
def test_a_loss_takes_scores_and_relevance(loss):
    with pytest.raises(ValueError, match=r"loss is called with \(scores, relevance\), but takes"):
        trained(loss=loss)


def test_losses_of_torch_and_with_defaults_are_taken():
    assert trained(loss=nn.MSELoss()).rows[0]["MSELoss"] > 0
    assert trained(loss=nn.functional.mse_loss).rows[0]["mse_loss"] > 0
    assert trained(loss=lambda *both, margin=0.1: hinge(*both)).rows[0]["loss"] > 0


@pytest.mark.parametrize("change", [
    lambda s, r: s.mul_(2), lambda s, r: s[0].zero_(), lambda s, r: r.sub_(0.1),
    lambda s, r: torch.nn.functional.relu(s, inplace=True)])
def test_a_loss_that_changes_what_others_read_is_refused(change):
    with pytest.raises(ValueError, match=r"changing changes scores or relevance in place.*clone"):
        def changing(scores, relevance):
            change(scores, relevance)
            return (scores * relevance).mean()
        trained(loss=[Term(changing), Term("triplet_sum")])


@pytest.mark.parametrize("name", [*LOGGED, "dev_i2t_r1", "mine.best", 3])
def test_a_loss_has_no_name_of_another_column(name):
    loss = SmallLoss()
    loss.name = name
    with pytest.raises(ValueError, match=f"a loss cannot be called {name!r}.*another name"):
        trained(loss=loss)


def test_the_names_that_are_taken_are_the_columns_of_a_history():
    row = trained(loss=hinge).rows[0]
    assert {name for name in row if not name.startswith("dev_")} == {"hinge", *LOGGED}


@pytest.mark.parametrize("report", [
    lambda value: value, lambda value: (value, None), lambda value: (value, {"x": 1.0}),
    lambda value: (value, {"x": torch.ones(2)}), lambda value: (value, {3: value}),
    lambda value: (value, [value]), lambda value: (value, {"x": value.to(torch.complex64)})])
def test_a_report_is_a_dict_of_numbers(report):
    with pytest.raises(ValueError, match=r"diagnose of Own must return \(loss, numbers\)"):
        trained(loss=Own(report))


@pytest.mark.parametrize("labels", [
    lambda match: match.numpy(), lambda match: None, lambda match: match[:-1],
    lambda match: match.to(torch.complex64), lambda match: match.tolist()])
def test_a_label_source_gives_a_number_for_each_pair(labels):
    with pytest.raises(ValueError, match=r"a label source must return a tensor \(16, 16\)"):
        trained(loss=[Term("listnet", labels=Labelled(labels))])


@pytest.mark.parametrize("terms", [
    ["triplet_sum", "topk"], {"triplet_sum": 1}, Term("topk"), 3, None, SmallLoss(), hinge,
    [SmallLoss()], [Term("topk"), "triplet_sum"], [("topk", 1.0)]])
def test_an_objective_is_a_list_of_terms(terms):
    with pytest.raises(ValueError, match=r"an objective takes the name of one, .*\[Term"):
        Objective(terms)
    if not callable(terms):
        with pytest.raises(ValueError, match="an objective takes the name of one"):
            trained(warmup_objective=terms or 0)


def test_fit_takes_a_name_or_terms_as_an_objective_does():
    for loss in ("triplet", [Term("triplet_hardest")], (Term("triplet_hardest") for _ in "1")):
        assert "triplet_hardest" in trained(loss=loss).rows[0]


class Coding(SmallModel):
    """Gives of one method what `change` makes of it."""

    def __init__(self, method, change):
        super().__init__()
        self.method, self.change = method, change

    def changed(self, method, found):
        return self.change(found) if method == self.method else found

    def encode_images(self, batch):
        return self.changed("encode_images", super().encode_images(batch))

    def encode_texts(self, batch):
        return self.changed("encode_texts", super().encode_texts(batch))

    def score(self, images, texts):
        return self.changed("score", super().score(images, texts).scores)


CODES = {"a list": lambda x: list(x), "a dict": lambda x: {"code": x}, "a NoneType": lambda x: None,
         r"\((15|17|53), 8\)": lambda x: x[1:], "a ndarray": lambda x: x.detach().numpy(),
         r"\(\) of torch.float32": lambda x: x.mean(), "a tuple": lambda x: (),
         "torch.complex64": lambda x: x.to(torch.complex64), "torch.int32": lambda x: x.int(),
         r"torch.float32, \((8|9|27), 8\)": lambda x: (x, x[::2])}


@pytest.mark.parametrize("what", CODES)
@pytest.mark.parametrize("method", ["encode_images", "encode_texts"])
def test_codes_have_a_row_for_each_item(method, what):
    for use in (trained, lambda model: evaluate(model, SmallData().splits["dev"])):
        with pytest.raises(ValueError, match=f"{method} of Coding must return .* got .*{what}"):
            use(Coding(method, CODES[what]))


@pytest.mark.parametrize("change", [
    lambda x: x.int(), lambda x: x.to(torch.complex64), lambda x: x > 0,
    lambda x: ModelOutput(x.tolist())])
def test_scores_are_floating_point(change):
    for use in (trained, lambda model: evaluate(model, SmallData().splits["dev"])):
        with pytest.raises(ValueError, match=r"score of Coding must give \(images, texts\) = .*"):
            use(Coding("score", change))


def test_scores_without_a_gradient_are_told_of():
    with pytest.raises(ValueError, match="has no gradient: compute it, and the scores of the mod"):
        trained(Coding("score", torch.Tensor.detach))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_a_model_of_another_precision_is_told_which(dtype):
    for use in (trained, lambda model: evaluate(model, SmallData().splits["dev"])):
        with pytest.raises(ValueError, match=rf"SmallModel has weights of {dtype}, .*\.float\(\)"):
            use(small_model().to(dtype))


def test_a_model_that_minds_its_precision_trains():
    class Minds(SmallModel):
        def encode_images(self, batch):
            return nn.functional.normalize(self.image(batch.regions.mean(dim=1).double()), dim=1)

    assert trained(Minds().double()).rows[0]["dev_rsum"] > 0


def test_a_model_built_in_double_precision_by_default_is_told_so():
    torch.set_default_dtype(torch.float64)
    try:
        with pytest.raises(ValueError, match="weights of torch.float64"):
            trained(SmallModel())
        assert trained(small_model().float()).rows[0]["loss"] > 0
    finally:
        torch.set_default_dtype(torch.float32)


def test_errors_of_a_model_that_are_not_of_its_precision_stay():
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        trained(Coding("encode_texts", lambda x: torch.cat((x, x), dim=1)).double().float())


class NoModule:
    encode_images = encode_texts = score = staticmethod(hinge)


class OneArgument(SmallModel):
    def encode_texts(self):
        return self.words.weight


@pytest.mark.parametrize(("model", "message"), [
    (SmallModel, "model must be a torch.nn.Module, built: .* got <class 'tests.small.SmallModel'>"),
    (NoModule(), "model must be a torch.nn.Module"),
    (OneArgument(), r"encode_texts of OneArgument is called with \(batch\), but takes \(\)"),
    (small_model().requires_grad_(False), "nothing can be learnt: SmallModel has no parameter"),
])
def test_models_that_cannot_be_trained(model, message):
    with pytest.raises(ValueError, match=message):
        trained(model)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_fit_needs_gradients(mode):
    with mode(), pytest.raises(ValueError, match=r"outside of torch.no_grad\(\) and torch.inf"):
        trained(small_model())
    if mode is torch.inference_mode:
        with mode():
            model = small_model()
        with pytest.raises(ValueError, match=r"build the model, and call fit, outside of"):
            trained(model)


@pytest.mark.parametrize(("options", "message"), [
    ({"settings": {"epochs": 2}}, r"settings must be itr.Settings\(.*Settings\(\*\*settings\)"),
    ({"settings": Settings}, "settings must be itr.Settings"), ({"settings": 3}, "must be itr.Set"),
    ({"settings": {}}, "settings must be itr.Settings"),
    ({"save_seconds": "1"}, "save_seconds must be a finite number"),
    ({"save_seconds": None}, "save_seconds"), ({"save_seconds": math.nan}, "save_seconds"),
    ({"save_seconds": -0.5}, "save_seconds must be >= 0"),
    ({"on_epoch": "print"}, r"on_epoch is called with \(history\): it must be a function"),
    ({"on_epoch": lambda: None}, r"on_epoch is called with \(history\), but takes \(\)"),
    ({"on_epoch": lambda history, more: None}, "missing a required argument: 'more'"),
    ({"device": None}, "device must be one of auto, cpu, cuda; got None"),
])
def test_how_to_train_is_asked_before_anything_is_trained(options, message):
    model = small_model()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    with pytest.raises(ValueError, match=message):
        fit(model, SmallLoss(), SmallData(), **{"settings": ONE} | options)
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())


def test_never_to_save_in_between_is_a_time():
    assert trained(save_seconds=math.inf, on_epoch=print).rows
