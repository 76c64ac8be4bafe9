"""Small networks of every kind of layer, and how to pass over them, for the curvature and evidence tests."""

import torch
from torch import nn

from augury.core.rng import generator
from augury.core.scalars import ScalarBias, ScalarScale
from augury.curvature.factors import OuterSum
from augury.curvature.structure import added
from augury.curvature.tape import covered_layers, record
from augury.evidence.laplace import STRUCTURES
from reference.curvature import averaged, lambdas, roots


def filled(net, seed=0, size=0.5):
    """The network in float64 and evaluation mode, every parameter and running statistic drawn afresh."""
    rng = generator(seed)
    net = net.double().eval()
    with torch.no_grad():
        for name, p in net.named_parameters():
            is_scale = p.ndim == 1 and not name.endswith("bias")  # of a norm, or a number: away from 0
            p.copy_(torch.randn(p.shape, generator=rng) * size * (0.3 if is_scale else 1.0) + is_scale)
        for name, b in net.named_buffers():
            if "running" in name:
                b.copy_(torch.rand(b.shape, generator=rng) + 0.5)
    return net


class Pool(nn.Module):
    """Mean over the axes after `keep`."""

    def __init__(self, keep=2):
        super().__init__()
        self.keep = keep

    def forward(self, x):
        return x.flatten(self.keep).mean(self.keep)


class MeanOverSequence(nn.Module):
    def forward(self, x):
        return x.mean(1)


class Twice(nn.Module):
    """One linear and one convolutional layer at two depths each, and a norm that is called three times."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv1d(2, 2, 3, padding=1), nn.GroupNorm(1, 2)
        self.hidden, self.head = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x):
        x = self.norm(self.conv(self.norm(self.conv(x).tanh()))).tanh()
        x = x.unflatten(2, (3, -1)).mean(3)
        x = self.norm(x).flatten(1)
        return self.head(self.hidden(self.hidden(x).tanh()).tanh())


class Unannounced(nn.Module):
    """In-place operations that no module announces."""

    def __init__(self):
        super().__init__()
        self.one, self.two, self.three = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x):
        h = self.one(x)
        h.relu_()
        z = self.two(h)
        z += h
        return self.three(z.tanh())


class Aside(nn.Module):
    """A layer whose output nobody uses: its Jacobian is zero."""

    def __init__(self):
        super().__init__()
        self.used, self.unused = nn.Linear(4, 3), nn.Linear(4, 2)

    def forward(self, x):
        self.unused(input=x)
        return self.used(input=x)


def _frozen():
    net = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.LayerNorm(5), nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3))
    for p in (net[0].weight, net[2].bias, net[3].bias):
        p.requires_grad_(False)
    return net


NETS = {
    "mlp": ((4,), lambda: nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))),
    "no bias": ((4,), lambda: nn.Sequential(nn.Linear(4, 5, bias=False), nn.Tanh(), nn.Linear(5, 3))),
    "partly frozen": ((4,), _frozen),
    "conv1d": ((2, 9), lambda: nn.Sequential(
        nn.Conv1d(2, 4, 3, stride=2, padding=1, groups=2), nn.Tanh(),
        nn.Conv1d(4, 3, 2, dilation=2, bias=False), nn.Tanh(), nn.Flatten(), nn.Linear(9, 3),
    )),
    "conv2d": ((2, 6, 5), lambda: nn.Sequential(
        nn.Conv2d(2, 4, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=2), nn.Tanh(),
        nn.Conv2d(4, 3, 2, padding="same", padding_mode="circular"), nn.Tanh(), Pool(), nn.Linear(3, 3),
    )),
    "conv3d": ((1, 4, 3, 4), lambda: nn.Sequential(
        nn.Conv3d(1, 2, 2, padding=1, padding_mode="reflect"), nn.Tanh(),
        nn.Conv3d(2, 4, (2, 1, 3), stride=(2, 1, 1), groups=2), nn.Tanh(), Pool(), nn.Linear(4, 3),
    )),
    "norms": ((2, 4, 3), lambda: nn.Sequential(
        nn.BatchNorm2d(2), nn.Conv2d(2, 4, 2), nn.GroupNorm(2, 4), nn.Tanh(), nn.LayerNorm((3, 2)), nn.Flatten(2),
        nn.BatchNorm1d(4), nn.Tanh(), Pool(), nn.LayerNorm(4, bias=False), nn.Linear(4, 3), nn.BatchNorm1d(3),
    )),
    "batchnorm3d": (
        (2, 2, 3, 2), lambda: nn.Sequential(nn.BatchNorm3d(2), nn.Tanh(), Pool(), nn.Linear(2, 3))
    ),
    "scalars": ((1, 3, 3), lambda: nn.Sequential(
        ScalarBias(), nn.Conv2d(1, 2, 2), ScalarScale(), nn.Tanh(), ScalarBias(), nn.Flatten(), nn.Linear(8, 3),
    )),
    "sequence": ((4, 3), lambda: nn.Sequential(
        nn.Linear(3, 4), nn.Tanh(), nn.LayerNorm((4, 4)), nn.Linear(4, 3), nn.Tanh(), MeanOverSequence(),
        nn.Linear(3, 3),
    )),
    "twice": ((2, 9), Twice),
    "inplace": ((1, 4, 4), lambda: nn.Sequential(
        nn.Conv2d(1, 3, 2), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(27, 4), nn.ReLU(inplace=True),
        nn.Linear(4, 3),
    )),
    "unannounced": ((4,), Unannounced),
    "unused": ((4,), Aside),
}  # fmt: skip
"""Shape of an input, and how to make the network; all have three outputs."""


def case(name, N=3, S=3, seed=0):
    """A network and N x S copies."""
    shape, make = NETS[name]
    return filled(make(), seed), torch.randn(N, S, *shape, generator=generator(seed + 1), dtype=torch.float64)


def statistics(structure, net, views, columns):
    """Totals of one pass over all views."""
    tape = record(net, views.flatten(0, 1), views.shape[1], structure.layers)
    totals = structure.inputs(tape)
    for column in columns:
        totals = added(totals, structure.outputs(tape, tape.gradients(column, create_graph=False, retain=True)))
    return totals


def dense(totals):
    """Statistics as plain tensors: sums of outer products as matrices, and the number n of rows of A beside them."""
    sums = {key: T for key, T in totals.items() if isinstance(T, OuterSum)}
    counts = {key.replace("/A", "/n"): torch.tensor(T.n) for key, T in sums.items() if key.endswith("/A")}
    return totals | {key: T.matrix() for key, T in sums.items()} | counts


def undensed(totals):
    """The inverse of `dense`, as `decompose` takes it."""
    out = {key: T for key, T in totals.items() if not key.endswith("/n")}
    for key in [key for key in out if key[-2:] in ("/A", "/G")]:
        out[key] = OuterSum((), totals[key], float(totals.get(key[:-1] + "n", 1.0)))
    return out


def fitted(kind, net, views, Lambda=None, **options):
    """A structure and its totals as tensors (default: exact curvature of a classification in the outputs)."""
    structure = STRUCTURES[kind](covered_layers(net), **options)
    Lambda = lambdas(averaged(net, views)) if Lambda is None else Lambda
    totals = dense(statistics(structure, net, views, roots(Lambda)))
    return structure, {name: T.detach() for name, T in totals.items()}
