"""The settings of an audit. Free of torch, so that the command line can show and check them at once."""

from dataclasses import dataclass, fields
from typing import Any

from augury.core.errors import InputError, choose
from augury.records.results import Record


@dataclass(frozen=True)
class Limits:
    """Where the verdicts part; `augury reproduce genuine verdicts` shows how far each can be moved."""

    far: float = 0.25
    """Largest share of the distance to another input that a view may lie away, beyond the noise floor."""
    keep: float = 0.8
    """Smallest share of predictions that must survive, of those that survive the noise floor."""
    SI: float = 0.95
    """Paper D's limit for genuine invariance, as a share of the noise floor's SI."""
    near: float = 0.05
    """In place of SI for models without gradients: as `far`, but strict."""


LIMITS = Limits()
"""The limits of every audit."""


@dataclass(frozen=True)
class AuditConfig(Record):
    """How an audit is carried out."""

    images: int = 0
    """Inputs to audit, drawn at random; 0 for all."""
    part: str = "test"
    """Which part of the data: "test" (the training inputs where there are none) or "train"."""
    levels: int = 8
    """Steps of strength of a distribution over transformations; a finite group shows all its elements."""
    saliency: str = "gradient"
    """Saliency maps: "gradient" (paper D), or one of captum's methods."""
    floor_images: int = 1000
    """Inputs for the noise floor, which costs as much per input as the audit itself."""
    drift_images: int = 1000
    """Inputs of each other set; 0 leaves the question out."""
    corruptions: bool = True
    """Whether to ask on corrupted copies of the inputs too."""
    jacobian_images: int = 200
    """Inputs at which the Jacobian's largest singular value is taken; 0 leaves it out."""
    worst: int = 6
    """How many of the worst inputs to keep."""
    batch: int = 2048
    """Views in one forward pass: it bounds the memory."""
    seed: int = 0
    """Everything random follows from it."""

    def __post_init__(self) -> None:
        for name, smallest in (("levels", 1), ("floor_images", 2), ("batch", 1)):
            _at_least(name, getattr(self, name), smallest)
        for name in ("images", "drift_images", "jacobian_images", "worst", "seed"):
            _at_least(name, getattr(self, name), 0)
        if self.images == 1 or self.drift_images == 1:
            raise InputError("images and drift_images must be at least 2, for a standard error; got 1.")

    @classmethod
    def of(cls, **given: Any) -> "AuditConfig":
        """Return the defaults with what was given in their place."""
        for name in given:
            choose("setting", name, {f.name for f in fields(cls)})
        return cls(**given)


def _at_least(name: str, value: int, smallest: int) -> None:
    if value < smallest:
        raise InputError(f"{name} must be at least {smallest}; got {value}.")
