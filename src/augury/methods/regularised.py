r"""Invariance regularisation (paper D's IR): the network's logits are pulled together over the orbit.

    minimise  1/B sum_b loss(f(x_b), y_b) + nu |f(g_b x_b) - f(x_b)|^2,   g_b from the given transformation

Paper D tunes nu until SI >= 0.95. Here nu is either given or follows SI while training: after every epoch, SI is
measured on a part of the training set, and nu grows by up to a tenth while SI is below the target (and a margin) and
shrinks half as fast while it is above,

    log nu <- log nu + log 1.1 * clip((target + 0.01 - SI) / 0.02, -1/2, 1),   nu = 1 at the start.

The price is accuracy: the easiest way to ignore a transformation is to ignore the input (spectral decay).
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from augury.core.errors import InputError
from augury.evidence.invariance import gradient_of_largest, logit_error, similarity
from augury.methods.given import GivenTransform, moving_views
from augury.training.batches import Batches
from augury.training.config import LearnConfig
from augury.transforms.base import Transform

PROBE = 1000
"""Training inputs on which SI is measured after every epoch."""

NU_START = 1.0
"""Where an automatic nu begins."""

MARGIN = 0.01
"""How far above the target an automatic nu aims: SI jumps about from epoch to epoch."""


class Regularised(GivenTransform):
    """Train the bare network on the task and on the logit invariance error.

    Parameters
    ----------
    net
        The network.
    transform
        What the logits shall not see.
    config
        The settings.
    task
        "classification" or "regression".
    N
        Size of the training set; not used here.
    nu
        Weight of the logit error; 0 for one that follows SI until that is `si_target`.
    si_target
        Saliency similarity that an automatic nu aims at (paper D).
    """

    def __init__(
        self,
        net: nn.Module,
        transform: Transform,
        config: LearnConfig,
        task: str,
        N: int,
        nu: float | None = None,
        si_target: float | None = None,
    ) -> None:
        super().__init__(net, transform, config, task)
        nu = config.nu if nu is None else nu
        si_target = config.si_target if si_target is None else si_target
        for name, value in (("nu", nu), ("si_target", si_target)):
            if not value >= 0:
                raise InputError(f"{name} must be at least 0; got {value}. nu = 0 lets it follow SI.")
        self.automatic, self.target = nu == 0, si_target
        self.nu = torch.tensor(nu or NU_START, dtype=torch.float64)

    def objective(self, x: Tensor, y: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return the loss on the inputs as they are, and with nu times LI."""
        f, f_g = self.model(torch.cat([x, moving_views(self.given, x, rng)])).chunk(2)
        loss = self.loss(f, y)
        return loss, loss + self.nu.item() * logit_error(f, f_g[:, None]).mean()

    def end_epoch(self, batches: Batches, epoch: int, rng: torch.Generator) -> dict[str, float]:
        """Measure LI and SI, and let nu follow.

        Parameters
        ----------
        batches
            The training set.
        epoch
            Not used.
        rng
            Where random views come from.

        Returns
        -------
        dict
            nu of this epoch, and where it has brought the network.
        """
        LI, SI = self.probe(batches, rng)
        diagnostics = {"nu": self.nu.item(), "LI": LI, "SI": SI}
        if self.automatic:
            self.nu *= 1.1 ** min(1.0, max(-0.5, (self.target + MARGIN - SI) / 0.02))
        return diagnostics

    def probe(self, batches: Batches, rng: torch.Generator) -> tuple[float, float]:
        """Measure LI and SI in evaluation mode, on one random view each of the first training inputs.

        Parameters
        ----------
        batches
            The training set.
        rng
            Where random views come from.

        Returns
        -------
        tuple
            LI and SI.
        """
        was_training = self.model.training
        self.model.eval()
        n, LI, SI = 0, 0.0, 0.0
        for x, _ in batches():
            x = x.requires_grad_()
            f, f_g = self.model(x), self.model(moving_views(self.given, x, rng))
            m, m_g = gradient_of_largest(f, x), gradient_of_largest(f_g, x)
            n += len(x)
            LI += float(logit_error(f.detach(), f_g.detach()[:, None]).sum())
            SI += float(similarity(m, m_g[:, None]).sum())
            if n >= PROBE:
                break
        self.model.train(was_training)
        return LI / n, SI / n

    def extra_state(self) -> dict[str, Tensor]:
        """Return nu.

        Returns
        -------
        dict
            As a tensor.
        """
        return {"nu": self.nu}

    def load_extra_state(self, state: Mapping[str, Tensor]) -> None:
        """Take nu back.

        Parameters
        ----------
        state
            What `extra_state` gave.
        """
        self.nu.copy_(state["nu"])
