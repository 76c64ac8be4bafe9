"""What one process and two compute alike: `python tests/parallel_cases.py FILE` writes the answers of two processes.

Every case takes a Fabric, or None for one process, and returns tensors and numbers by name.
"""

import signal
import sys
import time
from dataclasses import replace
from tempfile import TemporaryDirectory
from unittest.mock import patch

import torch
from torch import nn

from augury import Evidence, OrbitAverage, amortize, audit, intervals, learn
from augury.config.hyper import AmortizeConfig
from augury.core.errors import AuguryError, InputError
from augury.core.rng import generator
from augury.core.world import world_of
from augury.data.dataset import Dataset
from augury.methods.hyper.amortize import _contrastive
from augury.training import loop
from augury.training.loop import fit
from augury.training.progress import Progress
from augury.transforms.affine2d import Affine2d
from curvature_cases import filled

FEW = {
    "epochs": 3,
    "batch": 17,
    "evidence_images": 21,
    "eta_images": 7,
    "eta_steps": 8,
    "evidence_below": 9.0,
    "burn_in": 0,
}


def images(N=41, M=9):
    """Images of which some batches divide unevenly, and one has a single row."""
    x = torch.rand(N + M, 1, 8, 8, generator=generator(1))
    y = (x[:, 0, :4].mean((1, 2)) > x[:, 0, 4:].mean((1, 2))).long()
    return Dataset(x[:N], y[:N], x[N:], y[N:], class_names=("a", "b"))


def net():
    made = nn.Sequential(
        nn.Conv2d(1, 3, 3, stride=2), nn.Tanh(), nn.Flatten(), nn.Linear(27, 12), nn.Tanh(), nn.Linear(12, 2)
    )
    return filled(made, size=0.3)


def climb(fabric, **settings):
    """The evidence in float64: factors, values, gradients, one step, one pass over all data."""
    data = images()
    x, y = data.x_train.double(), data.y_train
    model = OrbitAverage(net(), Affine2d((8, 8), ["rotation", "translate_x"]).double(), samples=3)
    with torch.no_grad():
        model.transform.eta.copy_(torch.tensor([0.5, 0.2]))
    settings = {"evidence_images": 31, "eta_images": 9, "eta_steps": 3, **settings}
    evidence = Evidence(model, len(x), fabric=fabric, chunk=15, **settings)
    parts = evidence._chunks(x, y)
    fit = evidence.laplace.fit(parts, lambda k: k, 3)
    spectrum = fit.spectrum if settings.get("structure") != "full" else [fit.spectrum]
    factors = (
        [f.values for b in spectrum for f in (b.A, b.G) if f is not None] if "structure" not in settings else spectrum
    )
    found = {f"factor {k}": f for k, f in enumerate(factors)}
    found["log_likelihood"] = torch.tensor(fit.log_likelihood)
    found["gradient"] = evidence.gradient(x, y, 5)[0]
    for k in range(2):
        step = evidence.step((x, y), generator(k))
        found |= {f"{name} {k}": torch.tensor(value) for name, value in step.items()}
        found |= {f"eta {k}": model.transform.eta.detach().clone(), f"delta {k}": evidence.delta}
    return found | {"value": torch.tensor(evidence.value((x, y), generator(2)), dtype=torch.float64)}


def learned(method, model=None, **settings):
    def case(fabric):
        torch.manual_seed(0)
        given = {"widths": {"rotation": 20.0}} if method in ("augmented", "regularised", "data_augmented") else {}
        given |= {"generators": ("rotation", "translate_x"), **FEW, **settings}
        found = learn(images(), model or net().float(), method, fabric=fabric, **given)
        values = {f"weights {k}": t for k, t in found.model.state_dict().items()}
        values |= {f"width {k}": torch.tensor(w.value) for k, w in found.invariance.widths.items()}
        values |= {f"low {k}": torch.tensor(w.low or 0.0) for k, w in found.invariance.widths.items()}
        if found.invariance.log_evidence is not None:
            values["log_evidence"] = torch.tensor(found.invariance.log_evidence)
        losses = torch.tensor([row["loss"] for row in found.metrics])
        return values | {"losses": losses, "score": torch.tensor(found.invariance.test_accuracy)}

    return case


def contrastive(fabric):
    """In float64: Adam makes steps of rounding where a gradient is nearly 0."""
    config = AmortizeConfig.for_method("contrastive", epochs=2, batch=9)
    x = torch.rand(19, 3, 8, 8, generator=generator(1))
    body = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Tanh(), nn.Flatten(), nn.Linear(144, 5))
    learner, _, data = _contrastive(x, "rotation,color", None, filled(body).float(), config)
    learner.model.double()
    learner.heads.double()
    learner.join(world_of(fabric))
    found = fit(learner, replace(data, x_train=data.x_train.double()), config.loop())
    values = {f"weights {k}": t for k, t in learner.model.state_dict().items()}
    return values | {"losses": torch.tensor([row["loss"] for row in found.rows])}


def multitask(fabric):
    x = torch.rand(19, 3, 16, 16, generator=generator(1))
    given = {"epochs": 2, "batch": 9, "invariance": 0.1, "descriptors": {"a": (1, 0)}}
    found = amortize({"a": coloured(x)}, "rotation,color", "multitask", fabric=fabric, **given)
    return {f"weights {k}": t for k, t in found.extractor.state_dict().items()}


def coloured(x):
    y = (x[:, 0].mean((1, 2)) > x[:, 1].mean((1, 2))).long()
    return Dataset(x, y, x[:0], y[:0], class_names=("a", "b"))


def audited(fabric):
    found = audit(net().float(), images(), "rotation", batch=80, jacobian_images=7, fabric=fabric)
    values = {"LI": found.LI.value, "SI": found.SI.value, "relative": found.LI_relative, "accuracy": found.accuracy}
    values |= {"floor": found.noise_floor.LI.value, "sigma": found.sigma_max_jacobian}
    values |= {f"{name} {k}": s.LI.value for k in ("drift", "per_class") for name, s in getattr(found, k).items()}
    return {k: torch.tensor(v) for k, v in values.items()} | {"worst": torch.tensor([w.index for w in found.worst])}


def shared_error(fabric):
    """The first process says what only the last one met, such as data that its machine does not have."""
    world = world_of(fabric)
    try:
        with world.sharing_errors():
            if world.rank == world.size - 1:
                raise InputError("there is no d.npz here")
    except AuguryError as error:
        return {"said": torch.tensor("there is no d.npz here" in str(error))}
    return {"said": torch.tensor(False)}


def drifted(fabric):
    """A loop whose processes do not average their gradients is refused; one process has nobody to differ from."""
    data, rank = images(40), 0 if fabric is None else fabric.global_rank
    model = OrbitAverage(net().float(), Affine2d((8, 8), ["rotation"]), samples=2)
    with torch.no_grad():
        model.net[0].weight[0, 0, 0, 0] += 1e-3 * rank
    try:
        Evidence(model, 40, fabric=fabric, evidence_images=31).step((data.x_train, data.y_train), generator(0))
    except InputError as error:
        return {"said": torch.tensor("fabric.setup" in str(error))}
    return {"said": torch.tensor(fabric is None)}


def stopped(fabric):
    """A signal to the first process ends no process before the checkpoint is written, however long that takes."""
    world, saved, save = world_of(fabric), [], loop.save_checkpoint

    class Interrupt(Progress):
        def step(self, epoch, step, loss):
            signal.raise_signal(signal.SIGINT)

    def slowly(*args):
        time.sleep(1)
        save(*args)
        saved.append(time.monotonic())

    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    with patch.object(loop, "save_checkpoint", slowly), TemporaryDirectory() as place:
        run = world.objects(f"{place}/r")[0]
        try:
            learn(images(), net().float(), "plain", run=run, callbacks=Interrupt(), fabric=fabric, epochs=1)
            ended = 0.0
        except KeyboardInterrupt:
            ended = time.monotonic()
        written = world.objects(saved)[0]
    signal.signal(signal.SIGTERM, before)
    return {"in time": torch.tensor(len(written) == 1 and ended >= written[0])}


def own_loop(fabric):
    """A loop of one's own: a loader that deals the data out, weights held, widths climb; then intervals."""
    data = images(40)
    x, y = data.x_train.double(), data.y_train
    model = OrbitAverage(net(), Affine2d((8, 8), ["rotation"]).double(), samples=3)
    evidence = Evidence(model, len(x), fabric=fabric, evidence_images=31, eta_images=10, eta_rate=0.01)
    own = slice(None) if fabric is None else slice(fabric.global_rank, None, fabric.world_size)
    size = 10 if fabric is None else 5
    loader = list(zip(x[own].split(size), y[own].split(size), strict=True))
    rng, found = generator(0), {}
    for k in range(2):
        found |= {f"{n} {k}": torch.tensor(v, dtype=torch.float64) for n, v in evidence.step(iter(loader), rng).items()}
    found["evidence"] = torch.tensor(evidence.value(iter(loader), rng), dtype=torch.float64)
    ends = intervals(evidence, iter(loader), rng).widths["rotation"]
    return found | {
        "eta": model.transform.eta.detach(),
        "low": torch.tensor(ends.low),
        "value": torch.tensor(ends.value),
    }


CASES = {
    "climb": climb,
    "climb exactly": lambda fabric: climb(fabric, output="ggn", positions="expand", prior="layer"),
    "climb label": lambda fabric: climb(fabric, output="label"),
    "climb last layer": lambda fabric: climb(fabric, only=["5"]),
    "climb diag": lambda fabric: climb(fabric, structure="diag"),
    "climb full": lambda fabric: climb(fabric, structure="full"),
    "plain": learned("plain"),
    "lila": learned("lila"),
    "augerino": learned("augerino", samples=3),
    "augmented": learned("augmented", samples=3),
    "data_augmented": learned("data_augmented"),
    "regularised": learned("regularised"),
    "last_layer": learned("last_layer", eta_rate=0.05),  # at a higher rate rounding errors grow
    "weight_tied": learned("weight_tied", "mlp", generators=("C4",)),
    "ntk": learned("lila", evidence="ntk"),
    "invariant_weights": learned("invariant_weights", "rff_256"),
    "invariant_weights relu": learned("invariant_weights", "relu_256", posterior="adam"),
    "contrastive": contrastive,
    "multitask": multitask,
    "audit": audited,
    "own loop": own_loop,
    "shared error": shared_error,
    "drifted": drifted,
    "stopped": stopped,
}


def main(path: str, names: list[str]) -> None:
    from lightning_fabric import Fabric

    fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
    fabric.launch()
    found = {name: CASES[name](fabric) for name in names or CASES}
    torch.save(found, f"{path}.{fabric.global_rank}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
