"""Augury learns which invariances a data set has, and how much of each, while a PyTorch network trains.

The public names load on first use, so that `import augury` (and the command line) starts at once.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

PUBLIC = {
    "Adaptation": "augury.adaptation",
    "Affine2d": "augury.transforms.affine2d",
    "AffineCoordinates": "augury.transforms.affine2d",
    "Audit": "augury.records",
    "AuguryError": "augury.core.errors",
    "Color": "augury.transforms.color",
    "Compose": "augury.transforms.compose",
    "Correlated": "augury.transforms.correlated",
    "CyclicRotation": "augury.transforms.finite",
    "Dataset": "augury.data.dataset",
    "Evidence": "augury.evidence.ascent",
    "Flip": "augury.transforms.finite",
    "HyperExtractor": "augury.models.hyper",
    "Invariance": "augury.records",
    "InvariantClassifier": "augury.methods.classifier",
    "InvariantRegressor": "augury.methods.regressor",
    "Laplace": "augury.evidence.laplace",
    "Learned": "augury.methods.learn",
    "NtkBound": "augury.evidence.ntk",
    "OrbitAverage": "augury.models.orbit",
    "Policy": "augury.export.policy",
    "Progress": "augury.training.progress",
    "Rotation3d": "augury.transforms.points3d",
    "Signal1d": "augury.transforms.signal1d",
    "TensorBoard": "augury.training.tensorboard",
    "Transform": "augury.transforms.base",
    "Translations": "augury.transforms.finite",
    "Width": "augury.records",
    "WidthSpec": "augury.core.units",
    "adapt": "augury.methods.adapt.run",
    "amortize": "augury.methods.hyper.amortize",
    "audit": "augury.audit.run",
    "learn": "augury.methods.learn",
    "load": "augury.data.load",
    "swap_batchnorm": "augury.models.norms",
    "write_report": "augury.report.page",
}
"""Every public name and the module that holds it."""

__all__ = sorted(PUBLIC)


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module 'augury' has no attribute {name!r}")
    return getattr(import_module(PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted([*PUBLIC, "__version__"])
