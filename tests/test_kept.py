"""Labels that change along a width, though averages over it do not."""

import math

import pytest
import torch
from torch import nn

from augury.evidence.ascent import Evidence
from augury.methods.kept import below_is_trained, confirmed, kept, right
from augury.models.orbit import OrbitAverage
from augury.records.results import Width
from augury.training.batches import Batches
from augury.training.learner import Findings
from augury.transforms.affine2d import AffineCoordinates

FOUND = Findings({"rotation": Width(50.0, "deg", 40.0, 60.0, "invariant")})


def sides(degrees):
    """Points of a circle, their label the side: averages of the logit over turns have its sign, single ones do not."""
    angle = (torch.arange(200, dtype=torch.float64) + 0.5) * (2 * math.pi / 200)
    x, y = torch.stack([angle.cos(), angle.sin()], 1), (angle.cos() < 0).long()
    net = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)).double()
    with torch.no_grad():
        net[0].weight.copy_(torch.eye(2))
        net[1].weight.copy_(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]))
    model = OrbitAverage(net, AffineCoordinates(generators=("rotation",)).double(), samples=8)
    model.transform.set_widths({"rotation": degrees})
    return model, x, y


@pytest.mark.parametrize(("degrees", "verdict"), [(72.0, "undecided"), (18.0, "invariant")])
def test_a_width_along_which_labels_change_is_not_called_invariant(degrees, verdict):
    model, x, y = sides(degrees)
    (spec,) = model.transform.specs
    with torch.no_grad():
        assert kept(model, x, y, spec) == pytest.approx(1 - degrees / 360, abs=0.03)
    found = confirmed(FOUND, Evidence(model, N=200), Batches(x, y, 50, x.device))
    assert found.widths["rotation"].verdict == verdict
    assert len(found.notes) == (verdict == "undecided") and model.transform.describe()["rotation"] == degrees


def test_features_that_are_fixed_are_not_asked():
    model, x, y = sides(72.0)
    model.net[0].weight.requires_grad_(False)
    assert not below_is_trained(model.net, x[:1])
    assert confirmed(FOUND, Evidence(model, N=200), Batches(x, y, 50, x.device)) == FOUND


def test_of_numbers_r_squared_takes_the_place_of_the_share():
    y = torch.tensor([[0.0], [2.0]])
    assert right(y[:, None].expand(2, 3, 1), y) == 1.0
    assert right(torch.tensor([[[0.0], [1.0]], [[2.0], [2.0]]]), y) == pytest.approx(1 - 0.25)
