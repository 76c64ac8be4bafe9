"""`augury.adapt`: from a hyper-extractor and a new task to a descriptor, a head and a plain network (paper C).

    i* = argmax_i log p(y | f(x; theta(i)))     by the evidence of a linear head, or i* = argmin_i of its training loss
    model = head after f(.; theta(i*))          no generated weights

The descriptor is chosen on a sample of the examples (`descriptor_search`); the head is fitted to all of them and scored
(`scores`).
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from augury.config.hyper import AdaptConfig
from augury.core.errors import InputError
from augury.core.rng import generator
from augury.data.dataset import Dataset
from augury.data.load import load
from augury.data.rows import in_memory
from augury.evidence.head import Head, fit_head
from augury.methods.hyper.descriptor_search import FINE, Objective, entry_margins, finalists, to_levels
from augury.methods.hyper.scores import bounded_loss, held_out, score
from augury.methods.prepare import check_device
from augury.models.hypernetwork import HyperExtractor
from augury.records.results import Adaptation, Bound, Trial, in_words
from augury.training.evaluate import outputs_of
from augury.training.run_folder import check_run, locked, open_run
from augury.training.saved_model import describe_adapted, load_model, save_model

CHUNK = 500  # inputs in one forward pass
Tell = Callable[[Mapping[str, float], float], None]  # called with every descriptor that was tried, and with its value


@dataclass(frozen=True, eq=False)
class Adapted:
    """What `adapt` returns."""

    adaptation: Adaptation
    """Descriptor, scores, bound: plain data."""
    model: nn.Module
    """A plain network from inputs to logits or numbers, in evaluation mode."""
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
        A `HyperExtractor`, the folder of a run of `amortize`, or its file.
    data
        A `Dataset`, or anything that `augury.load` reads; classification or regression.
    descriptor
        If given, only the head is learned.
    run
        Folder for the results and the adapted model. Default: nothing is written.
    overwrite
        Replace the run in that folder.
    origin
        Where the extractor came from, for the record. Default: its file or its encoder.
    tell
        Called with every descriptor that was tried, and with its value.
    settings
        Any field of `AdaptConfig`: criterion="loss", levels=2, ...

    Returns
    -------
    Adapted
        The record, and the adapted model.
    """
    config = AdaptConfig.of(**settings)
    check_device(config.device)
    if run is not None:
        check_run(Path(run), overwrite=overwrite, resume=False)
    net = extractor if isinstance(extractor, HyperExtractor) else load_extractor(extractor)
    dataset = data if isinstance(data, Dataset) else load(data)
    check_task(dataset, net.input_shape)
    given = None if descriptor is None else net.descriptor(descriptor)
    done = _adapted(net, dataset, config, given, tell)
    origin = origin or (net.encoder_name if isinstance(extractor, HyperExtractor) else str(extractor))
    adaptation = replace(done.adaptation, extractor=origin, run=None if run is None else str(run))
    if run is not None:
        with locked(Path(run)):
            folder = open_run(Path(run), config.to_json(), overwrite=overwrite)
            save_model(folder.model, done.model, describe_adapted(net, dataset))
            folder.write(adaptation)
    return replace(done, adaptation=adaptation)


def load_extractor(path: str | Path, encoder: nn.Module | None = None) -> HyperExtractor:
    """Build an extractor from the folder of a run of `amortize`, or from its file."""
    if not Path(path).exists():
        raise InputError(f"no extractor at {path}. Make one: augury amortize DATA --groups ...")
    net = load_model(path, encoder)
    if not isinstance(net, HyperExtractor):
        raise InputError(
            f"{path} holds a single trained model, and only an extractor can be adapted. "
            f"Make one: augury amortize DATA --groups ..."
        )
    return net


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
    i = _choose(net, objective, scouts, config) if given is None else given
    with net.calibrated(x):
        encoder = net.materialise(i)
        chosen = given is None and config.criterion == "evidence"
        margins = dict(zip(net.groups, entry_margins(objective, i), strict=True)) if chosen else {}
    features = outputs_of(encoder, data.x_train, CHUNK).to(config.device)
    head = objective.solved(i) if len(x) == len(data.x_train) else None
    if not isinstance(head, Head):
        y = data.y_train.to(features.device)
        head = fit_head(features, y, data.n_outputs, tolerance=config.tolerance)
    model = nn.Sequential(encoder, head.linear()).eval().requires_grad_(False)
    levels = (config.levels or FINE) if given is None else 1
    found = replace(
        _scored(model, head, features, data, config, levels**net.K, start),
        descriptor=_named(net, i),
        words=in_words(_named(net, i), margins),
        margins=margins,
        criterion=config.criterion if given is None else "given",
        levels=config.levels if given is None else None,
        trials=tuple(Trial(_named(net, p.i), p.value) for p in watched.points),
    )
    return Adapted(found, model, config)


def _scouts(net: HyperExtractor, data: Dataset, config: AdaptConfig) -> Objective | None:
    """Return the objective of a smaller sample for the first search; None if there are no more examples."""
    if config.criterion != "evidence" or min(len(data.x_train), config.images) <= config.scouts:
        return None
    return Objective(net, *_sample(data, config, config.scouts), data.n_outputs, config)


def _choose(net: HyperExtractor, objective: Objective, scouts: Objective | None, config: AdaptConfig) -> Tensor:
    like = net.descriptor([0.0] * net.K)
    candidates = []
    if scouts is not None:
        with net.calibrated(scouts.x):
            candidates = [point.i for point in finalists(scouts, net.K, like)]
    with net.calibrated(objective.x):
        last = [objective.at(i) for i in candidates] or finalists(objective, net.K, like)
        return to_levels(objective, objective.best(last).i, config.levels or FINE)


def _sample(data: Dataset, config: AdaptConfig, most: int) -> tuple[Tensor, Tensor]:
    """Return the examples that choose the descriptor: all, or some drawn at random."""
    x, y = data.x_train, data.y_train
    if len(x) > most:
        keep = torch.randperm(len(x), generator=generator(config.seed))[:most]
        if data.task == "regression" or len(torch.unique(y[keep])) > 1:
            x, y = x[keep], y[keep]
    return in_memory(x).to(config.device), y.to(config.device)


def _named(net: HyperExtractor, i: Tensor) -> dict[str, float]:
    return {name: round(value, 6) for name, value in zip(net.groups, i.tolist(), strict=True)}


def check_task(data: Dataset, input_shape: tuple[int, ...]) -> None:
    """Raise unless the data are images of the shape that an extractor takes, with something to learn in them."""
    if data.input_shape != tuple(input_shape):
        resize = f"Resize them (--size {input_shape[-1]}), or pre-train an extractor for this size."
        if len(data.input_shape) == len(input_shape) == 3 and data.input_shape[0] != input_shape[0]:
            resize = "Give images with as many channels as it was pre-trained on."
        raise InputError(
            f"the extractor takes inputs of shape {list(input_shape)}; this task's are {list(data.input_shape)}. "
            f"{resize}"
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


def _scored(
    model: nn.Module, head: Head, features: Tensor, data: Dataset, config: AdaptConfig, descriptors: int, start: float
) -> Adaptation:
    """Score a head on its features and return the record."""
    seconds = time.perf_counter() - start
    y = data.y_train.to(features.device)
    outputs = features.double() @ head.weight.T + head.bias
    standardised = (outputs - head.centre) / head.scale
    targets = (y - head.centre) / head.scale if y.is_floating_point() else y
    risk = float(bounded_loss(standardised, targets).mean())
    loss = F.mse_loss(standardised, targets) if y.is_floating_point() else F.cross_entropy(outputs, y)
    estimate = held_out(features, y, head, config.folds, generator(config.seed)) if config.folds else None
    train = score(outputs, y)
    on_test = score(outputs_of(model, data.x_test, CHUNK), data.y_test) if len(data.x_test) else None
    scores = {"test": on_test, "held out": estimate, "training": train}
    where, best = next((name, value) for name, value in scores.items() if value is not None)
    return Adaptation(
        descriptor={},
        score=best,
        bound=Bound.of(risk, head.reach, head.norm, len(y), descriptors, config.failure),
        seconds=seconds,
        score_name="accuracy" if data.task == "classification" else "R^2",
        scored_on=where,
        held_out=estimate,
        train_score=train,
        task=data.task,
        log_evidence=float(head.log_evidence - len(y) * head.scale.log().sum()),
        train_loss=float(loss),
        delta=head.delta,
        N=len(y),
        features=features.shape[1],
        data=data.source,
    )
