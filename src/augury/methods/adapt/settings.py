"""The settings of an adaptation. Free of torch, so that the command line can check them at once."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from augury.core.errors import InputError, choose

CRITERIA = ("evidence", "loss")
"""What chooses the descriptor: the evidence of the head, or the training loss (paper C, Eq. 3)."""


@dataclass(frozen=True)
class AdaptConfig:
    """How to adapt."""

    criterion: str = "evidence"
    """One of `CRITERIA`. The loss rewards sensitivity and is there for the reproduction."""
    levels: int | None = None
    """Discretise each entry to so many levels: 2 binary (paper C), 3 ternary, ...; None for continuous."""
    images: int = 1000
    """At most so many training examples choose the descriptor, drawn at random; the head always sees all of them. They
    pass through the network at once."""
    scouts: int = 400
    """By evidence, so many of them look around first, where they are fewer; what they find is compared on all of them.
    A head on 400 examples is solved in a tenth of the time of one on 1,000."""
    climbs: int = 2
    """From so many of the best starts gradient steps are taken. Two, because one corner can hide a higher hill."""
    steps: int = 12
    """Most gradient steps in each climb."""
    rate: float = 0.3
    """How far the first step moves the entry that moves most; halved where the criterion falls."""
    ridge: float = 0.01
    """Prior precision of the head where the loss is the criterion: without any, separable classes have no optimum."""
    tolerance: float = 0.01
    """How far from its optimum the head's log evidence may stay, in nats."""
    folds: int = 5
    """Parts for the held-out estimate of accuracy; 0 for none. R^2 leaves out one example at a time."""
    failure: float = 0.05
    """Probability with which the bound may fail."""
    seed: int = 0
    """Everything random follows from it."""
    device: str = "cpu"
    """As torch names it."""

    def __post_init__(self) -> None:
        choose("criterion", self.criterion, CRITERIA)
        for name, lowest in (("images", 2), ("scouts", 2), ("climbs", 1), ("steps", 0), ("folds", 0)):
            if getattr(self, name) < lowest:
                raise InputError(f"{name} must be at least {lowest}; got {getattr(self, name)}.")
        if self.folds == 1:
            raise InputError("folds must be 0 (no held-out estimate) or at least 2; got 1.")
        if self.levels is not None and self.levels < 2:
            raise InputError(f"levels must be at least 2 (binary), or left out; got {self.levels}.")
        for name in ("rate", "ridge", "tolerance"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be positive; got {getattr(self, name)}.")
        if not 0 < self.failure < 1:
            raise InputError(f"failure must lie between 0 and 1; got {self.failure}.")

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "AdaptConfig":
        """Make settings from names and values; an unknown name is an error."""
        for name in settings:
            choose("setting", name, [f.name for f in fields(cls)])
        return cls(**settings)

    def to_json(self) -> dict[str, Any]:
        """Return the settings as plain data."""
        return asdict(self)
