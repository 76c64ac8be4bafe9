"""`augury.amortize`: from images and the names of invariance groups to an extractor that spans them all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from augury.config.hyper import AmortizeConfig, checked_descriptors, corners
from augury.core.errors import InputError
from augury.core.rng import generator, spawn
from augury.core.world import check_precision, world_of
from augury.data.dataset import Dataset
from augury.data.load import load
from augury.data.rows import fingerprint
from augury.data.targets import Part
from augury.data.unlabelled import load_images
from augury.data.variants import DESCRIPTORS, coloured_rotated_tasks
from augury.methods.hyper.groups import Group, parse_groups
from augury.methods.hyper.measured import summarise
from augury.methods.hyper.pretraining import Contrastive, MultiTask, Pretrainer, carried, gather
from augury.methods.hyper.views import Views
from augury.methods.prepare import check_device
from augury.models.hypernetwork import HyperExtractor
from augury.records.saved import CUSTOM, Pretraining, SavedModel
from augury.training.batches import streams
from augury.training.loop import Fit, fit
from augury.training.progress import Progress, together
from augury.training.run_folder import locked, open_run
from augury.training.saved_model import describe_extractor, save_model

COLOURED_GROUPS = {"rotation": "rotation:90", "color": "channels"}
"""The groups of coloured-rotated digits, in the order of `DESCRIPTORS`."""


@dataclass(frozen=True, eq=False)
class Amortized:
    """What `amortize` returns."""

    extractor: HyperExtractor
    """The extractor, in evaluation mode, not calibrated."""
    saved: SavedModel
    """How it is built and where it came from: plain data."""
    groups: tuple[Group, ...]
    """The groups and their transformations."""
    metrics: list[dict[str, Any]]
    """A line for each epoch."""
    config: AmortizeConfig
    """The settings, with everything filled in."""


def amortize(
    data: Any,
    groups: str | Sequence[str] | Mapping[str, str] | None = None,
    method: str = "contrastive",
    *,
    encoder: str | nn.Module | None = None,
    descriptors: Sequence[Any] | Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    resume: bool = False,
    callbacks: Progress | Sequence[Progress] = (),
    fabric: Any = None,
    **settings: Any,
) -> Amortized:
    """Pre-train an extractor whose features can be made invariant to any of the groups.

    Parameters
    ----------
    data
        Images: a named set, a folder, an `.npz`, an array. For method "multitask": grey digits by name, of which
        coloured-rotated ones are made (paper C), or a `Dataset` for each task by its name.
    groups
        Names of groups, or definitions: "rotation,color", {"turn": "rotation:30+flip"}; see
        `augury.methods.hyper.groups`. Needed for method "contrastive".
    method
        "contrastive" (HyperSimCLR) or "multitask".
    encoder
        A key of `augury.models.networks.ENCODERS`, or a module of your own.
    descriptors
        The descriptors to pre-train on; for your own tasks, by their names. A single one makes an ordinary
        extractor: SimCLR. Default: the corners of the cube.
    out
        Folder for settings, metrics, checkpoints and the extractor. Default: nothing is written.
    overwrite, resume
        Replace the run in that folder, or continue it; it resumes bit for bit.
    callbacks
        Called at every step and epoch.
    fabric
        A launched `lightning_fabric.Fabric`, whose processes share every batch; the first one writes.
    settings
        Any field of `AmortizeConfig`: epochs=50, batch=128, ...

    Returns
    -------
    Amortized
        The extractor and what is known of it.
    """
    if encoder is not None:
        settings["encoder"] = encoder if isinstance(encoder, str) else CUSTOM
    config = AmortizeConfig.for_method(method, **settings)
    check_device(config.device)
    make = _multitask if method == "multitask" else _contrastive
    learner, parsed, dataset = make(data, groups, descriptors, encoder, config)
    learner.join(world := world_of(fabric))
    check_precision(world, "amortize")
    place = None if out is None or world.rank else Path(out)
    with locked(place):
        folder = None
        with world.sharing_errors():
            if place is not None:
                asked = {**config.to_json(), **_asked(dataset, parsed, learner)}
                folder = open_run(place, asked, overwrite=overwrite, resume=resume)
        watcher = together(() if world.rank else callbacks)
        result = fit(learner, dataset, config.loop(), folder, watcher, config.method)
        known = _pretraining(learner, parsed, dataset, config, result)
        saved = replace(describe_extractor(learner.model), pretraining=known)
        if folder is not None:
            save_model(folder.model, learner.model, saved)
    return Amortized(learner.model, saved, parsed, result.rows, config)


def _extractor(
    groups: Sequence[Group], shape: Sequence[int], encoder: str | nn.Module | None, config: AmortizeConfig
) -> tuple[HyperExtractor, torch.Generator]:
    """Return the extractor, and a generator for the heads."""
    rng = streams(config.seed)["network"]
    chosen = encoder if isinstance(encoder, nn.Module) else config.encoder
    names = [group.name for group in groups]
    made = HyperExtractor(chosen, names, shape, rng, config.d_h or None, config.activation)
    return made.to(config.device), spawn(rng)


def _contrastive(
    data: Any, groups: Any, descriptors: Any, encoder: str | nn.Module | None, config: AmortizeConfig
) -> tuple[Pretrainer, tuple[Group, ...], Dataset]:
    if groups is None:
        raise InputError("name the invariance groups to span, such as groups='rotation,color'.")
    parse_groups(groups)  # raises before a long read
    images = data if isinstance(data, Part) else load_images(data)
    parsed = parse_groups(groups, images.x.shape[1:])
    names = tuple(group.name for group in parsed)
    points = corners(len(parsed)) if descriptors is None else checked_descriptors(descriptors, names)
    extractor, rng = _extractor(parsed, images.x.shape[1:], encoder, config)
    learner = Contrastive(extractor, Views(parsed), points, config, rng)
    return learner, parsed, carried(images.x, torch.zeros(len(images.x), 1), images.source)


def _multitask(
    data: Any, groups: Any, descriptors: Any, encoder: str | nn.Module | None, config: AmortizeConfig
) -> tuple[Pretrainer, tuple[Group, ...], Dataset]:
    if isinstance(data, Mapping):
        tasks, points = dict(data), descriptors
        if groups is None or not isinstance(points, Mapping) or points.keys() != tasks.keys():
            raise InputError(
                f"tasks of your own need groups and a descriptor for each task by its name; "
                f"the tasks are {', '.join(tasks)}."
            )
        points = {name: points[name] for name in tasks}
    else:
        tasks = coloured_rotated_tasks(data if isinstance(data, Dataset) else load(data), config.seed)
        groups = COLOURED_GROUPS if groups is None else groups
        points = DESCRIPTORS if descriptors is None else descriptors
    pile, outputs = gather(tasks)
    parsed = parse_groups(groups, pile.input_shape)
    places = checked_descriptors(points, tuple(group.name for group in parsed))
    extractor, rng = _extractor(parsed, pile.input_shape, encoder, config)
    learner = MultiTask(extractor, outputs, Views(parsed), places, config, rng)
    return learner, parsed, pile


def _asked(data: Dataset, groups: Sequence[Group], learner: Pretrainer) -> dict[str, Any]:
    facts = {
        "source": data.source,
        "train": len(data.x_train),
        "input_shape": list(data.input_shape),
        "fingerprint": fingerprint(data.x_train, data.y_train),
    }
    return {
        "groups": {group.name: str(group) for group in groups},
        "descriptors": [list(descriptor) for descriptor in learner.descriptors],
        "data": facts,
    }


def _pretraining(
    learner: Pretrainer, groups: Sequence[Group], data: Dataset, config: AmortizeConfig, result: Fit
) -> Pretraining:
    return Pretraining(
        method=config.method + (", shared" if config.shared else ""),
        data=data.source,
        images=len(data.x_train),
        epochs=config.epochs,
        loss=result.rows[-1]["loss"] if result.rows else None,
        seconds=result.seconds,
        transformations={group.name: str(group) for group in groups},
        invariance=summarise(learner.model, data.x_train, groups, generator(config.seed)),
    )
