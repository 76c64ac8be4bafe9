"""`augury.adapt`: from a hyper-extractor and a new task to a descriptor, a head and a plain network (paper C).

What must hold before an extractor is adapted: checked once, at the boundary.

The last step of every adaptation: a head on the features of a plain encoder, its scores and its bound.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from augury.config.hyper import AdaptConfig
from augury.core.errors import InputError
from augury.core.rng import generator
from augury.data.dataset import Dataset
from augury.evidence.bound import bounded_loss
from augury.evidence.head import Head, fit_head
from augury.methods.hyper.adapted_folder import check_folder, plan_of, save_adapted
from augury.methods.hyper.descriptor_search import FINE, Objective, choose_descriptor, finalists, to_levels
from augury.methods.hyper.scores import held_out, passed, score
from augury.methods.prepare import check_device
from augury.models.hypernetwork import HyperExtractor
from augury.records.results import Adaptation, Bound, Trial, in_words

Tell = Callable[[Mapping[str, float], float], None]
"""Told of every descriptor that was tried, and of its value."""


@dataclass(frozen=True, eq=False)
class Adapted:
    """What an adaptation leaves in the hands of its caller."""

    adaptation: Adaptation
    """Descriptor, scores, bound: plain data."""
    model: nn.Module
    """A plain network from inputs to logits or numbers, in evaluation mode: nothing in it is generated any more."""
    config: AdaptConfig
    """The settings."""


def adapt(
    extractor: HyperExtractor | str | Path,
    data: Any,
    *,
    descriptor: Sequence[float | int] | Mapping[str, float | int] | Tensor | None = None,
    run: str | Path | None = None,
    overwrite: bool = False,
    origin: str | None = None,
    tell: Tell | None = None,
    **settings: Any,
) -> Adapted:
    """Learn the invariance descriptor and the head of a new task on a frozen extractor.

    Parameters
    ----------
    extractor
        A `HyperExtractor`, or its file.
    data
        A `Dataset`, or anything that `augury.load` reads; classification or regression.
    descriptor
        Given, only the head is learned.
    run
        Folder for what was learned and the adapted model; nothing is written without.
    overwrite
        Replace what stands in the folder.
    origin
        Where the extractor came from, for the record; its file or its encoder unless told.
    tell
        Told of every descriptor that was tried.
    settings
        Any field of `AdaptConfig`: criterion="loss", levels=2, ...

    Returns
    -------
    Adapted
        The record, and the adapted model.
    """
    config = AdaptConfig.of(settings)
    check_device(config.device)
    folder = None if run is None else check_folder(Path(run), overwrite=overwrite)
    net = extractor if isinstance(extractor, HyperExtractor) else _load(extractor)
    dataset = data if isinstance(data, Dataset) else _read(data)
    check_task(dataset, net.input_shape)
    given = None if descriptor is None else net.descriptor(_floats(descriptor))
    origin = origin or (net.encoder_name if isinstance(extractor, HyperExtractor) else str(extractor))
    done = _adapted(net, dataset, config, given, tell)
    adaptation = replace(done.adaptation, extractor=origin, run=None if folder is None else str(folder))
    if folder is not None:
        plan = plan_of(net.encoder_name, net.input_shape, net.features, dataset.n_outputs)
        save_adapted(folder, done.model, adaptation, config.to_json(), plan)
    return replace(done, adaptation=adaptation)


def _adapted(
    net: HyperExtractor, data: Dataset, config: AdaptConfig, given: Tensor | None, tell: Tell | None
) -> Adapted:
    """Choose the descriptor on a sample, make the network of it, and fit the head to everything."""
    start = time.perf_counter()
    x, y = _sample(data, config, config.images)
    objective = Objective(net.to(config.device), x, y, data.n_outputs, config)
    scouts = _scouts(net, data, config) if given is None else None
    watched = scouts or objective
    if tell is not None:
        watched.tell = lambda point: tell(_named(net, point.i), point.value)
    if given is not None:
        i, levels = net.descriptor(given), 1
    else:
        i, levels = _choose(net, objective, scouts, config), config.levels or FINE
    with calibrated(net, x):
        encoder = net.materialise(i)
    whole = len(x) == len(data.x_train)
    found = read_out(encoder, data, config, objective.solved(i) if whole else None)
    adaptation = record(
        found,
        data,
        config,
        levels**net.K,
        start,
        descriptor=_named(net, i),
        words=in_words(_named(net, i)),
        criterion=config.criterion if given is None else "given",
        levels=config.levels if given is None else None,
        trials=tuple(Trial(_named(net, p.i), p.value) for p in watched.points),
    )
    return Adapted(adaptation, found.model, config)


def _scouts(net: HyperExtractor, data: Dataset, config: AdaptConfig) -> Objective | None:
    """Return the objective of a few examples that look around first; none where there are no more to decide by."""
    if config.criterion != "evidence" or min(len(data.x_train), config.images) <= config.scouts:
        return None
    return Objective(net, *_sample(data, config, config.scouts), data.n_outputs, config)


def _choose(
    net: HyperExtractor, objective: Objective, scouts: Objective | None, config: AdaptConfig
) -> Tensor:
    like = net.descriptor([0.0] * net.K)
    candidates = []
    if scouts is not None:
        with calibrated(net, scouts.x):
            candidates = [point.i for point in finalists(scouts, net.K, like)]
    with calibrated(net, objective.x):
        if candidates:
            best = objective.best([objective.at(i) for i in candidates])
        else:
            best = choose_descriptor(objective, net.K, like)
        return to_levels(objective, best.i, config.levels or FINE)


@contextmanager
def calibrated(net: HyperExtractor, x: Tensor) -> Iterator[None]:
    """Let batch normalisation see these inputs, and afterwards whatever it saw before."""
    before = net.reference
    net.calibrate(x)
    try:
        yield
    finally:
        net.calibrate(before)


def _sample(data: Dataset, config: AdaptConfig, most: int) -> tuple[Tensor, Tensor]:
    """Return examples that choose the descriptor: all of them, or so many drawn at random."""
    x, y = data.x_train, data.y_train
    if len(x) > most:
        keep = torch.randperm(len(x), generator=generator(config.seed))[:most]
        if data.task == "regression" or len(torch.unique(y[keep])) > 1:
            x, y = x[keep], y[keep]
    return x.to(config.device), y.to(config.device)


def _floats(descriptor: Sequence[float | int] | Mapping[str, float | int] | Tensor) -> Any:
    if isinstance(descriptor, Tensor):
        return descriptor
    if isinstance(descriptor, Mapping):
        return {name: float(value) for name, value in descriptor.items()}
    return [float(value) for value in descriptor]


def _named(net: HyperExtractor, i: Tensor) -> dict[str, float]:
    return {name: round(value, 6) for name, value in zip(net.groups, i.tolist(), strict=True)}


def _load(path: str | Path) -> HyperExtractor:
    from augury.training.saved_extractor import load_extractor

    return load_extractor(path)


def _read(data: Any) -> Dataset:
    from augury.data.load import load  # readers for every format: only where the data are not read yet

    return load(data)


def check_task(data: Dataset, input_shape: tuple[int, ...], what: str = "extractor") -> None:
    """Raise unless the data are images of the shape that an extractor takes, with something to learn in them."""
    if data.input_shape != tuple(input_shape):
        raise InputError(
            f"the {what} takes inputs of shape {list(input_shape)}; this task's are {list(data.input_shape)}. "
            f"{_hint(data.input_shape, input_shape)}"
        )
    if len(data.x_train) < 2:
        raise InputError(f"adapting needs at least two training examples; got {len(data.x_train)}.")
    if data.task == "classification" and len(torch.unique(data.y_train)) < 2:
        only = data.class_names[int(data.y_train[0])]
        raise InputError(
            f"a classification task needs training examples of at least two classes; all {len(data.y_train)} are "
            f"of class '{only}'. Add examples of another class."
        )
    if data.task == "regression" and not bool((data.y_train.std(0, correction=0) > 0).any()):
        raise InputError("a regression task needs targets that differ; all of these are alike.")


def _hint(given: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    if len(given) == len(wanted) == 3 and given[0] != wanted[0]:
        return "Give images with as many channels as it was pre-trained on."
    return f"Resize them (--size {wanted[-1]}), or pre-train an extractor for this size."


SCORE = {"classification": "accuracy", "regression": "R^2"}


@dataclass(frozen=True, eq=False)
class Readout:
    """A head on features."""

    model: nn.Module
    """Encoder and head, in evaluation mode."""
    head: Head
    """The head, with its evidence."""
    features: Float[Tensor, "N d"]
    """Of the training inputs."""


def read_out(encoder: nn.Module, data: Dataset, config: AdaptConfig, known: object = None) -> Readout:
    """Fit a head to all training examples."""
    features = passed(encoder, data.x_train)
    y = data.y_train.to(features.device)
    head = known if isinstance(known, Head) else None
    if head is None:
        head = fit_head(features, y, data.n_outputs, tolerance=config.tolerance)
    return Readout(nn.Sequential(encoder, head.linear()).eval().requires_grad_(False), head, features)


def record(
    found: Readout, data: Dataset, config: AdaptConfig, descriptors: int, start: float, **facts: Any
) -> Adaptation:
    """Score a readout and write down all that is known of it."""
    seconds, head = time.perf_counter() - start, found.head
    y = data.y_train.to(found.features.device)
    outputs = found.features.double() @ head.weight.T + head.bias
    standardised = (outputs - head.centre) / head.scale
    targets = (y - head.centre) / head.scale if y.is_floating_point() else y
    risk = float(bounded_loss(standardised, targets).mean())
    loss = F.mse_loss(standardised, targets) if y.is_floating_point() else F.cross_entropy(outputs, y)
    estimate = None
    if config.folds:
        estimate = held_out(found.features, y, head, config.folds, generator(config.seed))
    train = score(outputs, y)
    on_test = score(passed(found.model, data.x_test).cpu(), data.y_test) if len(data.x_test) else None
    best = next(s for s in (on_test, estimate, train) if s is not None)
    where = "test" if on_test is not None else "held out" if estimate is not None else "training"
    return Adaptation(**{
        "descriptor": {},
        "score": best,
        "bound": Bound.of(risk, head.reach, head.norm, len(y), descriptors, config.failure),
        "seconds": seconds,
        "score_name": SCORE[data.task],
        "scored_on": where,
        "held_out": estimate,
        "train_score": train,
        "task": data.task,
        "log_evidence": float(head.log_evidence),
        "train_loss": float(loss),
        "delta": head.delta,
        "N": len(y),
        "features": found.features.shape[1],
        "data": data.source,
        **facts,
    })
