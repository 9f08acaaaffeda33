"""bfloat16 on a CPU that has none: its products are float32's, rounded once, forward and back."""

import pytest
import torch
from torch import nn
from torch.nn.functional import conv2d
from torch.utils._python_dispatch import TorchDispatchMode

from itr_study.training import devices
from itr_study.training.devices import ProductsInFloat32, half_products
from itr_study.training.loop import fit
from itr_study.training.settings import Settings
from tests.small import SmallData, SmallLoss, small_model


def seeded(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)).to(dtype)


PRODUCTS = {
    "mv": lambda a: a @ a[0], "addmv": lambda a: torch.addmv(a[:, 0], a, a[0]),
    "dot": lambda a: a[0] @ a[1],
    "addbmm": lambda a: torch.addbmm(a[:2, :2], a.view(5, 2, 8), a.view(5, 8, 2)),
    "mm": lambda a: a @ a.T, "addmm": lambda a: torch.addmm(a[0, :5], a, a.T),
    "bmm": lambda a: a.view(5, 2, 8) @ a.view(5, 8, 2),
    "baddbmm": lambda a: torch.baddbmm(a[:, :2, None], a.view(5, 2, 8), a.view(5, 8, 2)),
    "convolution": lambda a: conv2d(a.view(1, 1, 5, 16), a[:1, :4].view(1, 1, 2, 2))}


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_is_that_of_float64_rounded(name):
    """With a gradient of ones, too: of no product is a sum kept in 8 bits on the way."""
    found, product = [], PRODUCTS[name]
    for dtype in (torch.bfloat16, torch.float64):
        given = seeded(5, 16).to(dtype).requires_grad_()
        with ProductsInFloat32():
            value = product(given)
            value.sum().backward()
        assert value.dtype == given.grad.dtype == dtype
        found.append((value.detach(), given.grad))
    torch.testing.assert_close(found[0][0], found[1][0].bfloat16(), rtol=0, atol=0)
    torch.testing.assert_close(found[0][1].double(), found[1][1], rtol=0.02, atol=0.02)


def test_long_sums_lose_nothing():
    """4,096 times 1/256 squared: in bfloat16 a sum of ones stands still at 256."""
    ones = torch.ones(1, 4096, dtype=torch.bfloat16)
    with ProductsInFloat32():
        assert (ones @ ones.T).item() == 4096


@pytest.mark.parametrize("name", [*PRODUCTS, "convolution_backward"])
def test_every_product_is_widened(name):
    """Left out of the list, torch's own would be asked."""
    operator, asked = getattr(torch.ops.aten, name).default, []

    class Below(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func is operator:
                asked.extend(one.dtype for one in args if isinstance(one, torch.Tensor))
            return func(*args, **(kwargs or {}))

    given = seeded(5, 16).requires_grad_()
    with Below(), ProductsInFloat32():  # the inner one is asked first
        PRODUCTS[name.removesuffix("_backward")](given).sum().backward()
    assert {*asked} == {torch.float32}


def test_a_mix_of_precisions_is_refused_as_it_is_elsewhere():
    """A module that forgot to cast would else train here and break on other machines."""
    with ProductsInFloat32(), pytest.raises(RuntimeError, match="same dtype"):
        seeded(5, 16) @ seeded(16, 5, dtype=torch.float32)


def test_a_recurrent_net_in_autocast_is_near_that_of_float32():
    torch.manual_seed(0)
    net, words = nn.GRU(6, 8, batch_first=True), torch.randn(3, 5, 6)
    grads = []
    for enabled in (True, False):
        net.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled), ProductsInFloat32():
            net(words)[0].float().square().sum().backward()
        grads.append([p.grad.clone() for p in net.parameters()])
    for ours, exact in zip(*grads, strict=True):
        assert ours.dtype == torch.float32 and not torch.equal(ours, exact)
        torch.testing.assert_close(ours, exact, rtol=0.1, atol=0.1)


@pytest.mark.parametrize("device, precision, able, widened", [
    ("cpu", "bfloat16", False, True), ("cpu", "bfloat16", True, False),
    ("cpu", "float32", False, False), ("cuda", "bfloat16", False, False)])
def test_only_a_cpu_without_them_is_helped(monkeypatch, device, precision, able, widened):
    monkeypatch.setattr(devices, "cpu_multiplies_half", lambda: able)
    found = half_products(torch.device(device), precision)
    assert isinstance(found, ProductsInFloat32) == widened


@pytest.mark.parametrize("available, supported, able", [
    (True, True, True), (True, False, False), (False, True, False)])
def test_what_onednn_takes_is_asked(monkeypatch, available, supported, able):
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: available)
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: supported)
    assert devices.cpu_multiplies_half() == able


def test_a_training_has_it_forward_and_backward_and_learns_the_same(monkeypatch):
    backward = []

    class Watched(ProductsInFloat32):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func in devices.PRODUCTS and args[-1].dtype == torch.bfloat16:
                backward.append(not torch.is_grad_enabled())
            return super().__torch_dispatch__(func, types, args, kwargs)

    monkeypatch.setattr(devices, "ProductsInFloat32", Watched)
    losses = {}
    for able in (True, False):
        monkeypatch.setattr(devices, "cpu_multiplies_half", lambda able=able: able)
        history = fit(small_model(), SmallLoss(), SmallData(),
                      Settings(epochs=3, batch_size=8, precision="bfloat16"), seed=1)
        losses[able] = [line["loss"] for line in history.rows]
        assert {*backward} == (set() if able else {True, False})
    assert losses[False] == pytest.approx(losses[True], rel=0.02)
