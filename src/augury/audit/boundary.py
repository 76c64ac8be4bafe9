"""The model under audit, whatever it is, made one thing: from inputs [B, ...] to finite logits [B, C]."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from augury.core.errors import InputError


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
        """Return the logits."""
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
        _check_finite(f)
        return f.to(x)

    def _call(self, x: Tensor) -> Any:
        try:
            return self.call(x)
        except InputError:
            raise
        except Exception as error:  # anybody's code may raise anything when the inputs do not fit
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError(
                f"the model cannot take inputs of shape {list(x.shape)}: {reason}. "
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
        for module in modes:
            module.training = False
        try:
            yield
        finally:
            for module in modes:
                module.training = True


def _check_finite(f: Tensor) -> None:
    if not torch.isfinite(f.detach().sum()):
        bad = (~torch.isfinite(f)).any(1).nonzero()
        if len(bad):
            raise InputError(
                f"the model must return finite logits; it returned NaN or infinity for {len(bad)} of {len(f)} inputs "
                f"(or their views), first for number {int(bad[0, 0])}. Has its training diverged?"
            )
