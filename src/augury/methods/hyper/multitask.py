"""Multi-task pre-training (paper C, Eqs. 1 and 2): every task has a descriptor that is known, and a linear head.

    minimise  mean over tasks t of  CE(W_t f(v; theta(i_t)), y_t) + lambda (1 - cos(f(v; .), f(v'; .))),

v, v' views by the groups to which task t is invariant (Augerino's augmentations, with a width that is given). Views
alone teach a single convolution its colour invariance but hardly rotation; the second term does (`lambda` is the
setting `invariance`; 0 is the paper's objective). A task whose label is unknown for an image (-1) passes it over.

With the setting `shared` all tasks use one set of weights: the multi-task baseline.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from augury.core.errors import InputError
from augury.data.dataset import Dataset
from augury.methods.hyper.losses import apart
from augury.methods.hyper.pretrainer import Pretrainer
from augury.methods.hyper.settings import AmortizeConfig
from augury.methods.hyper.views import Views
from augury.models.hyper import HyperExtractor
from augury.models.layers import seeded

UNKNOWN = -1
"""The label of an image that a task knows nothing of."""


@dataclass(frozen=True, eq=False)
class Tasks:
    """Several classification tasks on one pile of images."""

    x: Float[Tensor, "N C H W"]
    """The images."""
    y: Float[Tensor, "N T"]
    """Class of each image in each task, or `UNKNOWN`; as floats, which the training loop carries."""
    outputs: tuple[int, ...]
    """Classes of each task."""
    source: str
    """Where they came from."""


def gather(tasks: Mapping[str, Dataset]) -> Tasks:
    """Put the training sets of several tasks together; those that share their images keep sharing them."""
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
    x = piles[0] if len(piles) == 1 else torch.cat(piles)
    return Tasks(x, y, tuple(data.n_outputs for data in sets), sets[0].source)


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
        losses = [self._task(t, f[t], y[:, t].long()) for t in range(len(self.descriptors))]
        return torch.stack(losses).mean()

    def _task(self, t: int, f: Float[Tensor, "two B d"], y: Tensor) -> Tensor:
        known = (y != UNKNOWN).sum().clamp(min=1)
        outputs = self.heads[t](f.flatten(0, 1))  # type: ignore[index]
        total = F.cross_entropy(outputs, torch.cat([y, y]), ignore_index=UNKNOWN, reduction="sum")
        loss = total / (2 * known)
        if self.config.invariance and any(self.descriptors[t]):
            loss = loss + self.config.invariance * apart(f[0], f[1], self.config.centred)
        return loss
