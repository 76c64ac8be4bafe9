"""Several processes that train one model: how they share the work, and how their sums become those of one process.

    every process   holds the same weights, widths and random streams, and takes its rows of every batch;
    a batch of B    process r takes the rows [B r / P, B (r + 1) / P); the noise is drawn for all B rows, and sliced;
    an objective    is a mean over its rows; weighted by its share of the batch, the gradients of all processes add
                    up to the gradient of one process on the whole batch, and all take the same step.

`World` is one process, at no cost. `Processes` are several, that Lightning Fabric (or torchrun) has started.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from socket import gethostname
from typing import Any

import torch
from torch import Tensor

from augury.core.errors import AuguryError, InputError, RunError

BUCKET = 2**24
"""Numbers in one message, about: it bounds the memory of a reduction."""
FULL, MIXED = "32-true", "bf16-mixed"
"""Precisions of Fabric: all in float32; the networks' passes of training steps in bf16."""
GONE = (
    "another process of this run ended or does not answer, so this one stops too ({reason}). The run's last checkpoint "
    "is kept: the same command with --resume continues from it, with any number of processes."
)


class Gone(RunError):
    """Another process has ended."""


@dataclass(frozen=True)
class Part:
    """The rows of a batch that this process takes."""

    total: int
    start: int
    n: int
    weight: float  # its share of the batch; 0 if there were no rows left, and the first one stands in

    @property
    def rows(self) -> slice:
        return slice(self.start, self.start + self.n)


class World:
    """One process."""

    rank, size = 0, 1
    idle = False
    """Whether the last part had no rows left."""
    bytes = 0
    """Bytes that this process has given to reductions so far."""
    precision = FULL
    """As Fabric names it."""
    autocast: Callable[[], AbstractContextManager[Any]] = nullcontext
    """Entered for each step on the weights."""

    def part(self, n: int) -> Part | None:
        """Return this process's rows of a batch; None for all of them."""
        return None

    def backward(self, objective: Tensor, loss: Tensor, parameters: Iterable[Tensor], part: Part | None) -> float:
        """Leave the gradient of the whole batch's objective in the parameters, and return the whole batch's loss."""
        objective.backward()
        return loss.item()

    def sums(self, values: Sequence[float]) -> list[float]:
        """Return sums over all processes."""
        return list(values)

    def sum_(self, tensors: Iterable[Tensor]) -> None:
        """Replace tensors by their sums over all processes."""

    def same_(self, tensors: Iterable[Tensor], source: int = 0) -> None:
        """Replace tensors by those of one process."""

    def gather(self, rows: Tensor, part: Part | None = None, dim: int = 0) -> Tensor:
        """Return the rows of all processes in order, this one's with their graph; of a part without weight, none."""
        return rows

    def objects(self, value: Any) -> list[Any]:
        """Return what each process has: plain data."""
        return [value]

    def agreed(self, flag: bool) -> bool:
        """Return whether the flag is set on any process."""
        return flag

    def total(self, x: Tensor) -> Tensor:
        """Return the sum over all processes, differentiable."""
        return x

    @contextmanager
    def sharing_errors(self) -> Iterator[None]:
        """Raise in every process what the block raised in one: the others would wait, and blame a lost process."""
        yield

    def seed_step(self, place: tuple[int, ...]) -> None:
        """Seed torch's global generator for a step, from the second process on: dropout must not repeat itself."""


class Processes(World):
    """Several processes; a collective call must be made by all of them."""

    def __init__(self, rank: int, size: int, device: torch.device) -> None:
        self.rank, self.size, self.device = rank, size, device

    def part(self, n: int) -> Part:
        start, stop = n * self.rank // self.size, n * (self.rank + 1) // self.size
        self.idle = start == stop
        return Part(n, 0, 1, 0.0) if self.idle else Part(n, start, stop - start, (stop - start) / n)

    def backward(self, objective: Tensor, loss: Tensor, parameters: Iterable[Tensor], part: Part | None) -> float:
        weight = 1 / self.size if part is None else part.weight
        (objective * weight).backward()
        value = loss.detach().reshape(1) * weight
        self.sum_([*(p.grad for p in parameters if p.grad is not None), value])
        return value.item()

    def sums(self, values: Sequence[float]) -> list[float]:
        total = torch.tensor(values, dtype=torch.float64, device=self.device)
        self.sum_([total])
        return total.tolist()

    @torch.no_grad()
    def sum_(self, tensors: Iterable[Tensor]) -> None:
        for bucket in _buckets(tensors):
            self._call(lambda dist, flat: dist.all_reduce(flat), bucket)

    @torch.no_grad()
    def same_(self, tensors: Iterable[Tensor], source: int = 0) -> None:
        for bucket in _buckets(tensors):
            self._call(lambda dist, flat: dist.broadcast(flat, source), bucket)

    def _call(self, reduce: Callable[[Any, Tensor], Any], bucket: list[Tensor]) -> None:
        """Reduce tensors of one type in one message."""
        import torch.distributed as dist

        flat = torch.cat([t.detach().reshape(-1) for t in bucket]).to(self.device)
        self.bytes += flat.nbytes
        with _answered():
            reduce(dist, flat)
        for tensor, values in zip(bucket, flat.split([t.numel() for t in bucket]), strict=True):
            tensor.copy_(values.view(tensor.shape))

    def gather(self, rows: Tensor, part: Part | None = None, dim: int = 0) -> Tensor:
        import torch.distributed as dist

        own = rows.movedim(dim, 0)
        own = own if part is None or part.weight else own[:0]
        counts = torch.zeros(self.size, dtype=torch.int64)
        counts[self.rank] = len(own)
        self.sum_([counts])
        sent = own.detach().new_zeros(int(counts.max()), *own.shape[1:]).to(self.device)
        sent[: len(own)] = own.detach()
        found = [torch.empty_like(sent) for _ in range(self.size)]
        self.bytes += sent.nbytes
        with _answered():
            dist.all_gather(found, sent)
        parts = [f[:n].to(own) for f, n in zip(found, counts.tolist(), strict=True)]
        parts[self.rank] = own
        return torch.cat(parts).movedim(0, dim)

    def objects(self, value: Any) -> list[Any]:
        import torch.distributed as dist

        found: list[Any] = [None] * self.size
        with _answered():
            dist.all_gather_object(found, value)
        return found

    def agreed(self, flag: bool) -> bool:
        return self.sums([float(flag)])[0] > 0

    def total(self, x: Tensor) -> Tensor:
        summed: Tensor = _Total.apply(x, self)
        return summed

    @contextmanager
    def sharing_errors(self) -> Iterator[None]:
        own: AuguryError | None = None
        try:
            yield
        except AuguryError as error:
            own = error
        said = self.objects(own and f"process {self.rank}, on {gethostname()}: {own}")
        if own is not None:
            raise own
        if any(said):
            raise RunError(next(filter(None, said)))

    def seed_step(self, place: tuple[int, ...]) -> None:
        if self.rank:
            torch.manual_seed(hash((*place, self.rank)))


class _Total(torch.autograd.Function):
    """A sum over processes: every process's loss depends on it, so its gradient is summed too."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, world: World) -> Tensor:
        ctx.world, out = world, x.detach().clone()
        world.sum_([out])
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        grad = grad.contiguous().clone()
        ctx.world.sum_([grad])
        return grad, None


def _buckets(tensors: Iterable[Tensor]) -> Iterator[list[Tensor]]:
    """Group tensors of one type and device, up to the size of a message."""
    groups: dict[Any, list[Tensor]] = {}
    for tensor in tensors:
        group = groups.setdefault((tensor.dtype, tensor.device), [])
        if group and sum(t.numel() for t in group) + tensor.numel() > BUCKET:
            yield group[:]
            group.clear()
        group.append(tensor)
    yield from filter(None, groups.values())


@contextmanager
def _answered() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # gloo: "Connection closed by peer"; a time-out
        reason = str(error).strip().splitlines()[0]
        raise Gone(GONE.format(reason=reason[:120])) from error


ALONE = World()


def world_of(fabric: Any) -> World:
    """Return the processes of a `lightning_fabric.Fabric`; None for one process."""
    if fabric is None:
        return ALONE
    if fabric.world_size > 1 and not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        raise InputError(
            f"fabric has {fabric.world_size} processes that have not been started. Call fabric.launch() first."
        )
    if fabric.device.type == "cuda":
        torch.cuda.set_device(fabric.device)  # "cuda" means this one from here on
    several = fabric.world_size > 1
    world = Processes(fabric.global_rank, fabric.world_size, fabric.device) if several else World()
    world.precision = fabric.strategy.precision.precision
    if world.precision == MIXED:
        world.autocast = partial(torch.autocast, fabric.device.type, torch.bfloat16)
    return world


def check_precision(world: World, what: str, rounded: bool = False) -> None:
    """Raise unless a method can work in the precision that Fabric was asked for."""
    taken = (FULL, MIXED) if rounded else (FULL,)
    if world.precision not in taken:
        raise InputError(f"Fabric's precision must be {' or '.join(taken)} for {what}; got {world.precision}.")
