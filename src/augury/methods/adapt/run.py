"""`augury.adapt`: from a hyper-extractor and a new task to a descriptor, a head and a plain network (paper C)."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from augury.adaptation import Adaptation, Trial, in_words
from augury.core.rng import generator
from augury.data.dataset import Dataset
from augury.methods.adapt.checks import check_task
from augury.methods.adapt.folder import check_folder, plan_of, save_adapted
from augury.methods.adapt.objective import Objective
from augury.methods.adapt.readout import read_out, record
from augury.methods.adapt.search import FINE, choose_descriptor, finalists, to_levels
from augury.methods.adapt.settings import AdaptConfig
from augury.methods.checks import check_device
from augury.models.hyper import HyperExtractor

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
