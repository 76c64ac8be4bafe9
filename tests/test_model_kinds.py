"""Every kind of model: taken, or refused by its cause with what to do.

`ACCEPTED` (what, make, options of `augury.learn`, what is said) and `REFUSED` are in the table of the documentation.
"""

from types import SimpleNamespace

import jaxtyping
import pytest
import torch
from torch import nn

import augury
from augury.methods.prepare import prepare
from refusal import refused
from test_own_models import QUICK, SIDE, Output, ViT, data, small_net, trunk_and_head

pytestmark = pytest.mark.usefixtures("short_runs")


def after(*layers, width=SIDE * SIDE):
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(width, 8), *layers, nn.Linear(8, 2))


def convolution(*layers):
    return nn.Sequential(nn.Conv2d(1, 2, 3), *layers, nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(72, 2))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(SIDE, 4, batch_first=True), nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.lstm(x[:, 0])[0][:, -1])


class Tied(nn.Module):
    def __init__(self, share):
        super().__init__()
        self.first, self.second, self.head = nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 2)
        self.second = self.first if share == "layer" else self.second
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.head(self.second(self.first(x.flatten(1)).tanh()).tanh())


def frozen_tokens():
    net = ViT()
    for part in (net.cls, net.pos):
        part.requires_grad_(False)
    return net


def complex_weights():
    net = Output(lambda f: f.abs())
    net.layer = nn.Linear(64, 2, dtype=torch.complex64)
    return net


ACCEPTED = [
    ("linear layers, convolutions, GroupNorm, LayerNorm", lambda: convolution(nn.GroupNorm(1, 2)), {}, ""),
    ("dropout", lambda: after(nn.Dropout(0.5), nn.Tanh()), {}, "off in the evidence"),
    ("lazy layers", lambda: nn.Sequential(nn.Flatten(), nn.LazyLinear(2)), {}, ""),
    ("a layer that is called twice", lambda: Tied("layer"), {}, ""),
    ("fused attention; parameters of no layer frozen", frozen_tokens, {}, "the math kernel is chosen inside"),
    ("a vision transformer with evidence='ntk'", ViT, {"evidence": "ntk"},
     "no verdict where the bound is no better than a guess"),
    ("BatchNorm with batchnorm='evaluate'", lambda: convolution(nn.BatchNorm2d(2)), {"batchnorm": "evaluate"},
     "its running statistics are used"),
    ("a head on a frozen trunk, with BatchNorm", trunk_and_head, {}, "frozen BatchNorm keeps its statistics"),
    ("outputs with .logits, or a dictionary of logits", lambda: Output(lambda f: {"logits": f}), {}, ""),
    ("PReLU with evidence='ntk'", lambda: after(nn.PReLU()), {"evidence": "ntk"}, ""),
    ("tied tensors with evidence='ntk'", lambda: Tied("tensor"), {"evidence": "ntk"}, ""),
]  # fmt: skip

REFUSED = [
    ("parameters of no layer", ViT, "the network's own parameters \\(ViT: cls, pos\\)"),
    ("BatchNorm that trains", lambda: convolution(nn.BatchNorm2d(2)), "couples the samples of a batch"),
    ("LSTM, GRU", Recurrent, "no Kronecker factors for layer 'lstm' \\(LSTM: weight_ih_l0, .*evidence='ntk'"),
    ("other layers with parameters", lambda: after(nn.PReLU()), "layer '2' \\(PReLU: weight\\)"),
    ("two layers that share a tensor", lambda: Tied("tensor"), "'first' and 'second' share one tensor"),
    ("a final softmax", lambda: nn.Sequential(small_net(), nn.Softmax(1)), "ends in a softmax. Remove it"),
    ("several outputs", lambda: Output(lambda f: (f, f)), "it gave tuple of 2. .* returns net\\(x\\)\\[0\\]"),
    ("a dictionary without logits", lambda: Output(lambda f: {"out": f}), "dict of out. .*net\\(x\\)\\['out'\\]"),
    ("another object", lambda: Output(lambda f: SimpleNamespace(y=f)), "it gave SimpleNamespace"),
    ("outputs without gradients", lambda: Output(torch.detach), "outputs must have gradients"),
    ("another number of outputs", lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 3)), "2 outputs, one per class"),
    ("inputs of another shape", lambda: after(width=784), "cannot take inputs of shape \\[1, 8, 8\\]"),
    ("double or half precision", lambda: small_net().double(), "some are float64. Call net.float\\(\\)"),
    ("complex weights", complex_weights, "must be float32; some are complex64"),
    ("weights on the meta device", lambda: small_net().to("meta"), "must have values"),
    ("no weights to train", lambda: small_net().requires_grad_(False), "must have parameters to train"),
    ("a compiled or scripted module", lambda: torch.compile(small_net(), backend="eager"), "the original module"),
    ("a class", lambda: Output, "the class Output itself"),
    ("a function", lambda: lambda x: x, "whose weights cannot be seen"),
    ("a state dict", lambda: small_net().state_dict(), "state dict: weights without a network"),
    ("anything else", lambda: 3, "got int"),
]  # fmt: skip


def load(model, **options):
    """Prepare a run, which refuses what cannot be learned; nothing more is said of a model that is taken."""
    checks = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        prepare(data(), model, "lila", None, QUICK | options)
        return SimpleNamespace(describe=str)
    finally:
        jaxtyping.config.update("jaxtyping_disable", checks)


@pytest.mark.parametrize(("what", "make", "options", "said"), ACCEPTED, ids=[row[0] for row in ACCEPTED])
def test_taken_and_it_learns(what, make, options, said):
    learned = augury.learn(data(), make(), **QUICK | {"epochs": 1} | options)
    assert learned.invariance.log_evidence is not None


@pytest.mark.parametrize(("what", "make", "message"), REFUSED, ids=[row[0] for row in REFUSED])
def test_refused_by_its_cause(what, make, message):
    refused(message, load, make())


@pytest.mark.parametrize("wrong", [{"epochs": 2.0}, {"batch": None}, {"seed": "1"}])
def test_numbers_of_things_are_whole(wrong):
    refused(f"{next(iter(wrong))} must be a whole number", load, small_net(), **wrong)
