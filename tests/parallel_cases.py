"""What one process and two compute alike: `python tests/parallel_cases.py FILE` writes the answers of two processes.

Every case takes a Fabric, or None for one process, and returns tensors and numbers by name.
"""

import sys

import torch
from torch import nn

from augury import Evidence, OrbitAverage, audit, amortize, intervals, learn
from augury.core.rng import generator
from augury.data.dataset import Dataset
from augury.data.unlabelled import Unlabelled
from augury.transforms.affine2d import Affine2d
from curvature_cases import filled

FEW = {"epochs": 3, "batch": 17, "evidence_images": 21, "eta_images": 7, "evidence_below": 9.0, "burn_in": 0}


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
        [f.values for b in spectrum for f in (b.A, b.G) if f is not None]
        if "structure" not in settings
        else spectrum
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
        widths = (
            {"widths": {"rotation": 20}} if method in ("augmented", "regularised", "data_augmented") else {}
        )
        found = learn(
            images(),
            model or net().float(),
            method,
            fabric=fabric,
            generators=("rotation", "translate_x"),
            **FEW | widths | settings,
        )
        values = {f"weights {k}": t for k, t in found.model.state_dict().items()}
        values |= {f"width {k}": torch.tensor(w.value) for k, w in found.invariance.widths.items()}
        values |= {f"low {k}": torch.tensor(w.low or 0.0) for k, w in found.invariance.widths.items()}
        if found.invariance.log_evidence is not None:
            values["log_evidence"] = torch.tensor(found.invariance.log_evidence)
        losses = torch.tensor([row["loss"] for row in found.metrics])
        return values | {"losses": losses, "score": torch.tensor(found.invariance.test_accuracy)}

    return case


CASES = {
    "climb": climb,
    "climb exactly": lambda fabric: climb(fabric, output="ggn", positions="expand", prior="layer"),
    "climb label": lambda fabric: climb(fabric, output="label"),
    "climb diag": lambda fabric: climb(fabric, structure="diag"),
    "climb full": lambda fabric: climb(fabric, structure="full"),
    "plain": learned("plain"),
    "lila": learned("lila"),
    "augerino": learned("augerino", samples=3),
    "augmented": learned("augmented", samples=3),
    "data_augmented": learned("data_augmented"),
    "regularised": learned("regularised"),
    "last_layer": learned("last_layer"),
    "ntk": learned("lila", evidence="ntk"),
}


def main(path: str, names: list[str]) -> None:
    from lightning_fabric import Fabric

    fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
    fabric.launch()
    found = {name: CASES[name](fabric) for name in names or CASES}
    torch.save(found, f"{path}.{fabric.global_rank}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
