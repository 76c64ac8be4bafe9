"""The model under audit, from any source: a function from inputs [B, ...] to finite logits [B, C]."""

import inspect
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor, nn

from augury.core.errors import AuguryError, InputError, first_line
from augury.core.rng import generator
from augury.models.hypernetwork import HyperExtractor
from augury.models.networks import NETWORKS
from augury.models.networks import build as build_net
from augury.records.saved import is_ours, read_saved
from augury.training.run_folder import model_file
from augury.training.saved_model import load_model

CAN_RUN_CODE = (".pt2", ".pt", ".pth", ".pkl", ".pickle", ".bin", ".ckpt", ".joblib", ".t7")
"""Endings of files that can run code when they are loaded: programs of torch.export, TorchScript, pickles."""
TRUST = "Loading such a file can run any code that its author put into it, with your rights."  # what trust means
FORMS = "a run folder, a .safetensors (with an architecture), package.module:callable, or, trusted, a .pt2, .pt or .pth"


def image_size(model: Any) -> tuple[int, int] | None:
    """Return height and width of the images that a saved model of ours takes."""
    try:
        saved = read_saved(model_file(Path(model).expanduser()))
    except (AuguryError, OSError, TypeError):
        return None
    return (saved.input_shape[1], saved.input_shape[2]) if saved.data_kind == "image" else None


def load_source(
    source: str, input_shape: Sequence[int], n_outputs: int, architecture: str | None = None, *, trust: bool = False
) -> Callable[[Any], Any]:
    """Return the model that a text names."""
    path = Path(source).expanduser()
    if not path.exists():
        if ":" in source:
            return _imported(source)
        raise InputError(f"a model must be {FORMS}; got '{source}', and there is no such file or folder.")
    if path.is_dir():
        return _saved(path)
    if path.suffix == ".safetensors":
        return _weights(path, input_shape, n_outputs, architecture)
    if path.suffix not in CAN_RUN_CODE and not _looks_pickled(path):
        raise InputError(f"a model must be {FORMS}; got '{source}', whose ending '{path.suffix}' is none of these.")
    if not trust:
        raise InputError(
            f"{path} is refused. {TRUST} If you trust it: --trust (Python: trust=True). The safe ways: a run's folder; "
            f"safetensors.torch.save_file(model.state_dict(), 'model.safetensors') and --architecture NAME; or "
            f"package.module:callable, your own code."
        )
    return _trusted(path, input_shape, n_outputs, architecture)


def _saved(path: Path) -> nn.Module:
    model = load_model(path)
    if isinstance(model, HyperExtractor):
        raise InputError(
            f"{path} holds an extractor, which has no single model to audit: adapt it to a task first "
            f"(augury adapt {path} DATA --run RUN) and audit that."
        )
    return model


def _weights(path: Path, shape: Sequence[int], n_outputs: int, architecture: str | None) -> nn.Module:
    try:
        with safe_open(path, framework="pt") as opened:
            ours = is_ours(opened.metadata() or {})
        tensors = {} if ours and architecture is None else load_file(path)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path} is not a safetensors file, or it is damaged ({error}).") from error
    if architecture is not None:
        return _filled(path, tensors, shape, n_outputs, architecture)
    if ours:
        return _saved(path)
    raise InputError(
        f"{path} holds weights only. Name the network they are of (--architecture): {', '.join(NETWORKS)}."
    )


def _filled(path: Path, tensors: Any, shape: Sequence[int], n_outputs: int, architecture: str) -> nn.Module:
    net = build_net(architecture, tuple(shape), n_outputs, generator(0))
    try:
        net.load_state_dict(tensors)
    except RuntimeError as error:
        raise InputError(
            f"the weights in {path} are not those of '{architecture}' for inputs {list(shape)}: {error}"
        ) from error
    return net.eval()


def _looks_pickled(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(1) == b"\x80"


def _trusted(path: Path, shape: Sequence[int], n_outputs: int, architecture: str | None) -> Callable[[Any], Any]:
    """Load a file that can run code."""
    try:
        if path.suffix == ".pt2":
            return _program(path)
        with warnings.catch_warnings():  # TorchScript, which torch.load understands too, is deprecated
            warnings.simplefilter("ignore")
            found = torch.load(path, map_location="cpu", weights_only=False)
    except InputError:
        raise
    except Exception as error:  # torch raises many exceptions for a damaged file
        raise InputError(f"{path} is not a model that this torch can read ({first_line(error)}).") from error
    if isinstance(found, Mapping):
        if architecture is None:
            raise InputError(f"{path} holds weights only. Name the network they are of (--architecture).")
        return _filled(path, found, shape, n_outputs, architecture)
    return _made(found, str(path))


def _program(path: Path) -> Callable[[Tensor], Any]:
    """Return the function that a program of `torch.export` is, for any number of inputs."""
    program = torch.export.load(path)
    names = program.graph_signature.user_inputs
    if len(names) != 1:
        raise InputError(f"{path} must take one tensor of inputs; it takes {len(names)}. Export a model that does.")
    node = next(node for node in program.graph.nodes if node.name == names[0])
    module, size = program.module(), node.meta["val"].shape[0]
    if not isinstance(size, int):
        return module

    def in_batches(x: Tensor) -> Any:
        parts = x.split(size)  # of the one size that it was exported for, the last one filled up
        filled = [torch.cat([part, part[-1:].expand(size - len(part), *part.shape[1:])]) for part in parts]
        return torch.cat([module(part) for part in filled])[: len(x)]

    return in_batches


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
    return found


class Model:
    """Calls a model and checks what it returns."""

    def __init__(self, call: Any, smallest: int = 1) -> None:
        if isinstance(call, type) or not callable(call):
            what = f"the class {call.__name__}" if isinstance(call, type) else type(call).__name__
            raise InputError(
                f"a model must be a module or a function from inputs to logits; got {what}. Make one first."
            )
        self.call, self.smallest = call, smallest
        self.module = call if isinstance(call, nn.Module) else None
        parameters = self.module.parameters() if self.module is not None else iter(())
        self.like = next((p for p in parameters if p.is_floating_point()), None)

    def __call__(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B C"]:
        f = self._call(x if self.like is None else x.to(self.like))
        if isinstance(f, Mapping) and "logits" in f:
            f = f["logits"]
        if not isinstance(f, Tensor):
            raise InputError(f"the model must return a tensor of logits; it returned {type(f).__name__}.")
        if f.ndim != 2 or len(f) != len(x) or not f.is_floating_point():
            raise InputError(
                f"the model must return logits [B, C], floats, a row for each input; for {len(x)} inputs of shape "
                f"{list(x.shape[1:])} it returned {f.dtype} of shape {list(f.shape)}. Wrap it in a function that does."
            )
        if f.shape[1] < self.smallest:
            raise InputError(
                f"the model must return at least {self.smallest} outputs, one for each class of the data; "
                f"it returned {f.shape[1]}. Is it the right model, or the right data?"
            )
        if not torch.isfinite(f.detach().sum()) and len(bad := (~torch.isfinite(f)).any(1).nonzero()):
            raise InputError(
                f"the model must return finite logits; it returned NaN or infinity for {len(bad)} of {len(f)} inputs "
                f"(or their views), first for number {int(bad[0, 0])}. Has its training diverged?"
            )
        return f.to(x)

    def _call(self, x: Tensor) -> Any:
        try:
            return self.call(x)
        except InputError:
            raise
        except Exception as error:  # the model's code may raise any exception if the inputs do not fit
            raise InputError(
                f"the model cannot take inputs of shape {list(x.shape)}: {first_line(error)}. "
                f"Check that it was made for such data, or wrap it in a function that prepares them."
            ) from error

    def has_gradients(self, x: Float[Tensor, "B ..."]) -> bool:
        """Say whether the logits can be differentiated in the inputs."""
        with torch.enable_grad():
            return self(x.detach().requires_grad_()).requires_grad

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Put a module in evaluation mode for the block: BatchNorm must not couple inputs, nor learn from them."""
        modes = {} if self.module is None else {m: m.training for m in self.module.modules() if m.training}
        for module in modes:  # not by `eval`, which programs of torch.export do not have
            module.training = False
        try:
            yield
        finally:
            for module in modes:
                module.training = True
