"""The settings of a run: one frozen dataclass, and one table of what differs between methods.

Free of torch, so that the command line can show and check settings at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from augury.core.errors import InputError, choose
from augury.records import Record

DEFAULT_METHOD = "augerino"
"""The method of `augury learn` when none is named."""

METHOD_DEFAULTS: dict[str, dict[str, Any]] = {
    "plain": {"samples": 1, "samples_eval": 1},
    "augmented": {},
    "augerino": {"eta_rate": 0.005, "eta_rate_end": 0.005},
}
"""Where a method's defaults differ from those of `LearnConfig`."""

OPTIMIZERS = ("adam", "sgd")


@dataclass(frozen=True)
class LearnConfig(Record):
    """Every setting of a run except its data."""

    method: str = DEFAULT_METHOD
    """Which algorithm: a key of `METHOD_DEFAULTS`."""
    model: str = "cnn"
    """Name of the network, or "custom" for a module of the user's own."""
    generators: tuple[str, ...] = ("affine",)
    """Which transformations may act; all six affine generators, as in paper A, unless told."""
    widths: Mapping[str, float] = field(default_factory=dict)
    """Widths at the start in their units; zero for those not named, as in paper A. `augmented` keeps them."""
    samples: int = 8
    """S, views per input in training; paper A takes 31 (MNIST) and 20 (CIFAR-10); the cost is linear in S."""
    samples_eval: int = 20
    """Views per input in evaluation."""
    sampling: str = "independent"
    """How the noise is drawn: "independent" (paper A), "stratified" or "grid"."""
    epochs: int = 30
    """Passes over the training set."""
    batch: int = 125
    """Inputs in a mini-batch."""
    optimizer: str = "adam"
    """For the weights: "adam" (paper A on MNIST) or "sgd" with momentum 0.9 (paper A on CIFAR-10)."""
    rate: float = 0.005
    """Learning rate of the weights at the start: paper A's for Adam."""
    rate_end: float = 1e-6
    """And at the end of its cosine schedule (paper A)."""
    weight_decay: float = 1e-4
    """L2 penalty on the weights: Augerino's, kept by paper A for its baseline."""
    eta_rate: float = 0.05
    """Learning rate of the widths, Adam (paper A)."""
    eta_rate_end: float = 0.005
    """And at the end of its cosine schedule (paper A on CIFAR-10)."""
    eta_reward: float = 0.01
    """Augerino: how much of the norm of eta is subtracted from the loss (paper A, section 5)."""
    settle_window: int = 0
    """Stop early when nothing has drifted over so many epochs; 0 trains to the end."""
    settle_eta: float = 0.02
    """The largest drift of a width that counts as rest, as eta: 0.02 of a rotation is about one degree."""
    settle_evidence: float = 0.005
    """The same for the log evidence per example, in nats."""
    evaluate_every: int = 0
    """Score the test set after every so many epochs; 0 only at the end. It never steers the training."""
    checkpoint_seconds: float = 10.0
    """Write a checkpoint after the first epoch that ends so long after the last one; 0 after every epoch."""
    device: str = "cpu"
    """Where to train, as torch names it: "cpu", "cuda", "cuda:1", "mps"."""
    seed: int = 0
    """Everything random follows from it."""

    def __post_init__(self) -> None:
        choose("method", self.method, METHOD_DEFAULTS)
        choose("optimizer", self.optimizer, OPTIMIZERS)
        for name in ("samples", "samples_eval", "epochs", "batch"):
            _at_least(name, getattr(self, name), 1)
        for name in ("rate", "rate_end", "weight_decay", "eta_rate", "eta_rate_end", "checkpoint_seconds"):
            _at_least(name, getattr(self, name), 0)
        for name in ("settle_window", "evaluate_every", "settle_eta", "settle_evidence", "seed"):
            _at_least(name, getattr(self, name), 0)

    @classmethod
    def for_method(cls, method: str, **given: Any) -> "LearnConfig":
        """Return the method's defaults with what was given in their place.

        Parameters
        ----------
        method
            A key of `METHOD_DEFAULTS`.
        given
            Settings by the name of their field.

        Returns
        -------
        LearnConfig
            The settings.
        """
        choose("method", method, METHOD_DEFAULTS)
        for name in given:
            choose("setting", name, {f.name for f in fields(cls)})
        return cls(**{**METHOD_DEFAULTS[method], **given, "method": method})

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "LearnConfig":
        """Rebuild the settings from what `to_json` gave.

        Parameters
        ----------
        values
            The fields; an unknown one is an error.

        Returns
        -------
        LearnConfig
            The settings.
        """
        lists = {"generators": tuple(values["generators"])} if "generators" in values else {}
        return super().from_json({**values, **lists})


def _at_least(name: str, value: int | float, smallest: int) -> None:
    if not value >= smallest:
        why = " One view per input is the smallest orbit." if name.startswith("samples") else ""
        raise InputError(f"{name} must be at least {smallest:g}; got {value}.{why}")
