"""`augury.audit`: from a model, data and a transformation to a verdict with the figures behind it."""

import time
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from augury.auditing.data import Inputs, corrupted, read_inputs
from augury.auditing.measures import check_method
from augury.auditing.model_source import Model, image_size, load_source
from augury.auditing.orbits import orbit_of
from augury.auditing.spectrum import jacobian_sigmas, weight_sigmas
from augury.auditing.statistics import Auditor
from augury.auditing.verdict import decide
from augury.auditing.worst import Case, Examined, WorstCases
from augury.config.audit import AuditConfig
from augury.core.errors import InputError
from augury.core.files import Progress, silent
from augury.core.world import world_of
from augury.models.orbit import OrbitAverage
from augury.records.results import Audit, Point
from augury.transforms.base import Transform
from augury.transforms.vocabulary import build as build_transform

GRADIENT_FREE = ("feature_ablation",)  # saliency methods that also work for models without gradients


def audit(
    model: Any,
    data: Any,
    transforms: Transform | str | Sequence[str] | None = None,
    *,
    widths: Mapping[str, float] | None = None,
    drift: Mapping[str, Any] | None = None,
    kind: str | None = None,
    architecture: str | None = None,
    trust: bool = False,
    step: Progress = silent,
    fabric: Any = None,
    **settings: Any,
) -> Audit:
    """Test whether a model's invariance is genuine.

    Parameters
    ----------
    model
        A module or a function from inputs [B, ...] to logits [B, C]; or where to find one: a run folder, a
        .safetensors file with a named architecture, "package.module:callable"; a .pt2, .pt or .pth with `trust`.
    data
        Anything that `augury.load` reads; or inputs without labels: a tensor, an array, an .npz, a folder of images.
    transforms
        A finite group or another transformation, or words for one: "C4", "rotation", "translation,scale". None for
        that of an orbit average itself.
    widths
        How far to go, in units: {"rotation": 30}.
    drift
        Other data to audit on, by name: {"fashion": "fashion_mnist"}.
    kind
        Kind of the inputs, as for `augury.load`. Default: inferred from their shape.
    architecture
        Name of the network whose weights a .safetensors file holds.
    trust
        Load files that can run arbitrary code (.pt2, .pt, .pth, TorchScript). Default: they are refused.
    step
        Called with the progress of the audit.
    fabric
        A launched `lightning_fabric.Fabric`, whose processes share the inputs.
    settings
        Any field of `AuditConfig`: images=1000, saliency="integrated_gradients", ...

    Returns
    -------
    Audit
        The verdict and its figures: plain data.
    """
    given: dict[str, Any] = {"widths": widths, "drift": drift, "kind": kind, "architecture": architecture}
    return examine(model, data, transforms, trust=trust, step=step, fabric=fabric, **given, **settings).audit


def examine(
    model: Any,
    data: Any,
    transforms: Transform | str | Sequence[str] | None = None,
    *,
    widths: Mapping[str, float] | None = None,
    drift: Mapping[str, Any] | None = None,
    kind: str | None = None,
    architecture: str | None = None,
    trust: bool = False,
    step: Progress = silent,
    fabric: Any = None,
    **settings: Any,
) -> Examined:
    """Do the same, and keep the worst inputs with their views and saliency maps."""
    began = time.perf_counter()
    config = AuditConfig.of(**settings)
    check_method(config.saliency)
    size = image_size(model)
    inputs = read_inputs(data, config.part, kind, size).sample(config.images or None, config.seed)
    others = {
        key: read_inputs(other, kind=kind, size=size).sample(config.drift_images, config.seed)
        for key, other in (drift or {}).items()
    }
    name = str(model) if isinstance(model, str | Path) else getattr(model, "__name__", type(model).__name__)
    if isinstance(model, str | Path):
        model = load_source(str(model), inputs.x.shape[1:], inputs.n_outputs, architecture, trust=trust)
    orbit = orbit_of(_transform(transforms, widths, model, inputs), inputs.x.shape[1:], config.levels)
    checked = Model(model, inputs.n_outputs)
    with checked.evaluating():
        few = inputs.x[:2]
        with torch.no_grad():
            C = checked(few).shape[1]
        saliency = config.saliency if config.saliency in GRADIENT_FREE or checked.has_gradients(few) else None
        auditor = Auditor(checked, orbit, C, saliency, config.batch, config.seed, step, world_of(fabric))
        found, cases = _find(auditor, inputs, others, config)
    return Examined(replace(found, model=name, data=inputs.source, seconds=time.perf_counter() - began), cases)


def _transform(
    given: Transform | str | Sequence[str] | None, widths: Mapping[str, float] | None, model: Any, inputs: Inputs
) -> Transform:
    if given is None:
        if not isinstance(model, OrbitAverage):
            raise InputError("name what the model should be invariant to: a group such as 'C4', or 'rotation'.")
        given = model.transform
    if isinstance(given, Transform):
        given = deepcopy(given)
    else:
        given = build_transform(given, inputs.kind, tuple(inputs.x.shape[1:]))
    given.check(inputs.x[:1])
    given.set_widths(widths or {})
    return given


def _find(
    auditor: Auditor, inputs: Inputs, others: Mapping[str, Inputs], config: AuditConfig
) -> tuple[Audit, list[Case]]:
    worst = WorstCases(config.worst, inputs, auditor.orbit)
    tally = auditor.measure("views", inputs, worst)
    floor = auditor.measure("noise floor", inputs.sample(config.floor_images, config.seed), round_trip=True)
    sets = dict(others) if config.drift_images else {}
    if config.drift_images and config.corruptions:
        sets |= corrupted(inputs.sample(config.drift_images, config.seed), config.seed)
    drift = {name: auditor.measure(name, other).scores() for name, other in sets.items()}
    sigma = _sigma(auditor, inputs.sample(config.jacobian_images, config.seed)) if config.jacobian_images else None
    spread, orbit, module = tally.spread(), auditor.orbit, auditor.model.module
    scores, alone = tally.scores(), floor.scores(spread=spread)
    verdict = decide(orbit.name, scores, alone, drift, constant=spread == 0)
    accuracy, accuracy_moved = tally.accuracy()
    names = () if inputs.regression else inputs.class_names or tuple(map(str, range(auditor.C)))
    found = Audit(
        group=orbit.name,
        LI=scores.LI,
        LI_relative=scores.LI_relative,
        DI=scores.DI,
        SI=scores.SI,
        agreement=scores.agreement,
        noise_floor=alone,
        sigma_max_jacobian=sigma,
        verdict=verdict.verdict,
        images=tally.images,
        why=verdict.why,
        advice=verdict.advice,
        sigma_max_relative=None if sigma is None or not spread else sigma / (spread / 2) ** 0.5,
        sigma_max_weights={} if module is None else weight_sigmas(module),
        accuracy=accuracy,
        accuracy_moved=accuracy_moved,
        curve=tuple(
            Point(strength, orbit.unit, tally.scores(level, spread=spread), floor.scores(level, spread=spread))
            for level, strength in enumerate(orbit.levels)
        ),
        per_class={n: tally.scores(group=c, spread=spread) for c, n in enumerate(names) if tally.by_class.n[c]},
        drift=drift,
        worst=worst.records(),
        saliency=config.saliency,
    )
    return found, worst.cases


def _sigma(auditor: Auditor, inputs: Inputs) -> float | None:
    """Return the mean of sigma_max(J); None for a model that cannot be differentiated twice."""
    if auditor.saliency is None:
        return None
    total = 0.0
    try:
        for done, x in enumerate(inputs.x.split(100)):
            part = auditor.world.part(len(x))
            x, share = (x, 1.0) if part is None else (x[part.rows], float(part.weight > 0))
            total += share * float(jacobian_sigmas(auditor.model, x, iterations=100, tolerance=1e-3).sum())
            auditor.step("spectrum", min(100 * (done + 1), len(inputs.x)), len(inputs.x))
    except (RuntimeError, NotImplementedError):  # autograd has no second derivative of some operation
        return None
    return auditor.world.sums([total])[0] / len(inputs.x)
