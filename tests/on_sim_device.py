"""The simulated device itself: what it refuses, as CUDA does, and how recurrent nets run on it.

`test_sim.py` runs these tests, with `on_sim.py`.
"""

import numpy as np
import pytest
import torch
from torch import nn

from itr_study.models.text import GRU
from tests.on_sim import assert_same
from tests.sim_device import NAME, syncs


@pytest.mark.parametrize("mixed", [
    lambda there, here: there + here, lambda there, here: there @ here,
    lambda there, here: there.gather(1, here.long()), lambda there, here: there.where(here == 1, 0),
    lambda there, here: torch.cat((there, here)), lambda there, here: torch.stack((here, there)),
    lambda there, here: torch.add(there, 1, out=here),
    lambda there, here: there.addmm_(there, here),
    lambda there, here: there.scatter_(1, here.long(), 0.0),
    lambda there, here: there.index_select(0, here[0].long()),
    lambda there, here: there.index_select(0, here[0, 0].long()),
    lambda there, here: there.index_copy_(0, there[0].long(), here),
    lambda there, here: there.index_put_((there.long()[0],), here),
    lambda there, here: nn.functional.embedding(here.long(), there),
    lambda there, here: here[there.long()[0]], lambda there, here: there.sum() + here,
    lambda there, here: torch.stack((there[0, 0], here[0, 0])),
    lambda there, here: torch.linspace(0, 1, 2, device=there.device).lerp(there[0], here[0, 0]),
    lambda there, here: torch._foreach_mul_([there], here[0, 0]),
    lambda there, here: torch._foreach_add_([there], [here])])
@pytest.mark.parametrize("other", ["cpu", f"{NAME}:1"])
def test_tensors_of_two_devices_are_refused(mixed, other):
    with pytest.raises(RuntimeError, match=f"same device, but found {other} and {NAME}:0|"
                                           f"found {NAME}:0 and {other}"):
        mixed(torch.ones(2, 2, device=NAME), torch.ones(2, 2, device=other))


def test_what_kernels_take_from_the_host():
    there = torch.arange(3.0, device=NAME)
    assert (there + torch.tensor(2.0)).tolist() == [2, 3, 4]
    there[torch.tensor([0, 2])] = torch.tensor(7.0)
    assert there[torch.tensor([2, 1])].tolist() == [7, 1]


@pytest.mark.parametrize("name", ["step", "exp_avg"])
def test_what_a_fused_optimiser_remembers_is_on_its_card(name):
    weight = nn.Parameter(torch.ones(2, device=NAME))
    optimizer = torch.optim.AdamW([weight], fused=True)
    weight.grad = torch.ones(2, device=NAME)
    optimizer.step()
    optimizer.state[weight][name] = optimizer.state[weight][name].cpu()
    with pytest.raises(RuntimeError, match="same device"):
        optimizer.step()


@pytest.mark.parametrize("refused", [
    lambda there: there.numpy(), lambda there: np.asarray(there),
    lambda there: torch.randperm(3, device=NAME, generator=torch.Generator()),
    lambda there: torch.rand(3, device=NAME, generator=torch.Generator()),
    lambda there: there.normal_(generator=torch.Generator()),
    lambda there: torch.sim.set_rng_state(torch.get_rng_state()),
    lambda there: torch.set_rng_state(torch.sim.get_rng_state()),
    lambda there: torch.sim.set_rng_state(torch.sim.get_rng_state().to(NAME)),
    lambda there: there.long() @ there.long(), lambda there: there.long().outer(there.long()).mm(
        torch.ones(2, 2, dtype=torch.int64, device=NAME)),
    lambda there: there.long().add_(there)])  # float64 may go into float32, on CUDA, too
def test_what_a_card_refuses(refused):
    with pytest.raises((RuntimeError, TypeError)):
        refused(torch.ones(2, device=NAME))


@pytest.mark.parametrize("pinned", [
    lambda there: there.pin_memory(), lambda there: torch.empty(2, device=NAME, pin_memory=True)])
def test_what_is_on_a_card_is_not_pinned(pinned):
    with pytest.raises(RuntimeError, match="nly dense CPU tensors can be pinned"):
        pinned(torch.ones(2, device=NAME))


def test_each_card_draws_its_own_numbers():
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    kept = torch.sim.get_rng_state(f"{NAME}:1")
    for device in (f"{NAME}:1", NAME, "cpu"):
        assert torch.equal(torch.rand(4, device=device).cpu(), expected)
    torch.sim.set_rng_state(kept, f"{NAME}:1")
    assert torch.equal(torch.rand(4, device=f"{NAME}:1").cpu(), expected)
    assert not torch.equal(torch.rand(4, device=NAME).cpu(), expected)


@pytest.mark.parametrize(("stop", "count"), [
    (lambda x: x.sum().item(), 1), (lambda x: bool((x > 1).any()), 1), (lambda x: x.tolist(), 1),
    (lambda x: x.cpu(), 1), (lambda x: torch.empty(3).copy_(x), 1), (lambda x: x[x > 1], 1),
    (lambda x: x.nonzero(), 1), (lambda x: x.masked_select(x > 1), 1), (lambda x: x.unique(), 1),
    (lambda x: torch.equal(x, x), 1), (lambda x: max(x.sum(), 1), 1),
    (lambda x: x.repeat_interleave(x.long()), 1),
    (lambda x: x.sort().values.cumsum(0)[torch.tensor([0], device=x.device)], 0),
    (lambda x: torch.tensor([1.0], device=x.device) + x.masked_fill(x > 1, 0).mean(), 0)])
def test_what_stops_the_device_is_counted(stop, count):
    given = torch.arange(3.0, device=NAME)
    with syncs() as counted:
        stop(given)
    assert counted.total == count, counted.names
    with pytest.raises(RuntimeError, match="synchronizing"), syncs(most=0):
        given.sum().item()


@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_recurrent_net_is_that_of_the_cpu(bidirectional):
    torch.manual_seed(0)
    here = nn.GRU(4, 5, batch_first=True, bidirectional=bidirectional)
    there = nn.GRU(4, 5, batch_first=True, bidirectional=bidirectional).to(NAME)
    there.load_state_dict(here.state_dict())
    words = torch.randn(2, 3, 4)
    for net, given in ((here, words), (there, words.to(NAME))):
        states, last = net(given)
        (states.square().sum() + last.sum()).backward()
    assert_same(there(words.to(NAME))[0], here(words)[0])
    for ours, expected in zip(there.parameters(), here.parameters(), strict=True):
        assert_same(ours.grad, expected.grad)


@pytest.mark.parametrize("given", [{}, {"bidirectional": True}])
def test_cudnn_keeps_nothing_for_a_gradient_in_evaluation(given):
    words, lengths = torch.randn(2, 3, 4, device=NAME), torch.tensor([3, 2], device=NAME)
    plain = nn.GRU(4, 5, batch_first=True, **given).to(NAME).eval()
    with pytest.raises(RuntimeError, match="cudnn RNN backward can only be called in training"):
        plain(words)[0].sum().backward()
    ours = GRU(4, 5, **given).to(NAME).eval()
    (ours.back(words, lengths) if given else ours.onward(words)).sum().backward()


def test_words_are_never_read_in_float16():
    words, net = torch.randn(2, 3, 4, device=NAME), GRU(4, 5).to(NAME)
    with torch.autocast(NAME, torch.bfloat16):
        assert net(words)[0].dtype == torch.float16  # what cuDNN does
        assert net.onward(words.bfloat16()).dtype == torch.float32


def test_the_weights_of_each_direction_are_laid_together(monkeypatch):
    """What cuDNN asks for at a call is what one call reads: here nothing is moved, but seen."""
    asked = []
    monkeypatch.setattr(nn.GRU, "flatten_parameters", lambda net: asked.append(
        (net.bidirectional, net._flat_weights_names, list(net._flat_weights))))
    net = GRU(4, 5, bidirectional=True)
    asked.clear()
    net.to(NAME)
    for (both, names, laid), expected in zip(asked, net.all_weights, strict=True):
        assert not both and len(names) == 4
        assert all(ours is other for ours, other in zip(laid, expected, strict=True))
    assert net.bidirectional and len(net._flat_weights) == len(net._flat_weights_names) == 8
