"""A callback for Lightning's Trainer: widths, prior and evidence are learned while it trains the weights.

    self.model = augury.OrbitAverage(net, augury.Affine2d((28, 28)))             # in your LightningModule
    return torch.optim.Adam(self.model.net.parameters())                         # the weights alone
    Trainer(callbacks=[augury.lightning.LearnInvariance()]).fit(module, loader)

At the end of an epoch the evidence is computed on a sample of the training data and the widths climb it; the prior that
the evidence found acts on the weights in each of the optimiser's steps.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset

from augury.core.errors import InputError
from augury.core.rng import generator
from augury.core.world import Processes
from augury.evidence.ascent import Evidence, join
from augury.evidence.climbing import BATCH, seed_of
from augury.methods.own_loop import intervals
from augury.models.orbit import OrbitAverage
from augury.training.learner import Findings

try:
    from lightning.pytorch import Callback, LightningModule, Trainer
except ModuleNotFoundError as error:
    raise ImportError("augury.lightning needs Lightning: pip install -e '.[lightning]'.") from error


class LearnInvariance(Callback):
    """Learn the invariances of the `OrbitAverage` in a LightningModule while a Trainer trains it.

    The module's logger gets `log_evidence`, `delta` (the mean prior precision) and `width/NAME` in its unit. All that
    the callback learns is in the Trainer's checkpoints.

    Parameters
    ----------
    N
        Size of the training set. Default: that of the training loader's data set.
    task
        "classification" or "regression".
    every
        Epochs from one step up the evidence to the next.
    seed
        Seed of the noise and of the samples.
    intervals
        Whether to compute intervals and verdicts after training, which are then in `findings`; this passes over all
        data and may refit the output layer.
    pair
        Returns inputs and labels of a batch. Default: the batch is such a pair.
    settings
        As for `augury.Evidence`: samples, only, chunk, and any field of `augury.config.learn.EvidenceConfig`.
    """

    evidence: Evidence | None = None
    """The evidence, while the Trainer fits and after."""
    findings: Findings | None = None
    """Widths with intervals and verdicts after training, if asked for."""

    def __init__(
        self,
        N: int | None = None,
        task: str = "classification",
        *,
        every: int = 1,
        seed: int = 0,
        intervals: bool = False,
        pair: Callable[[Any], tuple[Tensor, Tensor]] | None = None,
        **settings: Any,
    ) -> None:
        if every < 1:
            raise InputError(f"every must be at least 1 epoch; got {every}.")
        self.N, self.task, self.every, self.intervals = N, task, every, intervals
        self.pair, self.settings, self.rng = pair, settings, generator(seed)
        self._restored: Mapping[str, Any] | None = None

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Make the evidence, or restore that of a checkpoint; refuse what would spoil it."""
        found = [part for part in pl_module.modules() if isinstance(part, OrbitAverage)]
        if len(found) != 1:
            raise InputError(
                f"the LightningModule must hold one augury.OrbitAverage(net, transform); it holds {len(found)}."
            )
        widths = {id(p) for p in found[0].transform.parameters()}
        groups = (group for optimizer in trainer.optimizers for group in optimizer.param_groups)
        if any(id(p) in widths for group in groups for p in group["params"]):
            raise InputError(
                "the module's optimiser must not move the widths, which the evidence learns: it would pull them "
                "towards the best fit of the training data. Give it the weights alone: model.net.parameters()."
            )
        N = self.N or len(self._loader(trainer).dataset)  # type: ignore[arg-type]
        self.evidence = Evidence(found[0], N, self.task, **self.settings)
        if trainer.world_size > 1:  # each process passes over the same sample, and computes its part
            join(self.evidence, Processes(trainer.global_rank, trainer.world_size, trainer.strategy.root_device))
        if self._restored is not None:
            self.evidence.load_state_dict(self._restored)
            self._restored = None

    def on_before_optimizer_step(self, trainer: Trainer, pl_module: LightningModule, optimizer: Any) -> None:
        """Add the gradient of the prior to that of the loss."""
        if self.evidence is not None:
            self.evidence.add_prior_gradient()

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Climb the evidence, and log what was found."""
        if self.evidence is None or (trainer.current_epoch + 1) % self.every:
            return
        found = self.evidence.step(self._batches(trainer), self.rng)
        widths = self.evidence.model.transform.describe()
        pl_module.log_dict({**found, **{f"width/{name}": value for name, value in widths.items()}})

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Compute intervals and verdicts, if asked for."""
        if self.intervals and self.evidence is not None:
            self.findings = intervals(self.evidence, self._batches(trainer), self.rng)

    def state_dict(self) -> dict[str, Any]:
        """Return what a checkpoint of the Trainer keeps of the callback."""
        kept = self._restored if self.evidence is None else self.evidence.state_dict()
        return {"evidence": kept, "rng": self.rng.get_state()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self._restored = state_dict["evidence"]
        self.rng.set_state(state_dict["rng"])

    def _loader(self, trainer: Trainer) -> "DataLoader[Any]":
        loader = trainer.train_dataloader
        if not isinstance(loader, DataLoader):
            raise InputError(f"LearnInvariance takes one DataLoader; this Trainer has {type(loader).__name__}.")
        return loader

    def _batches(self, trainer: Trainer) -> Iterator[tuple[Tensor, Tensor]]:
        """Give the training data in an order of their own, which leaves the Trainer's loader as it is."""
        loader, how = self._loader(trainer), {}
        if not isinstance(loader.dataset, IterableDataset):
            how = {"shuffle": True, "generator": generator(seed_of(self.rng))}
        size = loader.batch_size or BATCH
        again = DataLoader(loader.dataset, size, collate_fn=loader.collate_fn, **how)  # type: ignore[arg-type]
        return iter(again) if self.pair is None else map(self.pair, again)
