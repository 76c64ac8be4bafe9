"""Writes what a run leaves to be looked at: draws, orbits with the model's answers, and its errors.

The examples are drawn by a fixed seed, from different classes where there are some, and never by how well they look.
"""

import json
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from augury.core.files import write_text
from augury.core.rng import generator
from augury.data.dataset import Dataset
from augury.exhibits import BESIDE, EXHIBITS, VIEWS, Answers, Example, Exhibits, Route
from augury.records import Record
from augury.training.evaluate import outputs_of
from augury.training.frames import Painter, dots_behind
from augury.training.routes import Walk, walks
from augury.transforms.base import Transform
from augury.transforms.noise import independent

SHOWN, DRAWS = 5, 9
"""Examples, and draws from the learned distribution for each."""
TOP, CONFUSED, CLASSES, PAIRS = 3, 12, 30, 300
"""Classes named at a step; most frequent mistakes; classes up to which all are counted; pairs in regression."""
CHUNK = 25
"""Inputs in one forward pass: an orbit average makes many views of each."""


def leave_exhibits(
    folder: Path,
    model: nn.Module,
    transform: Transform | None,
    data: Dataset,
    outputs: Float[Tensor, "M D"] | None,
    epoch: int = 0,
) -> None:
    """Write the exhibits of a run."""
    part, x, y, index = _examples(data)
    behind = dots_behind(data.x_train, data.y_train, _classes(data)) if data.kind == "coordinates" else ()
    painter = Painter(folder / VIEWS, data.kind, data.x_train, behind)
    found = [] if transform is None else walks(transform, _beside(x, transform))
    galleries = [painter.gallery(f"orbit{k}", walk.views) for k, walk in enumerate(found)]
    shown = [(w, g) for w, g in zip(found, galleries, strict=True) if g is not None]
    routes = tuple(Route(w.name, w.unit, w.at, w.learned, gallery) for w, gallery in shown)
    draws = None if transform is None else painter.gallery("draws", _draws(transform, x))
    exhibits = Exhibits(
        kind=data.kind,
        task=data.task,
        part=part,
        class_names=data.class_names,
        examples=tuple(_example(data, y[k], int(i)) for k, i in enumerate(index)),
        routes=routes,
        answers=_answers("this model", model, [w for w, _ in shown], y, data.task),
        draws=draws,
        epoch=epoch,
        **_errors(data, outputs),
    )
    _write(folder / VIEWS / EXHIBITS, exhibits)


def leave_beside(folder: Path, name: str, model: nn.Module, transform: Transform, data: Dataset) -> None:
    """Write what another model says along the same orbits."""
    _, x, y, _ = _examples(data)
    found = walks(transform, _beside(x, transform))
    _write(folder / VIEWS / BESIDE, _answers(name, model, found, y, data.task))


def _write(path: Path, record: Record) -> None:
    write_text(path, json.dumps(record.to_json(), allow_nan=False, separators=(",", ":")) + "\n")


def _classes(data: Dataset) -> int:
    return len(data.class_names) if data.task == "classification" else 0


def _beside(x: Tensor, transform: Transform) -> Tensor:
    return x.to(next((p.device for p in transform.parameters()), x.device))


def _examples(data: Dataset) -> tuple[str, Tensor, Tensor, Int[Tensor, " B"]]:
    """Draw some inputs, from different classes as far as there are some."""
    part, x, y = (
        ("test", data.x_test, data.y_test) if len(data.x_test) else ("train", data.x_train, data.y_train)
    )
    order = torch.randperm(len(x), generator=generator(0))
    if data.task == "classification":
        firsts: dict[int, int] = {}
        for i in order.tolist():
            firsts.setdefault(int(y[i]), i)
        chosen = list(firsts.values())[:SHOWN]
        order = torch.tensor(chosen + [i for i in order.tolist() if i not in chosen])
    order = order[:SHOWN]
    return part, x[order], y[order], order


def _example(data: Dataset, y: Tensor, index: int) -> Example:
    if data.task == "classification":
        return Example(index, label=data.class_names[int(y)])
    return Example(index, target=tuple(y.flatten()[:TOP].tolist()))


@torch.no_grad()
def _draws(transform: Transform, x: Tensor) -> Tensor:
    """Return every input as it is, then draws from the distribution."""
    x = _beside(x, transform)
    eps = independent(len(x), DRAWS, transform.noise_dim, generator(1)).to(x)
    return torch.cat([x[:, None], transform.act(x, eps)], dim=1)


def _answers(name: str, model: nn.Module, found: list[Walk], y: Tensor, task: str) -> Answers:
    """Ask a model at every step of every route."""
    spoken = [outputs_of(model, w.views.flatten(0, 1), CHUNK).unflatten(0, w.views.shape[:2]) for w in found]
    if task == "regression":
        return Answers(name, values=tuple(_rounded(f[..., :TOP]) for f in spoken))
    chances = [f.float().softmax(-1) for f in spoken]
    top = [p.topk(min(TOP, p.shape[-1]), dim=-1) for p in chances]
    own = [p[torch.arange(len(y)), :, y] for p in chances]
    return Answers(
        name,
        classes=tuple(t.indices.tolist() for t in top),
        chances=tuple(_rounded(t.values) for t in top),
        truth=tuple(_rounded(p) for p in own),
    )


def _rounded(values: Tensor) -> list:
    rounded: list = (values.double() * 1e4).round().div(1e4).tolist()
    return rounded


def _errors(data: Dataset, outputs: Tensor | None) -> dict:
    if outputs is None:
        return {}
    if data.task == "regression":
        keep = torch.linspace(0, len(outputs) - 1, min(PAIRS, len(outputs))).round().long()
        pairs = torch.stack([data.y_test[keep, 0].float(), outputs[keep, 0].float()], dim=1)
        return {"tested": len(outputs), "pairs": tuple(_rounded(pairs))}
    C = _classes(data)
    flat = torch.bincount(data.y_test * C + outputs.argmax(1), minlength=C * C)
    counts = flat.reshape(C, C)
    wrong = counts.clone().fill_diagonal_(0).flatten()
    most = wrong.topk(min(CONFUSED, len(wrong)))
    mistakes = [
        [int(i) // C, int(i) % C, int(n)] for i, n in zip(most.indices, most.values, strict=True) if n > 0
    ]
    whole = tuple(counts.tolist()) if C <= CLASSES else ()
    return {"tested": len(outputs), "confusion": whole, "confused": tuple(mistakes)}
