"""OrbitAverage makes any network invariant: f_hat(x) = 1/S sum_s f(g(x, eps_s; eta)) (paper A, Eq. 1)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from augury.config.learn import LearnConfig
from augury.config.synonyms import synonyms
from augury.core.errors import InputError
from augury.core.rng import generator
from augury.models.batchnorm import hold_frozen
from augury.models.own import check_module, check_output, check_transform
from augury.transforms.base import Transform


class OrbitAverage(nn.Module):
    """A network averaged over random transformations of its input.

    The S views of every input are folded into the batch axis: one forward of B * S inputs, then a mean.
    In evaluation mode all inputs share one set of noise from a fixed seed: the average is then a function of the
    input alone, not of the rest of the batch.

    Parameters
    ----------
    net
        Any network f.
    transform
        The distribution over transformations, with its widths eta.
    samples, samples_eval
        Views per input while training and while evaluating.
    chunk
        Largest number of views in one forward pass while evaluating: it bounds the memory, and larger passes leave the
        cache (8,192 took 1.3 to 4 times as long).
    seed
        Seed of the noise in evaluation mode.
    """

    @synonyms
    def __init__(
        self,
        net: nn.Module,
        transform: Transform,
        samples: int = LearnConfig.samples,
        samples_eval: int = LearnConfig.samples_eval,
        chunk: int = 500,
        seed: int = 0,
    ) -> None:
        super().__init__()
        check_module(net)
        check_transform(transform)
        for name, value in (("samples", samples), ("samples_eval", samples_eval), ("chunk", chunk)):
            if value < 1:
                raise InputError(f"{name} must be at least 1; got {value}. One view per input is the smallest orbit.")
        self.net = net
        self.transform = transform
        self.samples, self.samples_eval, self.chunk, self.seed = samples, samples_eval, chunk, seed

    def views(self, x: Float[Tensor, "B ..."], rng: torch.Generator, samples: int | None = None) -> Tensor:
        """Return S views (default: `samples`) of every input, side by side in the batch axis: [B * S, ...]."""
        views: Tensor = self.transform(x, samples or self.samples, rng)
        return views.flatten(0, 1)

    def average(
        self, x: Float[Tensor, "B ..."], rng: torch.Generator, samples: int | None = None
    ) -> Float[Tensor, "B D"]:
        """Return f_hat(x) over S views (default: `samples`), noise from `rng`; differentiable in weights and eta."""
        f = self.net(self.views(x, rng, samples))
        check_output(f)
        return f.unflatten(0, (len(x), -1)).mean(1)

    def train(self, mode: bool = True) -> "OrbitAverage":
        """Set the mode; in training, batch normalisation that is frozen stays in evaluation mode."""
        super().train(mode)
        if mode:
            hold_frozen(self)
        else:
            self._eps = self._noise(generator(self.seed))
        return self

    def forward(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B D"]:
        """Return f_hat(x): fresh noise from torch's global generator in training mode, a fixed seed in evaluation."""
        if self.training:
            return self.average(x, generator(int(torch.randint(2**62, ())), x.device))
        self.transform.check(x)
        if torch.compiler.is_exporting():  # a program has its noise as a constant, and no chunks
            return self._mean(x, self._eps.to(x).expand(x.shape[0], -1, -1))
        eps = self._noise(generator(self.seed, x.device)).to(x)
        per_chunk = max(1, self.chunk // self.samples_eval)
        return torch.cat([self._mean(part, eps.expand(len(part), -1, -1)) for part in x.split(per_chunk)])

    def _noise(self, rng: torch.Generator) -> Float[Tensor, "1 S K"]:
        return self.transform.noise(1, self.samples_eval, rng)

    def _mean(self, x: Tensor, eps: Tensor) -> Tensor:
        f = self.net(self.transform.act(x, eps).flatten(0, 1))
        check_output(f)
        return f.unflatten(0, eps.shape[:2]).mean(1)
