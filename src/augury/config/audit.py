"""The settings of an audit and the limits of its verdicts."""

from dataclasses import dataclass

from augury.core.errors import InputError
from augury.records.record import Settings


@dataclass(frozen=True)
class Limits:
    """Thresholds of the verdicts; `python -m papers genuine verdicts` shows how far each can be moved."""

    far: float = 0.25
    """Largest LI relative to the distance to another input, beyond the noise floor."""
    keep: float = 0.8
    """Smallest share of views that keep the prediction, relative to that of the noise floor."""
    SI: float = 0.95
    """Paper D's limit for genuine invariance, as a share of the noise floor's SI."""
    near: float = 0.05
    """In place of SI for models without gradients: as `far`, but strict."""


LIMITS = Limits()


@dataclass(frozen=True)
class AuditConfig(Settings):
    """Settings of an audit."""

    images: int = 0
    """Inputs to audit, drawn at random; 0 for all."""
    part: str = "test"
    """Part of the data: "test" (the training inputs if there is none) or "train"."""
    levels: int = 8
    """Steps of strength of a distribution over transformations; of a finite group all elements are used."""
    saliency: str = "gradient"
    """Saliency method: "gradient" (paper D), or one of captum's."""
    floor_images: int = 1000
    """Inputs for the noise floor, which costs as much per input as the audit itself."""
    drift_images: int = 1000
    """Inputs of each other set; 0 to skip other sets."""
    corruptions: bool = True
    """Whether corrupted copies of the inputs are other sets too."""
    jacobian_images: int = 200
    """Inputs for the largest singular value of the Jacobian; 0 to skip it."""
    worst: int = 6
    """Number of worst inputs to keep."""
    batch: int = 2048
    """Views in one forward pass: it bounds the memory."""
    seed: int = 0
    """Seed of everything random."""

    def __post_init__(self) -> None:
        self.at_least(levels=1, floor_images=2, batch=1, images=0, drift_images=0, jacobian_images=0, worst=0, seed=0)
        if self.images == 1 or self.drift_images == 1:
            raise InputError("images and drift_images must be at least 2, for a standard error; got 1.")
