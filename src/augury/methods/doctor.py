"""Plant a known invariance in the user's own data, and test whether it is found.

Every training input is transformed once, at random, within known widths; labels are kept. A method that works on these
data, with this network and this budget, must then find about these widths. A control learns from the original data:
widths that are large there too are not due to the planting.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from augury.config.learn import LearnConfig
from augury.core.errors import InputError
from augury.core.rng import generator, spawn
from augury.data.dataset import Dataset
from augury.data.rows import Rows, in_memory
from augury.data.variants import plant as plant_variant
from augury.methods.forecast import measure, total_seconds
from augury.methods.learn import learn
from augury.methods.prepare import GENERATORS_FOR, prepare
from augury.records.results import Record, Width
from augury.training.progress import Progress
from augury.transforms.base import Transform
from augury.transforms.vocabulary import build as build_transform

NEAR, PARTLY = (2 / 3, 4 / 3), 1 / 3
"""Share of a planted width, as eta, that counts as recovered, and as partly recovered."""
VERDICTS = ("recovered", "partly recovered", "not recovered", "found without planting")
EPOCHS = (5, 30)  # fewest and most epochs that a budget of seconds is spent on


@dataclass(frozen=True)
class Recovery(Record):
    """Whether a planted invariance was found."""

    planted: dict[str, float]  # the truth, in units, by width
    learned: dict[str, Width]  # what was learned from the planted data
    control: dict[str, Width] | None  # what was learned from the data as they are
    verdict: str  # one of `VERDICTS`
    why: str  # the figures behind it, in a sentence
    advice: str  # what to do about it
    method: str
    model: str
    images: int
    epochs: int  # passes over them
    seconds: float  # training time of all runs


def plant(data: Dataset, what: str | None, seed: int = 0) -> Dataset:
    """Plant an invariance in data of any kind."""
    if data.kind == "image" and data.task == "classification":
        return plant_variant(data, what or "rotated", seed)
    if data.kind not in GENERATORS_FOR:
        raise InputError(
            f"an invariance can be planted in images, signals, point clouds and coordinates; these data are of kind "
            f"'{data.kind}', and no transformation of theirs is known."
        )
    usual = {"signal": ("time_shift", data.input_shape[-1] / 4), "points": ("rotation_z", 180.0)}
    name, width = usual.get(data.kind, ("rotation", 180.0)) if what is None else (what, None)
    transform = build_transform(name, data.kind, data.input_shape)
    spec = transform.specs[0]
    truth = spec.unit.to_person(min(spec.upper, 0.5)) if width is None else width
    transform.set_widths(dict.fromkeys(transform.names, truth))
    rng = generator(seed)
    return replace(
        data,
        x_train=_moved(data.x_train, transform, spawn(rng)),
        x_test=_moved(data.x_test, transform, spawn(rng)),
        source=f"{data.source}, {name} planted",
        planted={**data.planted, **transform.describe()},
    )


@torch.no_grad()
def _moved(x: Tensor | Rows, transform: Transform, rng: torch.Generator) -> Tensor:
    return torch.cat([transform(part, 1, rng)[:, 0] for part in x.split(1000)]) if len(x) else in_memory(x)


def epochs_within(data: Dataset, seconds: float, runs: int, **asked: Any) -> int:
    """Return how many epochs a budget allows, from a few timed steps."""
    settings = dict(asked)
    ready = prepare(data, settings.pop("model", None), settings.pop("method", "lila"), None, settings)
    costs, N, M = measure(ready), len(data.x_train), len(data.x_test)

    def fits(config: LearnConfig) -> bool:
        return runs * total_seconds(config, N, M, costs) <= seconds

    fewest, most = EPOCHS[0], max(EPOCHS[1], ready.config.epochs)
    fitting = [e for e in range(fewest, most + 1) if fits(replace(ready.config, epochs=e))]
    return max(fitting, default=fewest)


def recover(
    data: Dataset,
    what: str | None = None,
    *,
    images: int | None = None,
    seconds: float | None = None,
    control: bool = False,
    callbacks: Progress | Sequence[Progress] = (),
    **asked: Any,
) -> Recovery:
    """Plant, learn, and compare; at most `images` examples, and epochs that fit into `seconds` if none are given."""
    if any(data.planted.values()):
        raise InputError(f"these data carry a planted truth already ({', '.join(data.planted)}); give plain data.")
    if images is not None and len(data.x_train) > images:
        data = data.subset(images, asked.get("seed", 0))
    planted = plant(data, what, asked.get("seed", 0))
    if seconds is not None and "epochs" not in asked:
        asked["epochs"] = epochs_within(planted, seconds, 2 if control else 1, **asked)
    truth = {name: value for name, value in planted.planted.items() if data.planted.get(name) != value}
    found = learn(planted, callbacks=callbacks, **asked)
    missing = sorted(set(truth) - set(found.invariance.widths))
    if missing:
        raise InputError(
            f"{missing[0]} was planted and must be among what is learned; got {', '.join(found.invariance.widths)}. "
            f"Add it to the generators."
        )
    beside = learn(data, callbacks=callbacks, **asked).invariance if control else None
    verdict, why, advice = judge(truth, found.invariance.widths, beside.widths if beside else None)
    return Recovery(
        truth, found.invariance.widths, None if beside is None else beside.widths, verdict, why, advice,
        found.config.method, found.config.model or "", len(data.x_train), found.config.epochs,
        found.invariance.seconds + (beside.seconds if beside else 0.0),
    )  # fmt: skip


def judge(
    truth: Mapping[str, float], learned: Mapping[str, Width], control: Mapping[str, Width] | None = None
) -> tuple[str, str, str]:
    """Return a verdict on whether planted widths were found, its figures, and advice."""
    share = {name: _share(learned[name], value) for name, value in truth.items()}
    before = {name: 0.0 if control is None else _share(control[name], value) for name, value in truth.items()}
    why = "; ".join(
        f"{name}: {_text(value, learned[name].unit)} planted, {_text(learned[name].value, learned[name].unit)} learned"
        + ("" if control is None else f", {_text(control[name].value, control[name].unit)} without planting")
        for name, value in truth.items()
    )
    if all(s >= NEAR[0] for s in before.values()):
        return VERDICTS[3], why, "The data seem to have this invariance already; plant another (--plant)."
    if all(NEAR[0] <= s <= NEAR[1] for s in share.values()):
        return VERDICTS[0], why, "A run with these settings can be trusted to find such an invariance."
    if all(s >= PARTLY and s - before[name] > PARTLY / 2 for name, s in share.items()):
        return VERDICTS[1], why, "Increase --seconds, --images or --epochs. A longer run goes further."
    return (
        VERDICTS[2],
        why,
        "Increase --seconds, --images or --epochs, or try another network (--model) or more views (-S).",
    )


def _share(width: Width, truth: float) -> float:
    """Return how much of the truth was learned, on the scale on which widths add up: logarithms for factors."""
    if width.unit == "factor":
        return math.log(max(width.value, 1.0)) / math.log(truth)
    return width.value / truth


def _text(value: float, unit: str) -> str:
    return f"x {value:.2f}" if unit == "factor" else f"{value:.3g} {unit}".strip()
