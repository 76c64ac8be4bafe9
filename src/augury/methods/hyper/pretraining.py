"""Pre-training of a hyper-extractor (paper C): by several tasks, or contrastive (HyperSimCLR).

A step draws two views v, v' of every image for each descriptor i, by the groups that the descriptor names, and passes
them through the weights that the descriptor generates. Statistics of batch normalisation are those of one
descriptor's views: mixed over descriptors they would fit none. Heads are discarded afterwards.

    multitask     mean over tasks t of  CE(W_t f(v; theta(i_t)), y_t) + lambda apart(f(v; .), f(v'; .))     (Eqs. 1, 2)
    contrastive   mean over descriptors i of  NT-Xent(p(f(v; theta(i))), p(f(v'; theta(i))))

    NT-Xent       - mean over the 2B views a of  log  exp(z_a . z_b / tau) / sum_{c != a} exp(z_a . z_c / tau),
                  z of unit length, b the other view of the same image (Chen et al., 2020)
    apart         1 - mean cosine between the features of two views of the same image

Multi-task: every task has a known descriptor and a linear head; a label that is unknown (-1) is left out. From views
alone a single convolution learns colour invariance but hardly rotation; the term with lambda (setting `invariance`; 0
in the paper) adds it. Collapsed features lower it too: report the cosine of random pairs beside it, or take the
cosine about the mean of the batch (`centred`). With `shared` all tasks use one set of weights: the baseline.

Contrastive: p is a projection head shared by all descriptors. With a single descriptor the generated weights are
those of an ordinary network, and this is SimCLR: [1, 1] for all groups, [1, 0] for the first alone (ventral-SimCLR),
[0, 1] for the second (dorsal-SimCLR).
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from augury.config.hyper import AmortizeConfig
from augury.core.errors import InputError
from augury.core.world import World
from augury.data.dataset import Dataset
from augury.data.rows import Rows, in_memory
from augury.methods.hyper.views import Views
from augury.models.hypernetwork import HyperExtractor
from augury.models.layers import seeded
from augury.training.learner import Learner
from augury.training.optimizers import Cosine

SHARED_DESCRIPTOR = 0.5  # every entry of the one descriptor of a shared extractor


class Pretrainer(Learner):
    """Trains a hyper-extractor."""

    def __init__(
        self,
        extractor: HyperExtractor,
        heads: nn.Module,
        views: Views,
        descriptors: Sequence[Sequence[float]],
        config: AmortizeConfig,
    ) -> None:
        self.model: HyperExtractor = extractor
        self.heads, self.views, self.config = heads, views, config
        self.descriptors = [tuple(descriptor) for descriptor in descriptors]
        parameters = [*extractor.parameters(), *heads.parameters()]
        self.weights = torch.optim.Adam(parameters, lr=config.rate, weight_decay=config.weight_decay)
        self.cosines = [Cosine(self.weights, config.rate_end)]

    def join(self, world: World) -> None:
        self.world = world
        for norm in self.model.norms:
            norm.world = world

    def whole(self, rows: Tensor, rng: torch.Generator, dim: int = 0) -> Tensor:
        """Return the rows of all processes: losses that couple a batch need all of it, on every process."""
        return self.world.gather(rows, getattr(rng, "part", None), dim)

    @abstractmethod
    def objective(
        self, x: Float[Tensor, "B ..."], y: Shaped[Tensor, "B ..."], rng: torch.Generator
    ) -> Float[Tensor, ""]:
        """Return what is minimised."""

    def features(
        self, x: Float[Tensor, "B ..."], which: Sequence[int], rng: torch.Generator
    ) -> Float[Tensor, "M two B d"]:
        """Return the features of two views of every image at some of the descriptors."""
        chosen = [self.descriptors[m] for m in which]
        i = next(self.model.parameters()).new_tensor(chosen)
        if self.config.shared:
            i = torch.full_like(i, SHARED_DESCRIPTOR)
        twice = torch.cat([x, x])
        views = torch.stack([self.views(twice, descriptor, rng) for descriptor in chosen])
        return self.model.each(views, i).unflatten(1, (2, len(x)))

    def train_step(self, x: Tensor, y: Tensor, rng: torch.Generator) -> float:
        """Take one step on the objective."""
        loss = self.objective(x, y, rng)
        self.weights.zero_grad()
        loss.backward()  # of the whole batch on every process, through this one's rows
        self.world.sum_(p.grad for group in self.weights.param_groups for p in group["params"] if p.grad is not None)
        self.weights.step()
        return loss.item()

    def optimizers(self) -> Mapping[str, torch.optim.Optimizer]:
        return {"weights": self.weights}

    def modules(self) -> Mapping[str, nn.Module]:
        return {"model": self.model, "heads": self.heads}


def nt_xent(z: Float[Tensor, "B d"], z_other: Float[Tensor, "B d"], temperature: float = 0.5) -> Float[Tensor, ""]:
    """Return the normalised temperature-scaled cross-entropy of Chen et al. (2020)."""
    B = len(z)
    unit = F.normalize(torch.cat([z, z_other]), dim=1)
    logits = (unit @ unit.T) / temperature
    logits = logits.masked_fill(torch.eye(2 * B, dtype=torch.bool, device=z.device), -torch.inf)
    partner = torch.arange(2 * B, device=z.device).roll(B)
    return F.cross_entropy(logits, partner)


def apart(f: Float[Tensor, "B d"], f_other: Float[Tensor, "B d"], centred: bool = False) -> Float[Tensor, ""]:
    """Return 1 - cosine between the features of two views."""
    if centred:
        mean = (f.mean(0) + f_other.mean(0)) / 2
        f, f_other = f - mean, f_other - mean
    return 1 - F.cosine_similarity(f, f_other, dim=1).mean()


UNKNOWN = -1  # the label of an image without one for a task


def carried(x: Tensor | Rows, y: Tensor, source: str) -> Dataset:
    """Return images as the training loop takes them; there is no test set."""
    return Dataset(x, y, x[:0], y[:0], task="regression", source=source)


def gather(tasks: Mapping[str, Dataset]) -> tuple[Dataset, tuple[int, ...]]:
    """Merge the training sets of several tasks, and return how many classes each has; shared images stay shared.

    Targets are the class of each image in each task, or `UNKNOWN`; as floats, which the training loop carries.
    """
    if not tasks:
        raise InputError("multi-task pre-training needs at least one task; got none.")
    sets = list(tasks.values())
    for name, data in tasks.items():
        if data.kind != "image" or data.task != "classification" or data.input_shape != sets[0].input_shape:
            raise InputError(
                f"every task must classify images of one shape; task '{name}' has {data.kind}s "
                f"{list(data.input_shape)} for {data.task}."
            )
    piles = list({id(data.x_train): data.x_train for data in sets}.values())
    y = torch.full((sum(map(len, piles)), len(sets)), float(UNKNOWN))
    for t, data in enumerate(sets):
        place = next(k for k, pile in enumerate(piles) if pile is data.x_train)
        start = sum(len(pile) for pile in piles[:place])
        y[start : start + len(data.x_train), t] = data.y_train.float()
    x = piles[0] if len(piles) == 1 else torch.cat([in_memory(pile) for pile in piles])
    return carried(x, y, sets[0].source), tuple(data.n_outputs for data in sets)


class MultiTask(Pretrainer):
    """Trains by the cross-entropy of all tasks."""

    def __init__(
        self,
        extractor: HyperExtractor,
        outputs: Sequence[int],
        views: Views,
        descriptors: Sequence[Sequence[float]],
        config: AmortizeConfig,
        rng: torch.Generator,
    ) -> None:
        if len(outputs) != len(descriptors):
            raise InputError(
                f"every task must have a descriptor; got {len(outputs)} tasks and {len(descriptors)} descriptors."
            )
        heads = nn.ModuleList([seeded(nn.Linear, extractor.features, n, rng=rng) for n in outputs])
        super().__init__(extractor, heads.to(config.device), views, descriptors, config)

    def objective(self, x: Tensor, y: Tensor, rng: torch.Generator) -> Tensor:
        """Return the mean loss of the tasks."""
        f = self.features(x, range(len(self.descriptors)), rng)
        outputs = [self.whole(self.heads[t](f[t]), rng, 1) for t in range(len(f))]  # type: ignore[index]
        f, y = self.whole(f, rng, 2), self.whole(y, rng)
        losses = [self._task(t, f[t], outputs[t], y[:, t].long()) for t in range(len(self.descriptors))]
        return torch.stack(losses).mean()

    def _task(self, t: int, f: Float[Tensor, "two B d"], outputs: Float[Tensor, "two B C"], y: Tensor) -> Tensor:
        known = (y != UNKNOWN).sum().clamp(min=1)
        total = F.cross_entropy(outputs.flatten(0, 1), torch.cat([y, y]), ignore_index=UNKNOWN, reduction="sum")
        loss = total / (2 * known)
        if self.config.invariance and any(self.descriptors[t]):
            loss = loss + self.config.invariance * apart(f[0], f[1], self.config.centred)
        return loss


class Contrastive(Pretrainer):
    """Trains by NT-Xent; no labels."""

    def __init__(
        self,
        extractor: HyperExtractor,
        views: Views,
        descriptors: Sequence[Sequence[float]],
        config: AmortizeConfig,
        rng: torch.Generator,
    ) -> None:
        d = extractor.features
        head = nn.Sequential(
            seeded(nn.Linear, d, d, rng=rng), nn.ReLU(), seeded(nn.Linear, d, config.projection, rng=rng)
        )
        super().__init__(extractor, head.to(config.device), views, descriptors, config)

    def objective(self, x: Tensor, y: Tensor, rng: torch.Generator) -> Tensor:
        """Return the mean NT-Xent of this step's descriptors."""
        M = len(self.descriptors)
        which = range(M) if self.config.per_step >= M else torch.randperm(M, generator=rng)[: self.config.per_step]
        f = self.features(x, list(map(int, which)), rng)
        z, f = self.whole(self.heads(f), rng, 2), self.whole(f, rng, 2)
        loss = torch.stack([nt_xent(a, b, self.config.temperature) for a, b in z]).mean()
        if self.config.invariance:
            loss = loss + self.config.invariance * torch.stack([apart(a, b, self.config.centred) for a, b in f]).mean()
        return loss
