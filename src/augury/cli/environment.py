"""Facts about the environment: versions, cores, memory, devices, data sets."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from augury import __version__
from augury.cli.console import gigabytes
from augury.data.named import cache_dir, data_dirs, listing

PACKAGES = ("torch", "numpy", "safetensors", "typer")
OPTIONAL = (
    "kornia",
    "torchvision",
    "albumentations",
    "tensorboard",
    "captum",
    "lightning-fabric",
    "scikit-learn",
    "mlxtend",
)


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
        "packages": {name: found(name) for name in PACKAGES},
        "optional": {name: found(name) for name in OPTIONAL},
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "memory_bytes": total,
        "memory_free_bytes": free,
        "devices": devices,
        "data_folders": list(map(str, data_dirs())),
        "cache": str(cache_dir()),
        "data_sets": {line.name: line.found for line in listing()},
    }


def found(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def in_words(facts: dict[str, Any]) -> dict[str, str]:
    """Return the environment as text."""
    there = [name for name, place in facts["data_sets"].items() if place]
    memory = " of ".join(gigabytes(facts[name]) for name in ("memory_free_bytes", "memory_bytes"))
    return {
        "augury": f"{facts['augury']}, Python {facts['python']}, {facts['platform']}",
        "packages": ", ".join(f"{name} {v or 'missing'}" for name, v in facts["packages"].items()),
        "optional": ", ".join(f"{name} {v or '-'}" for name, v in facts["optional"].items()),
        "processor": f"{facts['cores']} cores, {facts['threads']} threads in use by torch",
        "memory": f"{memory} free",
        "devices": ", ".join(facts["devices"]),
        "data": f"{', '.join(there)} (looked in {', '.join(facts['data_folders'])})",
    }
