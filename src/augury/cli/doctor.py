"""`augury doctor`: what is installed, and whether a planted invariance is found in your own data."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group

from augury import __version__
from augury.cli import console as c
from augury.cli import options as o
from augury.config.learn import method_name
from augury.core.errors import InputError, choose
from augury.data.named import cache_dir, data_dirs, listing
from augury.models.networks import NETWORKS

if TYPE_CHECKING:
    from augury.methods.doctor import Recovery

NOT_RECOVERED = 3  # exit code if the planted invariance was not found
SECONDS, IMAGES = 60.0, 1000
QUICK = {"samples": 4, "batch": 50}  # settings of a trial that differ from those of a run: fewer views, more steps
STYLES = {"recovered": "bold green", "partly recovered": "bold yellow"}

HELP = f"""
Show the environment; test whether a planted invariance is found in your data.

Every image is rotated (or translated, or scaled) once, at random, by a known
range. If the method finds it with this network and this budget, a
long run on your data can be trusted; if not, it says what to change.

\b
augury doctor                              the environment only
augury doctor my_photos/                   look for a planted rotation, a minute
augury doctor my_photos/ --model resnet_8_16 --seconds 300
augury doctor data.npz --plant scaled --control
augury doctor mnist5k --json               exit code 0 if found, {NOT_RECOVERED} if not
"""

Plant = Annotated[
    str | None,
    o.option("--plant", "rotated, partially_rotated, translated, scaled, or sums of them. Default: rotated.", o.DATA),
]
Seconds = Annotated[float, o.option("--seconds", f"Time budget; decides the epochs. Default: {SECONDS:g}.", o.METHOD)]
Control = Annotated[bool, o.option("--control", "Also learn from the data as they are: twice the time.", o.METHOD)]


def doctor(
    data: o.DataIfAny = None,
    plant: Plant = None,
    size: o.Size = None,
    task: o.Task = None,
    kind: o.Kind = None,
    skip_bad: o.SkipBad = None,
    images: Annotated[int, o.images("training examples", f"{IMAGES}")] = IMAGES,
    model: o.Model = None,
    method: o.Method = None,
    seconds: Seconds = SECONDS,
    epochs: Annotated[int | None, o.epochs("what fits into --seconds")] = None,
    samples: Annotated[
        int, o.option("--samples -S", f"Views per input. Default: {QUICK['samples']}.", o.METHOD)
    ] = QUICK["samples"],
    control: Control = False,
    seed: o.Seed = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Check the settings, plant and recover, and show the result."""
    settings: dict[str, Any] = QUICK | o.given(locals(), ("model", "samples", "epochs", "seed"))
    reading = o.given(locals(), ("size", "task", "kind", "skip_bad"))
    if model is not None:
        choose("model", model, NETWORKS)
    if method is not None:
        settings["method"] = method_name(method)
    for name, value in (("--seconds", seconds), ("--images", images - 1), ("--samples", samples)):
        if value <= 0:
            raise InputError(f"{name} must be positive (images: at least 2); got {value}.")
    recovery = None
    with c.interruptible():
        facts = environment()
        if not json and not (quiet and data):
            c.out.print(c.facts_table(in_words(facts)))
        if data is not None:
            from augury.data.load import load
            from augury.methods.doctor import recover

            found = c.read_data(load, data, quiet, **reading)
            recovery = recover(
                found, plant, images=images, seconds=seconds, control=control, callbacks=c.live_bar(quiet), **settings
            )
    if json:
        c.print_json({"environment": facts, "recovery": recovery and recovery.to_json()})
    elif recovery is None:
        c.out.print("\nTo try it on your data: augury doctor DATA", style="dim")
    else:
        c.out.print(summary(recovery))
    if recovery is not None and recovery.verdict != "recovered":
        raise typer.Exit(NOT_RECOVERED)


def summary(recovery: "Recovery") -> Group:
    """Return what is shown of a recovery."""
    style = STYLES.get(recovery.verdict, "bold red")
    budget = (
        f"{c.plural(recovery.images, 'example')}, {c.plural(recovery.epochs, 'epoch')}, {recovery.seconds:.0f} seconds"
    )
    head = f"\n[{style}]{recovery.verdict}[/] by {recovery.method} with {recovery.model} ({budget})"
    return Group(head, recovery.why, recovery.advice, "", c.widths_table(recovery.learned))


PACKAGES = ("torch", "numpy", "safetensors", "typer")
OPTIONAL = (
    "kornia", "torchvision", "albumentations", "tensorboard", "captum", "lightning-fabric", "scikit-learn", "mlxtend",
)  # fmt: skip


def environment() -> dict[str, Any]:
    """Return the facts as plain data; loads torch."""
    import torch

    pages = ("SC_PHYS_PAGES", "SC_AVPHYS_PAGES")
    total, free = (os.sysconf("SC_PAGE_SIZE") * os.sysconf(p) if hasattr(os, "sysconf") else None for p in pages)
    devices = ["cpu"] + [f"cuda:{k} ({torch.cuda.get_device_name(k)})" for k in range(torch.cuda.device_count())]
    devices += ["mps"] if torch.backends.mps.is_available() else []
    return {
        "augury": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _installed(name) for name in PACKAGES},
        "optional": {name: _installed(name) for name in OPTIONAL},
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "memory_bytes": total,
        "memory_free_bytes": free,
        "devices": devices,
        "data_folders": list(map(str, data_dirs())),
        "cache": str(cache_dir()),
        "data_sets": {line.name: line.found for line in listing()},
    }


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def in_words(facts: dict[str, Any]) -> dict[str, str]:
    """Return the environment as text."""
    there = [name for name, place in facts["data_sets"].items() if place]
    memory = " of ".join(c.gigabytes(facts[name]) for name in ("memory_free_bytes", "memory_bytes"))
    return {
        "augury": f"{facts['augury']}, Python {facts['python']}, {facts['platform']}",
        "packages": ", ".join(f"{name} {v or 'missing'}" for name, v in facts["packages"].items()),
        "optional": ", ".join(f"{name} {v or '-'}" for name, v in facts["optional"].items()),
        "processor": f"{facts['cores']} cores, {facts['threads']} threads in use by torch",
        "memory": f"{memory} free",
        "devices": ", ".join(facts["devices"]),
        "data": f"{', '.join(there)} (looked in {', '.join(facts['data_folders'])})",
    }
