"""Filter banks over training: the right filters, under the right maps, at the right epochs."""

import pytest
import torch

from augury.core.errors import InputError
from augury.core.rng import generator
from augury.models.shallow import Relu, Rff
from augury.transforms.affine2d import Affine2d
from augury.transforms.base import grid
from papers.invariant_weights.filter_trace import FilterTrace, leading_units


def relu(shape=(1, 8, 8), units=5) -> Relu:
    return Relu(shape, 3, generator(0), units=units, blur=0.0)


def trace_of(net, widths, S=5) -> FilterTrace:
    transform = Affine2d((8, 8), "rotation")
    transform.set_widths({"rotation": widths})
    return FilterTrace(net, transform, grid(S, 1))


def test_equally_spaced_quarter_turns_are_turned_filters():
    net = relu((2, 8, 8))
    trace = trace_of(net, 180.0)
    trace.start("invariant_weights", 3, 1, 0, {})
    bank = trace.bank([3, 1])
    assert bank.shape == (1, 2, 5, 2, 8, 8)
    filters = net.hidden.weight.detach().view(5, 2, 8, 8)
    for k, unit in enumerate((3, 1)):
        turned = torch.stack([torch.rot90(filters[unit], quarter, (1, 2)) for quarter in (2, 1, 0, -1, -2)])
        torch.testing.assert_close(bank[0, k], turned, atol=1e-4, rtol=0)


def test_a_bank_sees_an_input_as_the_filter_sees_its_views():
    net, x = relu(), torch.rand(1, 1, 8, 8, generator=generator(1))
    trace = trace_of(net, 180.0)
    trace.start("invariant_weights", 3, 1, 0, {})
    views = trace.transform.act(x, trace.eps[None])[0]
    by_views = torch.einsum("fchw,schw->fs", net.hidden.weight.view(5, 1, 8, 8), views)
    by_bank = (trace.bank(range(5))[0] * x).sum((2, 3, 4))
    torch.testing.assert_close(by_bank, by_views, atol=1e-4, rtol=0)


def test_snapshots_are_kept_at_the_start_at_powers_of_two_and_at_the_end():
    net = relu()
    trace = trace_of(net, 10.0)
    trace.start("invariant_weights", 9, 1, 0, {})
    for epoch in range(1, 7):
        with torch.no_grad():
            net.hidden.weight.fill_(epoch)
        trace.transform.set_widths({"rotation": 10.0 * epoch})
        trace.epoch({"epoch": epoch})
    assert [s.epoch for s in trace.snapshots] == [0, 1, 2, 4, 6]
    assert [round(s.widths["rotation"]) for s in trace.snapshots] == [10, 10, 20, 40, 60]
    middle = trace.bank([0])[1:, 0, 2, 0, 4, 4]  # not moved in the middle of the grid
    assert middle.tolist() == [1.0, 2.0, 4.0, 6.0]


def test_the_filters_are_those_that_meet_the_input():
    net = Rff((1, 8, 8), 3, generator(0), units=4, blur=0.5)
    trace = trace_of(net, 0.0, S=1)
    trace.start("invariant_weights", 1, 1, 0, {})
    torch.testing.assert_close(trace.bank(range(4))[0, :, 0].flatten(1), net.filters, atol=1e-6, rtol=0)


def test_leading_units_weigh_most_and_what_cannot_be_drawn_is_said():
    net = relu(units=4)
    with torch.no_grad():
        net.hidden.weight.fill_(1.0)
        net.output.weight.copy_(torch.tensor([1.0, 3.0, 2.0, 2.5]).expand(3, 4))
        net.hidden.weight[3] *= 2
    assert leading_units(net, 3) == [3, 1, 2] and len(leading_units(net, 99)) == 4
    with pytest.raises(InputError, match="only for networks on images"):
        FilterTrace(Rff((2,), 2, generator(0), units=3), Affine2d((8, 8), "rotation"), grid(3, 1))
    with pytest.raises(InputError, match=r"must be \[S, 2\], a column for each of translate_x, translate_y"):
        FilterTrace(relu(), Affine2d((8, 8), "translation"), grid(3, 1))
