"""Where a model can come from: a run folder, a program, weights of a named architecture, an import path; no pickle."""

import inspect
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import nn

from augury.audit.exported import load_program
from augury.core.errors import InputError
from augury.core.rng import generator
from augury.models.catalog import NETWORKS
from augury.models.catalog import build as build_net
from augury.training.saved_model import load_model

PICKLES = (".pt", ".pth", ".pkl", ".pickle", ".bin", ".ckpt", ".joblib", ".t7")
"""Endings of files that hold pickles."""

FORMS = (
    "a run folder, a .pt2 of torch.export, a .safetensors (with an architecture), or package.module:callable"
)


def load_source(
    source: str, input_shape: Sequence[int], n_outputs: int, architecture: str | None = None
) -> Callable[[Any], Any]:
    """Return the model that a text stands for."""
    path = Path(source).expanduser()
    if not path.exists():
        if ":" in source:
            return _imported(source)
        raise InputError(f"a model must be {FORMS}; got '{source}', and there is no such file or folder.")
    if path.is_dir():
        return load_model(path)
    if path.suffix == ".pt2":
        return load_program(path)
    if path.suffix == ".safetensors":
        return _weights(path, input_shape, n_outputs, architecture)
    if path.suffix in PICKLES or _looks_pickled(path):
        raise InputError(
            f"{path} is a pickle: loading one runs whatever code is in it, so it is refused. The safe way: "
            f"safetensors.torch.save_file(model.state_dict(), 'model.safetensors') and --architecture NAME, or "
            f"torch.export.save(torch.export.export(model, (x,)), 'model.pt2'), or package.module:callable."
        )
    raise InputError(
        f"a model must be {FORMS}; got '{source}', whose ending '{path.suffix}' is none of these."
    )


def _looks_pickled(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2)[:1] == b"\x80"


def _weights(path: Path, shape: Sequence[int], n_outputs: int, architecture: str | None) -> nn.Module:
    try:
        with safe_open(path, framework="pt") as opened:
            ours = "recipe" in (opened.metadata() or {})
        if ours and architecture is None:
            return load_model(path)
        tensors = load_file(path)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path} is not a safetensors file, or it is damaged ({error}).") from error
    if architecture is None:
        raise InputError(
            f"{path} holds weights only. Name the network they are of (--architecture): {', '.join(NETWORKS)}."
        )
    net = build_net(architecture, tuple(shape), n_outputs, generator(0))
    try:
        net.load_state_dict(tensors)
    except RuntimeError as error:
        raise InputError(
            f"the weights in {path} are not those of '{architecture}' for inputs {list(shape)}: {error}"
        ) from error
    return net.eval()


def _imported(source: str) -> Callable[[Any], Any]:
    module, _, name = source.partition(":")
    here = str(Path.cwd())
    sys.path.insert(0, here)  # a console script does not look in the folder it is called from
    try:
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(
            f"a model must be {FORMS}; '{source}' could not be imported: {error}. Is the package installed, or here?"
        ) from error
    finally:
        sys.path.remove(here)
    return _made(found, source)


def _made(found: Any, source: str) -> Callable[[Any], Any]:
    """Return what was found; a function without parameters makes the model."""
    if inspect.isfunction(found) and not inspect.signature(found).parameters:
        found = found()
    if isinstance(found, type) or not callable(found):
        raise InputError(
            f"'{source}' must be a module, a function from inputs to logits, or a function without parameters that "
            f"makes one of these; got {found!r:.60}."
        )
    made: Callable[[Any], Any] = found
    return made
