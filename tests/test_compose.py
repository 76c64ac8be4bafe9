"""Compositions, and widths that are correlated."""

import pytest
import torch

from augury.core.rng import generator
from augury.transforms.affine2d import Affine2d, AffineCoordinates
from augury.transforms.color import Color
from augury.transforms.compose import Compose, Correlated
from augury.transforms.finite_groups import Flip
from augury.transforms.signal1d import Signal1d
from refusal import refused


def images():
    return torch.rand(3, 3, 6, 6, generator=generator(0), dtype=torch.float64)


def pair() -> Compose:
    transform = Compose([Affine2d((6, 6), ["rotation", "translate_x"]), Color(["contrast"])]).double()
    transform.set_widths({"rotation": 40, "translate_x": 1, "contrast": 1.5})
    return transform


def test_views_pass_through_the_parts_pairwise_in_order():
    x, transform = images(), pair()
    eps = transform.noise(3, 5, generator(1)).double()
    affine, color = transform.parts
    expected = [color.act(affine.act(x, eps[:, s : s + 1, :2])[:, 0], eps[:, s : s + 1, 2:])[:, 0] for s in range(5)]
    assert torch.allclose(transform.act(x, eps), torch.stack(expected, dim=1), atol=1e-12)
    other_way = Compose([color, affine])
    assert not torch.allclose(other_way.act(x, eps[..., [2, 0, 1]]), transform.act(x, eps), atol=1e-3)


def test_eta_reads_the_parts_and_parameters_train_them():
    transform = pair()
    assert transform.names == ("translate_x", "rotation", "contrast")
    assert torch.equal(transform.eta, torch.cat([part.eta for part in transform.parts]))
    before = transform.eta.detach().clone()
    optimiser = torch.optim.SGD(transform.parameters(), lr=1e-3)
    transform(images(), 4, generator(0)).square().sum().backward()
    optimiser.step()
    assert (transform.eta != before).all()


def test_parts_must_fit_each_other_and_the_channels():
    refused("'rotation' comes twice", Compose, [Affine2d((6, 6)), Affine2d((6, 6), "rotation")])
    refused("one kind of data; got image and signal", Compose, [Affine2d((6, 6)), Signal1d(6)])
    refused("at least one part", Compose, [])
    parts = [Affine2d((6, 6), sampling="stratified"), Flip("x")]
    refused("one way; got independent and stratified", Compose, parts)
    assert Compose(parts, sampling="stratified").sampling == "stratified"
    refused("3 channels", Compose([Flip("x"), Color(["hue"])]), images()[:, :1], 2, generator(0))


def test_correlated_starts_where_the_widths_are():
    x, plain, mixed = images(), Affine2d((6, 6)).double(), Affine2d((6, 6)).double()
    for transform in (plain, mixed):
        transform.set_widths({"rotation": 30, "scale_x": 1.2, "shear": 0.1})
    mixed = Correlated(mixed)
    assert mixed.describe() == pytest.approx(plain.describe())
    assert torch.allclose(mixed(x, 4, generator(2)), plain(x, 4, generator(2)), atol=1e-12)
    assert [name for name, p in mixed.named_parameters() if p.requires_grad] == ["L"]


def test_parallel_rows_are_joint_scaling():
    joint = Affine2d((6, 6), "scale_joint").double()
    joint.set_widths({"scale_joint": 1.5})
    mixed = Correlated(Affine2d((6, 6), "scale").double())
    with torch.no_grad():
        mixed.L.copy_(joint.eta.item() * torch.tensor([[1.0, 0.0], [1.0, 0.0]]))
    eps = mixed.noise(3, 5, generator(0)).double()
    assert torch.allclose(mixed.act(images(), eps), joint.act(images(), eps[..., :1]), atol=1e-12)
    assert mixed.correlation() == pytest.approx(torch.ones(2, 2).numpy())
    assert mixed.describe() == pytest.approx({"scale_x": 1.5, "scale_y": 1.5})


def test_joint_scaling_is_found_as_scaling():
    # Data: pairs (x, e^s x) with one s for both axes. A moment fit of L must find correlation 1; independent
    # widths cannot tell it from two scales.
    s = (torch.rand(4000, 1, generator=generator(0), dtype=torch.float64) * 2 - 1) * 0.5
    truth = (s**2).mean() * torch.ones(2, 2, dtype=torch.float64)
    mixed = Correlated(AffineCoordinates("scale").double())
    mixed.set_widths({"scale_x": 1.1, "scale_y": 1.1})
    optimiser = torch.optim.Adam(mixed.parameters(), lr=0.02)
    one = torch.ones(1000, 2, dtype=torch.float64)
    for step in range(300):
        logs = mixed(one, 1, generator(step))[:, 0].log()
        loss = ((logs.mT @ logs / len(logs) - truth) ** 2).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert mixed.correlation()[0, 1] > 0.97
    assert list(mixed.describe().values()) == pytest.approx([torch.tensor(0.5).exp().item()] * 2, rel=0.05)


def test_only_the_lower_triangle_acts_and_a_set_width_keeps_the_direction_of_its_row():
    mixed = Correlated(Affine2d((6, 6), "scale").double())
    with torch.no_grad():
        mixed.L[0, 1] = 5.0
    assert torch.allclose(mixed(images(), 2, generator(0)), images()[:, None].expand(-1, 2, -1, -1, -1), atol=1e-12)
    mixed = Correlated(Affine2d((6, 6), "scale").double())
    with torch.no_grad():
        mixed.L.copy_(torch.tensor([[0.1, 0.0], [0.3, 0.4]]))
    mixed.set_widths({"scale_y": 2})
    assert mixed.factor()[1].tolist() == pytest.approx([0.6 * 0.6931472, 0.8 * 0.6931472])


@pytest.mark.parametrize("bad", [Flip("x"), Color(["hue", "blur"]), Compose([Affine2d((6, 6))])])
def test_what_cannot_be_correlated_is_refused(bad):
    refused("two directions", Correlated, bad)
