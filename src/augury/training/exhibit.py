"""Writes the exhibits of a run for its report: draws, routes through orbits with the model's predictions, and errors.

The examples are drawn with a fixed seed, from different classes if possible, and never by their results.
"""

import math
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from augury.core.files import write_text
from augury.core.rng import generator
from augury.core.units import Unit
from augury.data.dataset import Dataset
from augury.records.exhibits import BESIDE, EXHIBITS, VIEWS, Answers, Example, Exhibits, Route
from augury.training.evaluate import outputs_of
from augury.training.frames import Painter, dots_behind
from augury.transforms.base import Transform, independent
from augury.transforms.compose import Compose, Correlated
from augury.transforms.finite_groups import FiniteGroup

SHOWN, DRAWS = 5, 9  # examples, and draws from the learned distribution for each
TOP, CONFUSED, CLASSES, PAIRS = 3, 12, 30, 300
"""Classes named at a step; most frequent errors; largest confusion matrix; pairs in regression."""
CHUNK = 25  # inputs in one forward pass: an orbit average makes many views of each
STEPS = 25  # frames of a route: odd, so that the input itself is one of them; steps of 15 degrees for a full turn
WIDTHS = 2  # largest number of widths that get their own route
NEAR = 0.25  # smallest reach of a route, as eta: an eighth of the image, a factor of 1.28
TOGETHER = "all widths together"


def write_exhibits(
    folder: Path,
    model: nn.Module,
    transform: Transform | None,
    data: Dataset,
    outputs: Float[Tensor, "M D"] | None,
    epoch: int = 0,
) -> None:
    part, x, y, index = _examples(data)
    behind = dots_behind(data.x_train, data.y_train, len(data.class_names)) if data.kind == "coordinates" else ()
    painter = Painter(folder / VIEWS, data.kind, data.x_train, behind)
    walks = [] if transform is None else orbit_walks(transform, x)
    galleries = [painter.gallery(f"orbit{k}", walk.views) for k, walk in enumerate(walks)]
    shown = [(w, g) for w, g in zip(walks, galleries, strict=True) if g is not None]
    routes = tuple(Route(w.name, w.unit, w.at, w.learned, gallery) for w, gallery in shown)
    draws = None
    if transform is not None:
        there = _on_device_of(transform, x)
        eps = independent(len(x), DRAWS, transform.noise_dim, generator(1)).to(there)
        with torch.no_grad():
            draws = painter.gallery("draws", torch.cat([there[:, None], transform.act(there, eps)], dim=1))
    if data.task == "classification":
        examples = [Example(i, label=data.class_names[c]) for i, c in zip(index.tolist(), y.tolist(), strict=True)]
    else:
        pairs = zip(index.tolist(), y.flatten(1)[:, :TOP].tolist(), strict=True)
        examples = [Example(i, target=tuple(targets)) for i, targets in pairs]
    exhibits = Exhibits(
        kind=data.kind,
        task=data.task,
        part=part,
        class_names=data.class_names,
        examples=tuple(examples),
        routes=routes,
        answers=_answers("this model", model, [w for w, _ in shown], y, data.task),
        draws=draws,
        epoch=epoch,
        **_errors(data, outputs),
    )
    write_text(folder / VIEWS / EXHIBITS, exhibits.dumps(None))


def write_beside(folder: Path, name: str, model: nn.Module, transform: Transform, data: Dataset) -> None:
    """Write the predictions of another model along the same routes."""
    _, x, y, _ = _examples(data)
    answers = _answers(name, model, orbit_walks(transform, x), y, data.task)
    write_text(folder / VIEWS / BESIDE, answers.dumps(None))


def _on_device_of(transform: Transform, x: Tensor) -> Tensor:
    return x.to(next((p.device for p in transform.parameters()), x.device))


def _examples(data: Dataset) -> tuple[str, Tensor, Tensor, Int[Tensor, " B"]]:
    """Draw some inputs, from different classes if possible."""
    part = "test" if len(data.x_test) else "train"
    x, y = (data.x_test, data.y_test) if len(data.x_test) else (data.x_train, data.y_train)
    order = torch.randperm(len(x), generator=generator(0))
    if data.task == "classification":
        firsts: dict[int, int] = {}
        for i in order.tolist():
            firsts.setdefault(int(y[i]), i)
        chosen = list(firsts.values())[:SHOWN]
        order = torch.tensor(chosen + [i for i in order.tolist() if i not in chosen])
    order = order[:SHOWN]
    return part, x[order], y[order], order


def _answers(name: str, model: nn.Module, walks: "list[Walk]", y: Tensor, task: str) -> Answers:
    outputs = [outputs_of(model, w.views.flatten(0, 1), CHUNK).unflatten(0, w.views.shape[:2]) for w in walks]
    if task == "regression":
        return Answers(name, values=tuple(_rounded(f[..., :TOP]) for f in outputs))
    chances = [f.float().softmax(-1) for f in outputs]
    top = [p.topk(min(TOP, p.shape[-1]), dim=-1) for p in chances]
    own = [p[torch.arange(len(y)), :, y] for p in chances]
    return Answers(
        name,
        classes=tuple(t.indices.tolist() for t in top),
        chances=tuple(_rounded(t.values) for t in top),
        truth=tuple(_rounded(p) for p in own),
    )


def _rounded(values: Tensor) -> list:
    return list((values.double() * 1e4).round().div(1e4).tolist())


def _errors(data: Dataset, outputs: Tensor | None) -> dict:
    if outputs is None:
        return {}
    if data.task == "regression":
        keep = torch.linspace(0, len(outputs) - 1, min(PAIRS, len(outputs))).round().long()
        pairs = torch.stack([data.y_test[keep, 0].float(), outputs[keep, 0].float()], dim=1)
        return {"tested": len(outputs), "pairs": tuple(_rounded(pairs))}
    C = data.n_outputs
    counts = torch.bincount(data.y_test * C + outputs.argmax(1), minlength=C * C).reshape(C, C)
    wrong = counts.clone().fill_diagonal_(0).flatten()
    most = wrong.topk(min(CONFUSED, len(wrong)))
    ranked = zip(most.indices.tolist(), most.values.tolist(), strict=True)
    mistakes = tuple([i // C, i % C, n] for i, n in ranked if n > 0)
    whole = tuple(counts.tolist()) if C <= CLASSES else ()
    return {"tested": len(outputs), "confusion": whole, "confused": mistakes}


@dataclass(frozen=True, eq=False)
class Walk:
    """A route through the orbits of some inputs: along one width, or along all of them."""

    name: str  # the width, or `TOGETHER`
    unit: str
    at: tuple[float, ...]  # position of each step
    learned: float | None  # the learned width; None along all of them
    views: Float[Tensor, "B S ..."]  # the inputs at each step


@torch.no_grad()
def orbit_walks(transform: Transform, x: Float[Tensor, "B ..."]) -> list[Walk]:
    """Return a route along each of the largest widths, then one along all together."""
    x, found = _on_device_of(transform, x), []
    for part in list(transform.parts) if isinstance(transform, Compose) else [transform]:
        assert isinstance(part, Transform)
        found += [(part, k, eta) for k, eta in enumerate(part.eta.detach().abs().tolist())]
    own = [one for one in found if isinstance(one[0], FiniteGroup) or one[0].noise_dim == len(one[0].specs)]
    walks = [_along(x, *one) for one in sorted(own, key=lambda one: -one[2])[:WIDTHS]]
    if sum(eta > 0 for _, _, eta in found) > 1:
        walks.append(_together(transform, x))
    return walks


def _along(x: Tensor, part: Transform, k: int, eta: float) -> Walk:
    # The other widths are zero. The route goes up to twice as far as was learned, so that one sees where predictions
    # change; angles make the full turn. A finite group shows its elements.
    spec = part.specs[k]
    learned = spec.unit.to_person(eta)
    if isinstance(part, FiniteGroup):
        orbit = part.orbit(x)
        return Walk(spec.name, "element", tuple(map(float, range(part.order))), learned, orbit)
    if isinstance(part, Correlated):
        part = part.transform
    reach = math.pi if spec.upper == math.pi else min(spec.upper, max(2 * eta, NEAR))
    part = deepcopy(part)
    part.set_widths({s.name: s.unit.to_person(0.0) for s in part.specs})
    part.set_widths({spec.name: spec.unit.to_person(reach)})
    first = 0.0 if spec.name in part.one_way else -1.0
    t = torch.linspace(first, 1.0, STEPS, dtype=x.dtype, device=x.device)
    eps = t.new_zeros(len(x), STEPS, part.noise_dim)
    eps[:, :, k] = t
    at = tuple(signed(spec.unit, reach * step) for step in t.tolist())
    return Walk(spec.name, spec.unit.symbol, at, learned, part.act(x, eps))


def signed(unit: Unit, eta: float) -> float:
    """Return a signed step in a unit; the opposite of a factor is its inverse."""
    size = unit.to_person(abs(eta))
    if unit.symbol == "factor":
        return round(size if eta >= 0 else 1 / size, 4)
    return round(math.copysign(size, eta), 4) + 0.0


def _together(transform: Transform, x: Tensor) -> Walk:
    # Inside the learned distribution, on the closed curve eps_k(t) = sin(2 pi (m_k t + k / K)), m_k = 1, 2, 1, 2, ...
    K = transform.noise_dim
    t, k = torch.arange(STEPS, device=x.device)[:, None] / STEPS, torch.arange(K, device=x.device)
    eps = torch.sin(2 * math.pi * ((1 + k % 2) * t + k / K)).to(x)
    views = transform.act(x, eps.expand(len(x), STEPS, K))
    return Walk(TOGETHER, "", tuple(map(float, range(1, STEPS + 1))), None, views)
