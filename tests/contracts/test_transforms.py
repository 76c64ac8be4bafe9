"""One table, one battery: every transformation passes every test here. Adding a row adds the tests."""

import copy
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from augury.core.errors import InputError
from augury.core.rng import generator
from augury.core.units import FACTOR, WidthSpec
from augury.transforms.affine2d import Affine2d, AffineCoordinates
from augury.transforms.base import Transform
from augury.transforms.color import COLORS, Color
from augury.transforms.compose import Compose, Correlated
from augury.transforms.finite_groups import CyclicRotation, Flip, Translations
from augury.transforms.points3d import POINT_GENERATORS, Rotation3d
from augury.transforms.signal1d import CircularShift, Mirror, Signal1d
from reference.differences import central_difference
from refusal import refused


class Gain(Transform):
    """The ten-line example of `augury.transforms.base`."""

    kind = "signal"

    def __init__(self):
        super().__init__([WidthSpec("gain", FACTOR)])

    def act(self, x, eps):
        factor = (eps[..., 0] * self.eta[0]).exp()
        return x[:, None] * factor[..., None, None]


def smooth(*shape: int) -> Tensor:
    """Return a batch of smooth inputs in float64: bilinear sampling of them has small kinks only."""
    axes = [torch.linspace(-1, 1, n, dtype=torch.float64) for n in shape[2:]]
    grids = torch.meshgrid(*axes, indexing="ij")
    phase = torch.arange(shape[0] * shape[1], dtype=torch.float64).reshape(*shape[:2], *[1] * len(axes))
    waves = sum(torch.sin((k + 1.5) * grid + phase + k) for k, grid in enumerate(grids))
    return torch.exp(-sum(grid**2 for grid in grids)) * (waves + 2.5)


def cloud(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator(0), dtype=torch.float64)


IMAGE, WIDE, RGB = smooth(3, 1, 9, 9), smooth(3, 2, 6, 9), smooth(3, 3, 8, 8)


@dataclass(frozen=True)
class Row:
    name: str
    make: Callable[[], Transform]
    x: Tensor
    identity: float = 0.0
    """How far eta = 0 may be from the identity in float64: 0 is to the bit."""
    kinked: bool = False
    """Bilinear sampling has a kink at every pixel centre, and eta = 0 samples there: its slopes are one-sided."""


ROWS = [
    Row("affine", lambda: Affine2d((9, 9)), IMAGE, 1e-12, kinked=True),
    Row("affine, not square", lambda: Affine2d((6, 9)), WIDE, 1e-12, kinked=True),
    Row("rotation, stratified", lambda: Affine2d((9, 9), "rotation", "stratified"), IMAGE, 1e-12, kinked=True),
    Row("translation, grid", lambda: Affine2d((9, 9), "translation", "grid"), IMAGE, 1e-12, kinked=True),
    Row("similarity", lambda: Affine2d((9, 9), "similarity"), IMAGE, 1e-12, kinked=True),
    Row("coordinates", lambda: AffineCoordinates("affine"), cloud(5, 2)),
    *[Row(name, lambda name=name: Color([name]), RGB) for name in COLORS],
    Row("color", Color, RGB),
    Row("color, one channel", lambda: Color(["brightness", "contrast", "blur"]), IMAGE),
    Row("signal", lambda: Signal1d(16), smooth(3, 2, 16), 1e-12, kinked=True),
    Row("amplitude", lambda: Signal1d(16, ["amplitude"]), smooth(3, 2, 16)),
    Row("time shift", lambda: Signal1d(16, ["time_shift"]), smooth(3, 2, 16), 1e-12, kinked=True),
    Row("circular shift", lambda: CircularShift(16), smooth(3, 2, 16), 1e-12),
    Row("circular shift, odd", lambda: CircularShift(15, "stratified"), smooth(3, 2, 15), 1e-12),
    Row("mirror", Mirror, smooth(3, 2, 16)),
    Row("outline", lambda: Compose([Mirror(), CircularShift(16)]), smooth(3, 2, 16), 1e-12),
    Row("points", lambda: Rotation3d(POINT_GENERATORS), cloud(3, 7, 3), 1e-12),
    Row("rotation about z", lambda: Rotation3d(["rotation_z"]), cloud(3, 7, 3), 1e-12),
    Row("C2", lambda: CyclicRotation(2), WIDE),
    Row("C3", lambda: CyclicRotation(3), WIDE),
    Row("C4", CyclicRotation, IMAGE),
    Row("C8", lambda: CyclicRotation(8), IMAGE),
    Row("flip_x", lambda: Flip("x"), WIDE),
    Row("flip_y", lambda: Flip("y"), WIDE),
    Row("T3", Translations, RGB),
    Row("T3_x", lambda: Translations(3, "x"), WIDE),
    Row("correlated", lambda: Correlated(Affine2d((9, 9), "scale")), IMAGE, 1e-12, kinked=True),
    Row("correlated color", lambda: Correlated(Color(["brightness", "contrast", "hue"])), RGB),
    Row(
        "composed",
        lambda: Compose([Affine2d((8, 8)), CyclicRotation(), Color(["hue", "grey"])]),
        RGB,
        1e-12,
        kinked=True,
    ),
    Row("nested", lambda: Compose([Compose([Flip("x"), Flip("y")]), Color(["blur"])]), RGB),
    Row("composed of correlated", lambda: Compose([Correlated(Rotation3d())]), cloud(3, 7, 3), 1e-12),
    Row("a user's own", Gain, smooth(3, 2, 16)),
]

every = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)

S = 9


def parameters(transform: Transform) -> list[Tensor]:
    return [p for p in transform.parameters() if p.requires_grad]


def widened(row: Row, share: float = 0.2) -> Transform:
    """Return the row's transformation in float64 with every width at a share of its bound (or of 1)."""
    transform = row.make().double()
    transform.set_widths({s.name: s.unit.to_person(share * min(s.upper, 1.0)) for s in transform.specs})
    return transform


@every
def test_zero_width_is_the_identity(row):
    views = row.make().double()(row.x, S, generator(0))
    assert (views - row.x[:, None]).abs().max().item() <= row.identity
    x = row.x.float()
    assert (row.make()(x, S, generator(0)) - x[:, None]).abs().max().item() <= (5e-6 if row.identity else 0)


@every
def test_a_width_above_zero_is_not(row):
    views = widened(row)(row.x, S, generator(0))
    assert (views - row.x[:, None]).abs().max().item() > 1e-3


@every
def test_draws_replay(row):
    transform = widened(row)
    first, again, other = (transform(row.x, S, generator(seed)) for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert transform.sampling == "grid" or not torch.equal(first, other)


@every
def test_shapes_dtype_and_device_are_kept(row):
    transform = widened(row)
    for x in (row.x, row.x.float()):
        views = transform(x, S, generator(0))
        assert views.shape == (len(x), S, *x.shape[1:])
        assert views.dtype == x.dtype
        assert views.device == x.device
    assert row.make()(row.x.float(), S, generator(0)).dtype == torch.float32


@every
def test_gradients_match_finite_differences(row):
    transform = widened(row)
    eps = transform.noise(len(row.x), S, generator(1)).double()
    weight = torch.randn(len(row.x), S, *row.x.shape[1:], generator=generator(2), dtype=torch.float64)
    value = lambda: (transform.act(row.x, eps) * weight).sum()  # noqa: E731
    grads = torch.autograd.grad(value(), parameters(transform))
    for parameter, grad in zip(parameters(transform), grads, strict=True):
        assert torch.allclose(grad, central_difference(value, parameter), rtol=1e-5, atol=1e-6)
        assert grad.abs().max() > 1e-3


@every
def test_gradients_at_zero_width_are_the_slopes_towards_positive_widths(row):
    transform = row.make().double()
    eps = transform.noise(len(row.x), S, generator(1)).double() * 0.9
    weight = torch.randn(len(row.x), S, *row.x.shape[1:], generator=generator(2), dtype=torch.float64)
    value = lambda: (transform.act(row.x, eps) * weight).sum()  # noqa: E731
    at_zero = value()
    grads = torch.autograd.grad(at_zero, parameters(transform))
    for parameter, grad in zip(parameters(transform), grads, strict=True):
        assert torch.isfinite(grad).all()
        assert grad.abs().max() > 1e-6, "a width that starts at 0 must be able to leave"
        with torch.no_grad():
            direction = torch.rand(parameter.shape, generator=generator(5), dtype=torch.float64)
            parameter += 1e-7 * direction
            slope = (value() - at_zero.detach()) / 1e-7
            parameter -= 1e-7 * direction
        assert row.kinked or torch.isclose(slope, (grad * direction).sum(), rtol=1e-3, atol=1e-4)


@every
def test_widths_come_back_as_they_were_set(row):
    transform = row.make().double()
    units = {spec.name: spec.unit for spec in transform.specs}
    assert transform.describe() == pytest.approx({n: u.to_person(0.0) for n, u in units.items()})
    wanted = {n: u.to_person(0.1 + 0.01 * k) for k, (n, u) in enumerate(units.items())}
    transform.set_widths(wanted)
    assert transform.describe() == pytest.approx(wanted)
    one = next(iter(wanted))
    transform.set_widths({one: units[one].to_person(0.3)})
    assert transform.describe() == pytest.approx(wanted | {one: units[one].to_person(0.3)})


@every
def test_bad_widths_are_refused(row):
    transform = row.make()
    spec = transform.specs[0]
    refused("must be at least", transform.set_widths, {spec.name: spec.unit.to_person(0.0) - 0.5})
    refused("must be at least", transform.set_widths, {spec.name: float("nan")})
    refused("must be one of", transform.set_widths, {"no such width": 1.0})
    for bounded in (s for s in transform.specs if s.upper < 100):
        with pytest.raises(InputError, match="must be at most"):
            transform.set_widths({bounded.name: bounded.unit.to_person(bounded.upper * 1.01)})


@every
def test_projection_brings_widths_back_and_leaves_good_ones(row):
    transform = widened(row)
    before = [p.detach().clone() for p in parameters(transform)]
    transform.project_()
    assert all(torch.allclose(p, b, rtol=1e-12) for p, b in zip(parameters(transform), before, strict=True))
    with torch.no_grad():
        for p in parameters(transform):
            p.mul_(1e3)
    transform.project_()
    uppers = torch.tensor([spec.upper for spec in transform.specs], dtype=torch.float64)
    assert (transform.eta.abs() <= uppers * (1 + 1e-9)).all()


@every
def test_widths_survive_copy_and_state_dict(row):
    transform, fresh = widened(row), row.make().double()
    fresh.load_state_dict(transform.state_dict())
    assert fresh.describe() == transform.describe() == copy.deepcopy(transform).describe()


@every
def test_names_are_unique_and_other_shapes_are_refused(row):
    transform = row.make()
    assert len(set(transform.names)) == len(transform.names) == len(transform.eta)
    refused("acts on", transform, torch.zeros(2, 2, 2, 2, 2), S, generator(0))
