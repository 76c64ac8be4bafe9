r"""Invariance regularisation (paper D's IR): differences of the logits over the orbit are penalised.

    minimise  1/B sum_b loss(f(x_b), y_b) + nu |f(g_b x_b) - f(x_b)|^2,   g_b from the given transformation

Paper D tunes nu until SI >= 0.95. Here nu is either given or follows SI while training: from nu = 1, after every
epoch, with SI measured on a part of the training set,

    log nu <- log nu + gain * clip((target + margin - SI) / 0.02, -1/2, 1).

The gain lets nu grow a hundredfold over the run, and by a tenth per epoch in a long one; it is halved each time SI
crosses its aim. If nu grows faster, the network learns to ignore its input. A short run may therefore end before nu is
large enough; `conclude` adds a note.

The cost is accuracy: the easiest way to ignore a transformation is to ignore the input (spectral decay).
"""

import math
from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor, nn

from augury.config.learn import LearnConfig
from augury.core.evaluation import in_evaluation
from augury.evidence.invariance import gradient_of_largest, logit_error, similarity
from augury.methods.fixed_transform import GivenTransform, random_views
from augury.training.batches import Batches
from augury.training.learner import Findings
from augury.transforms.base import Transform

PROBE = 1000  # training inputs on which SI is measured after every epoch

NU_START = 1.0  # where an automatic nu begins

MARGIN = 0.015  # margin above the target for an automatic nu: SI fluctuates between epochs by about 0.007

REACH = 100.0  # how many times larger an automatic nu can grow over a short run

FINEST = math.log(1.1)  # the smallest gain


class Regularised(GivenTransform):
    """Train the bare network on the task and on the logit invariance error."""

    def __init__(self, net: nn.Module, transform: Transform, config: LearnConfig, task: str, N: int) -> None:
        super().__init__(net, transform, config, task)
        self.automatic, self.target = config.nu == 0, config.si_target
        self.nu = torch.tensor(config.nu or NU_START, dtype=torch.float64)
        self.gain = torch.tensor(max(FINEST, math.log(REACH) / config.epochs), dtype=torch.float64)
        self.gap = torch.tensor(0.0, dtype=torch.float64)

    def objective(self, x: Tensor, y: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return the loss on the inputs as they are, and with nu times LI."""
        f, f_g = self.model(torch.cat([x, random_views(self.given, x, rng, identity=False)])).chunk(2)
        loss = self.loss(f, y)
        return loss, loss + self.nu.item() * logit_error(f, f_g[:, None]).mean()

    def end_epoch(self, batches: Batches, epoch: int, rng: torch.Generator) -> dict[str, float]:
        """Measure LI and SI, and update nu."""
        LI, SI = self.probe(batches, rng)
        diagnostics = {"nu": self.nu.item(), "LI": LI, "SI": SI}
        if self.automatic:
            self._follow(SI)
        return diagnostics

    def _follow(self, SI: float) -> None:
        gap = min(1.0, max(-0.5, (self.target + MARGIN - SI) / 0.02))
        if gap * self.gap.item() < 0:
            self.gain.copy_((self.gain / 2).clamp(min=FINEST))
        self.nu *= torch.exp(self.gain * gap)
        self.gap.fill_(gap)

    def probe(self, batches: Batches, rng: torch.Generator) -> tuple[float, float]:
        """Measure LI and SI in evaluation mode, on one random view each of the first training inputs."""
        n, LI, SI = 0, 0.0, 0.0
        with in_evaluation(self.model):
            for x, _ in batches():
                x = x.requires_grad_()
                f, f_g = self.model(x), self.model(random_views(self.given, x, rng, identity=False))
                m, m_g = gradient_of_largest(f, x), gradient_of_largest(f_g, x)
                n += len(x)
                LI += float(logit_error(f.detach(), f_g.detach()[:, None]).sum())
                SI += float(similarity(m, m_g[:, None]).sum())
                if n >= PROBE:
                    break
        return LI / n, SI / n

    def conclude(self, batches: Batches, rng: torch.Generator) -> Findings:
        """Return the widths as given, and a note if an automatic nu has not reached its target."""
        found = super().conclude(batches, rng)
        if not self.automatic:
            return found
        _, SI = self.probe(batches, rng)
        note = (
            f"SI is {SI:.3f}, below its target of {self.target:g}: training ended before nu, "
            f"at last {self.nu.item():.3g}, was large enough. Train longer (epochs), or give a larger nu."
        )
        return found if self.target <= SI else replace(found, notes=(note,))

    def extra_state(self) -> dict[str, Tensor]:
        """Return nu and its update."""
        return {"nu": self.nu, "gain": self.gain, "gap": self.gap}

    def load_extra_state(self, state: Mapping[str, Tensor]) -> None:
        for name, tensor in self.extra_state().items():
            tensor.copy_(state[name])
