"""The settings of `amortize` and `adapt`. Free of torch, so that the command line can check them at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from augury.config.learn import LearnConfig
from augury.core.errors import InputError, choose
from augury.records.record import Settings

METHODS = {
    "contrastive": "HyperSimCLR: similar features for views of one image, different ones for others; no labels",
    "multitask": "labelled tasks with known descriptors; default: paper C's coloured-rotated digits",
}
"""The methods of pre-training."""

METHOD_DEFAULTS: dict[str, dict[str, Any]] = {
    "contrastive": {"encoder": "resnet10_16", "rate": 1e-3, "weight_decay": 1e-4},
    "multitask": {"encoder": "conv16", "rate": 3e-3, "weight_decay": 0.0, "invariance": 1.0, "epochs": 15},
}
"""Defaults of a method that differ from `AmortizeConfig`. A single convolution allows a higher rate: 20 epochs
on 20,000 digits end at a loss of .23 in three of three seeds, at 1e-3 of .26 to .29."""


@dataclass(frozen=True)
class AmortizeConfig(Settings):
    """Every setting of a pre-training except its data and its groups."""

    method: str = "contrastive"
    """A key of `METHODS`."""
    encoder: str = "resnet10_16"
    """A key of `augury.models.networks.ENCODERS`, or "custom"; paper C: conv16 and resnet18."""
    d_h: int = 0
    """Hidden units of the generator of weights; 0 for the encoder's default (paper C: 40 and 64)."""
    activation: str = "tanh"
    """Their activation: "tanh" or "relu"."""
    epochs: int = 50
    """Passes over the images; paper C: 200."""
    batch: int = 128
    """Images in a mini-batch."""
    rate: float = 1e-3
    """Initial learning rate of Adam; paper C: 5e-4 (multi-task) and 3e-4 (contrastive), over many more epochs."""
    rate_end: float = 0.0
    """Learning rate at the end of the cosine schedule."""
    weight_decay: float = 0.0
    """L2 penalty; paper C: 1e-4 for contrastive pre-training."""
    temperature: float = 0.5
    """Temperature of NT-Xent; SimCLR's for small images."""
    projection: int = 128
    """Outputs of the projection head, which is discarded afterwards (SimCLR)."""
    per_step: int = 3
    """Descriptors in each step, drawn at random if there are more; paper C has three in all."""
    invariance: float = 0.0
    """Weight of 1 - cosine between features of two views: from augmentation alone a shallow network learns little."""
    centred: bool = False
    """Take that cosine about the mean of the features: less collapse, but a single convolution that must also
    distinguish digits then learns hardly any invariance to rotation."""
    shared: bool = False
    """Give all descriptors the same weights: the multi-task baseline with one shared extractor."""
    checkpoint_seconds: float = 30.0
    """Seconds between checkpoints, written at the end of an epoch; 0 for every epoch."""
    device: str = "cpu"
    """Device, as torch names it."""
    seed: int = 0
    """Seed of everything random."""

    def __post_init__(self) -> None:
        choose("method", self.method, METHODS)
        self.at_least(epochs=1, batch=1, projection=1, per_step=1)
        self.at_least(rate=0, rate_end=0, weight_decay=0, invariance=0, d_h=0, seed=0)
        if not self.temperature > 0:
            raise InputError(f"temperature must be above 0; got {self.temperature}.")
        if self.batch < 2:
            raise InputError(f"batch must be at least 2: images are compared with one another; got {self.batch}.")

    @classmethod
    def for_method(cls, method: str, **given: Any) -> "AmortizeConfig":
        """Return the method's defaults, overridden by the given settings."""
        choose("method", method, METHODS)
        return cls.of(**{**METHOD_DEFAULTS[method], **given, "method": method})

    def loop(self) -> LearnConfig:
        """Return the settings of the training loop, without widths and evidence."""
        return LearnConfig(
            method="plain",
            epochs=self.epochs,
            batch=self.batch,
            seed=self.seed,
            device=self.device,
            checkpoint_seconds=self.checkpoint_seconds,
            choose_from=1.0,
        )


def corners(K: int) -> list[tuple[float, ...]]:
    """Return the binary descriptors to pre-train on: all but "invariant to nothing" (paper C's three for K = 2).

    With a single group it is kept, as the contrast to invariance.
    """
    every = [tuple(float(c) for c in f"{n:0{K}b}") for n in range(2**K - 1, -1, -1)]
    return every if K == 1 else every[:-1]


def checked_descriptors(given: Mapping[str, Any] | Any, groups: tuple[str, ...]) -> list[tuple[float, ...]]:
    """Return descriptors as tuples, or raise unless each has one entry in [0, 1] per group."""
    values = list(given.values()) if isinstance(given, Mapping) else list(given)
    made = [tuple(float(v) for v in descriptor) for descriptor in values]
    if not made:
        raise InputError("name at least one descriptor to pre-train on; got none.")
    for descriptor in made:
        if len(descriptor) != len(groups) or not all(0 <= v <= 1 for v in descriptor):
            raise InputError(
                f"a descriptor must have one entry in [0, 1] for each of {', '.join(groups)}; got {list(descriptor)}."
            )
    return made


CRITERIA = ("evidence", "loss")
"""What chooses the descriptor: the evidence of the head, or the training loss (paper C, Eq. 3)."""


@dataclass(frozen=True)
class AdaptConfig(Settings):
    """How to adapt."""

    criterion: str = "evidence"
    """One of `CRITERIA`. The loss favours sensitivity; it is for the reproduction."""
    levels: int | None = None
    """Levels of each entry: 2 binary (paper C), 3 ternary, ...; None for continuous."""
    images: int = 1000
    """Largest number of training examples that choose the descriptor, drawn at random, in one forward pass; the head is
    fitted to all."""
    scouts: int = 400
    """Largest number of them in the first search by evidence; its results are compared on all of them.
    A head on 400 examples is solved in a tenth of the time of one on 1,000."""
    climbs: int = 2
    """Number of best starts from which gradient steps are taken; with one, a better optimum can be missed."""
    steps: int = 12
    """Largest number of gradient steps from each start."""
    rate: float = 0.3
    """Initial step of the entry that moves most; halved when the criterion falls."""
    ridge: float = 0.01
    """Prior precision of the head if the loss is the criterion: without it, separable classes have no optimum."""
    tolerance: float = 0.01
    """Tolerance of the head's log evidence, in nats."""
    folds: int = 5
    """Folds of the held-out estimate of accuracy; 0 for none. R^2 is leave-one-out."""
    failure: float = 0.05
    """Probability with which the bound may fail."""
    seed: int = 0
    """Seed of everything random."""
    device: str = "cpu"
    """As torch names it."""

    def __post_init__(self) -> None:
        choose("criterion", self.criterion, CRITERIA)
        self.at_least(images=2, scouts=2, climbs=1, steps=0, folds=0)
        if self.folds == 1:
            raise InputError("folds must be 0 (no held-out estimate) or at least 2; got 1.")
        if self.levels is not None and self.levels < 2:
            raise InputError(f"levels must be at least 2 (binary), or left out; got {self.levels}.")
        for name in ("rate", "ridge", "tolerance"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be positive; got {getattr(self, name)}.")
        if not 0 < self.failure < 1:
            raise InputError(f"failure must lie between 0 and 1; got {self.failure}.")
