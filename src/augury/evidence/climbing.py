"""What every evidence in training shares: the widths and their optimiser, the data that it takes, and its state."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from augury.config.learn import EvidenceConfig
from augury.core.errors import AuguryWarning, InputError, choose
from augury.core.rng import generator
from augury.core.world import World, world_of
from augury.evidence.likelihoods import LIKELIHOODS
from augury.models.batchnorm import evaluating
from augury.models.orbit import OrbitAverage

BATCH = 100
"""Data in a batch of a data set that is given without a loader."""

Data = Iterable[tuple[Tensor, Tensor]] | tuple[Tensor, Tensor] | DataLoader[Any] | Dataset[Any]
"""Training data: pairs (inputs, labels) batch by batch, one pair of all, or a map-style data set of such pairs."""

MOVED = (
    "between two steps up the evidence something else moved the widths (before each of the last two): probably an "
    "optimiser that was given model.parameters(), which pulls them towards the best fit of the training data. Give it "
    "the weights alone: model.net.parameters()."
)
"""Said once. The first time it may have been `set_widths` or `load_state_dict`."""
DRIFTED = (
    "the processes hold different weights: their gradients were not averaged. Train through what fabric.setup returns, "
    "and call that: wrapped, optimizer = fabric.setup(model, optimizer); wrapped.mark_forward_method('average'); "
    "wrapped.average(x, rng)."
)
"""Said where processes train beside each other, not together."""
MAPPED = "Make pairs of them: ((batch['x'], batch['y']) for batch in loader), or a collate_fn that does."
"""Said of batches that are dictionaries."""


Own = TypeVar("Own", bound="Climber")


class Climber:
    """Widths, their optimiser, and the likelihood."""

    delta_optimizer: torch.optim.Optimizer
    """For the prior precision or the observation noise."""
    resting = False
    """Whether steps on the widths go without second derivatives of the network: see `evidence.laplace`."""

    def __init__(
        self, model: OrbitAverage, N: int, task: str, samples: int | None, config: EvidenceConfig, fabric: Any
    ) -> None:
        if not isinstance(model, OrbitAverage):
            raise InputError(
                f"the evidence is that of a network with a transformation: augury.OrbitAverage(net, transform); got "
                f"{type(model).__name__}."
            )
        if N < 1:
            raise InputError(f"N must be the number of training data, at least 1; got {N}.")
        self.settings, self.model, self.N, self.samples = config, model, N, samples
        with evaluating(model.net, config.batchnorm):  # refuses BatchNorm now, not after some epochs
            pass
        self.likelihood = LIKELIHOODS[choose("task", task, LIKELIHOODS)]()
        self.eta = [p for p in model.transform.parameters() if p.requires_grad and p.numel()]
        self.eta_optimizer = torch.optim.Adam(self.eta or [nn.Parameter(torch.zeros(0))], lr=config.eta_rate)
        self._moved_by_others = 0
        self._leave_widths()
        self.world, self.scattered = world_of(fabric), fabric is not None

    def _leave_widths(self) -> None:
        self._left = [p.detach().clone() for p in self.eta]

    def _check_widths(self) -> None:
        """Warn if, twice in a row, the widths are not what the last step left."""
        same = all(torch.equal(p.detach(), left.to(p)) for p, left in zip(self.eta, self._left, strict=True))
        self._moved_by_others = 0 if same else self._moved_by_others + 1
        if self._moved_by_others == 2:
            warnings.warn(MOVED, AuguryWarning, stacklevel=3)

    def state_dict(self) -> dict[str, Any]:
        """Return all that the evidence learns: widths, prior precision, noise, and their optimisers.

        Returns
        -------
        dict
            What `load_state_dict` takes; only the network's weights and your optimiser's state are not in it.
        """
        return {
            "widths": {name: value.clone() for name, value in self.model.transform.state_dict().items()},
            "likelihood": {name: value.clone() for name, value in self.likelihood.state_dict().items()},
            "eta_optimizer": self.eta_optimizer.state_dict(),
            "delta_optimizer": self.delta_optimizer.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned; with the network's and the same noise, training resumes bit for bit.

        Parameters
        ----------
        state
            The dictionary.
        """
        needed = ("likelihood", "eta_optimizer", "delta_optimizer")
        missing = [name for name in needed if not isinstance(state, Mapping) or name not in state]
        if missing:
            raise InputError(f"the state must be what state_dict() returned; it has no {', '.join(missing)}.")
        if "widths" in state:  # not in those of version 0.1
            self.model.transform.load_state_dict(state["widths"])
        self.likelihood.load_state_dict(state["likelihood"])
        self.eta_optimizer.load_state_dict(state["eta_optimizer"])
        self.delta_optimizer.load_state_dict(state["delta_optimizer"])
        self._leave_widths()

    def to(self: Own, *args: Any, **kwargs: Any) -> Own:
        """Move the model and the optimiser of its widths; prior precision and noise stay in float64 on the CPU.

        Parameters
        ----------
        args, kwargs
            As for `torch.nn.Module.to`: a device, a dtype, or both.

        Returns
        -------
        Evidence
            Itself.
        """
        self.model.to(*args, **kwargs)
        self.eta_optimizer.load_state_dict(self.eta_optimizer.state_dict())  # moves its state to the widths
        return self


def some_of(batches: Iterable[tuple[Tensor, Tensor]], n: int) -> tuple[Tensor, Tensor]:
    """Return the first n data, or all where they are fewer."""
    taken: list[tuple[Tensor, Tensor]] = []
    for pair in batches:
        taken.append(pair)
        if sum(len(x) for x, _ in taken) >= n:
            break
    if not taken:
        raise InputError("the evidence needs data: no batch came. An iterator can be passed over only once.")
    return torch.cat([x for x, _ in taken])[:n], torch.cat([y for _, y in taken])[:n]


def pairs(data: Data, model: nn.Module, rng: torch.Generator | None = None) -> Iterator[tuple[Tensor, Tensor]]:
    """Give batches of tensors on the model's device; a data set is shuffled if there is a generator."""
    if isinstance(data, tuple) and _is_pair(data):
        data = TensorDataset(*data)
    if isinstance(data, Dataset):
        shuffle = rng is not None and not isinstance(data, IterableDataset)
        data = DataLoader(data, BATCH, shuffle=shuffle, generator=generator(seed_of(rng)) if rng else None)
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    if hasattr(data, "x_train"):
        raise InputError("data must be batches or tensors; got Dataset. Pass (data.x_train, data.y_train).")
    if not isinstance(data, Iterable):
        raise InputError(f"data must be batches or tensors; got {type(data).__name__}. Pass (inputs, labels).")
    for batch in data:
        if not _is_pair(batch):
            raise InputError(
                f"a batch must be a pair (inputs, labels) of tensors; got {_described(batch)}. "
                + (MAPPED if isinstance(batch, Mapping) else "Pass tensors, as (inputs, labels).")
            )
        x, y = batch
        yield x.to(device), y.to(device)


def all_pairs(evidence: Climber, data: Data, rng: torch.Generator | None = None) -> Iterator[tuple[Tensor, Tensor]]:
    """Give batches; of a loader that gives each process a part of its own, those of all processes."""
    found, world = pairs(data, evidence.model, rng), evidence.world
    if world.size == 1 or not evidence.scattered:
        return found
    weights = [p.detach().double() for p in evidence.model.parameters()]
    sizes = sum(float(w.sum()) for w in weights), 1e-7 * sum(float(w.abs().sum()) for w in weights)
    seeds, totals = zip(*world.objects((None if rng is None else rng.initial_seed(), sizes[0])), strict=True)
    if len(set(seeds)) > 1:
        raise InputError(f"every process must give a generator of the same seed; got {sorted(set(seeds))}.")
    if max(totals) - min(totals) > sizes[1]:
        raise InputError(DRIFTED)
    return found if isinstance(data, tuple | Dataset) else interleaved(found, world)


def interleaved(batches: Iterator[tuple[Tensor, Tensor]], world: World) -> Iterator[tuple[Tensor, Tensor]]:
    """Give the batches of all processes as one, in the order of a `DistributedSampler`: a datum of each in turn."""
    while True:
        batch = next(batches, None)
        if world.agreed(batch is None):
            return
        assert batch is not None
        x, y = (world.gather(part) for part in batch)
        n = len(x) // world.size
        if len(x) == n * world.size:
            if n and x[:n].equal(x[n : 2 * n]):
                raise InputError(
                    "every process gave the same data. Give each its own part: fabric.setup_dataloaders(loader), or a "
                    "torch.utils.data.DistributedSampler."
                )
            x, y = (part.unflatten(0, (world.size, n)).transpose(0, 1).flatten(0, 1) for part in (x, y))
        yield x, y


def _is_pair(batch: object) -> bool:
    pair = batch if isinstance(batch, tuple | list) else ()
    return len(pair) == 2 and all(isinstance(part, Tensor) for part in pair)


def _described(batch: object) -> str:
    if isinstance(batch, Mapping):
        return f"a dictionary with {', '.join(map(str, batch))}"
    parts = f" of {len(batch)}" if isinstance(batch, tuple | list) else ""
    return f"{type(batch).__name__}{parts}"


def seeds_of(rng: torch.Generator) -> Callable[[int], int]:
    """Return the seed of every batch."""
    start = seed_of(rng)
    return lambda k: start + k


def seed_of(rng: torch.Generator) -> int:
    if not isinstance(rng, torch.Generator):
        raise InputError(f"rng must be a torch.Generator; got {rng!r:.40}. Make one: torch.Generator().manual_seed(0).")
    return int(torch.randint(2**61, (), generator=rng, device=rng.device))
