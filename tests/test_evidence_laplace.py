"""What the evidence promises beside its value: batches, samples, seeds, memory, and errors that teach."""

import weakref

import pytest
import torch

from augury.core.errors import InputError
from augury.evidence import laplace as module
from augury.evidence.laplace import Laplace
from augury.evidence.likelihoods import Categorical
from evidence_cases import batches, data, likelihood, model, precisions, seeds
from refusal import refused


@pytest.mark.parametrize("structure", ["kron", "diag", "full"])
@pytest.mark.parametrize("output", ["ggn", "ef"])
@pytest.mark.parametrize("regression", [False, True])
def test_batch_size_does_not_change_the_answer(structure, output, regression):
    net, shape = model("images", S=4, sampling="grid")  # noise that does not depend on the batch
    x, y = data(shape, regression)
    laplace = Laplace(net, likelihood(regression), structure, output, "layer")
    delta = precisions(laplace)
    found = []
    for size in (1, 3, 7):
        fit = laplace.fit(batches(x, y, size), seeds)
        (slope,) = laplace.gradient(batches(x, y, size), laplace.preconditioner(fit, delta), seeds)
        found.append(torch.cat([laplace.log_evidence(fit, delta).detach()[None], slope]))
    torch.testing.assert_close(found[0], found[2], rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(found[1], found[2], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("structure", ["kron", "diag", "full"])
@pytest.mark.parametrize("regression", [False, True])
def test_a_sample_is_scaled_up_to_the_whole(structure, regression):
    net, shape = model("images", S=4, sampling="grid")
    x, y = data(shape, regression)
    laplace = Laplace(net, likelihood(regression), structure, "ggn", "tensor")
    delta = precisions(laplace)
    sample = laplace.fit([(x, y)], seeds, N=3 * len(x))
    whole = laplace.fit([(x, y)] * 3, seeds)
    torch.testing.assert_close(laplace.log_evidence(sample, delta), laplace.log_evidence(whole, delta))
    for key, P in laplace.preconditioner(whole, delta).items():
        torch.testing.assert_close(laplace.preconditioner(sample, delta)[key], P, rtol=1e-7, atol=1e-9)


def test_memory_is_that_of_one_batch(monkeypatch):
    net, shape = model("images")
    x, y = data(shape)
    laplace = Laplace(net, Categorical(), "kron", "ggn")
    tapes, alive = [], []

    def watched(*arguments):
        alive.append(sum(tape() is not None for tape in tapes))
        tape = record(*arguments)
        tapes.append(weakref.ref(tape.f))
        return tape

    record = module.record
    monkeypatch.setattr(module, "record", watched)
    fit = laplace.fit(batches(x, y, 2), seeds)
    laplace.gradient(batches(x, y, 2), laplace.preconditioner(fit, precisions(laplace)), seeds)
    assert alive == [0] * 8  # four batches in each pass; none is kept while the next is recorded


def test_nothing_is_left_behind_and_the_same_seeds_give_the_same_bits():
    net, shape = model("images")
    x, y = data(shape)
    laplace = Laplace(net, Categorical(), "kron", "mc")
    before = {name: t.clone() for name, t in net.state_dict().items()}
    fit = laplace.fit([(x, y)], seeds)
    laplace.gradient([(x, y)], laplace.preconditioner(fit, precisions(laplace)), seeds)
    assert all(torch.equal(t, before[name]) for name, t in net.state_dict().items())
    assert all(p.grad is None for p in net.parameters())
    assert not any(m._forward_hooks for m in net.modules())
    net, shape = model("images")
    x, y = data(shape)
    laplace = Laplace(net, Categorical())
    delta = precisions(laplace)
    first, second, other = (
        float(laplace.log_evidence(laplace.fit(batches(x, y, 3), lambda k, start=start: start + k), delta))
        for start in (7, 7, 8)
    )
    assert first == second
    assert first != other


UNKNOWN = {
    "structure": ("krn", "diag, full, kron", "kron"),
    "output": ("gng", "ef, ggn, label, mc, trio", "ggn"),
    "prior": ("layers", "layer, scalar, tensor", "layer"),
    "positions": ("reduced", "expand, reduce", "reduce"),
}


@pytest.mark.parametrize("option", UNKNOWN)
def test_unknown_names(option):
    given, names, meant = UNKNOWN[option]
    says = rf"^{option} must be one of {names}; got '{given}'\. Did you mean '{meant}'\?$"
    refused(says, Laplace, model()[0], Categorical(), **{option: given})
    refused(r"^layer must be one of 0, 2; got '3'\.$", Laplace, model()[0], Categorical(), only=["3"])


def test_frozen_networks_wrong_labels_and_no_data():
    net, _ = model()
    net.net.requires_grad_(False)
    refused("no trainable parameters", Laplace, net, Categorical())
    net, shape = model()
    x, y = data(shape)
    refused(r"labels must lie in 0 ... 2", Laplace(net, Categorical()).fit, [(x, y + 5)], seeds)
    with pytest.raises(InputError, match=r"regression needs outputs and targets of one shape"):
        Laplace(net, likelihood(True)).fit([(x, torch.zeros(len(x)))], seeds)
    refused("the evidence needs data", Laplace(model()[0], Categorical()).fit, [], seeds)
