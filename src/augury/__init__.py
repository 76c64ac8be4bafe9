"""Augury learns which invariances a data set has, and how much of each, while a PyTorch network trains.

The public names load on first use, so that `import augury` (and the command line) starts at once.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

PUBLIC = {
    "Adaptation": "augury.records.results",
    "Affine2d": "augury.transforms.affine2d",
    "AffineCoordinates": "augury.transforms.affine2d",
    "Audit": "augury.records.results",
    "AuguryError": "augury.core.errors",
    "Color": "augury.transforms.color",
    "Compose": "augury.transforms.compose",
    "Correlated": "augury.transforms.compose",
    "CyclicRotation": "augury.transforms.finite_groups",
    "Dataset": "augury.data.dataset",
    "Evidence": "augury.evidence.ascent",
    "Flip": "augury.transforms.finite_groups",
    "HyperExtractor": "augury.models.hypernetwork",
    "Invariance": "augury.records.results",
    "InvariantClassifier": "augury.methods.estimators",
    "InvariantRegressor": "augury.methods.estimators",
    "Laplace": "augury.evidence.laplace",
    "Learned": "augury.methods.learn",
    "NtkBound": "augury.evidence.ntk",
    "OrbitAverage": "augury.models.orbit",
    "Policy": "augury.export.policy",
    "Progress": "augury.training.progress",
    "Rotation3d": "augury.transforms.points3d",
    "Signal1d": "augury.transforms.signal1d",
    "TensorBoard": "augury.training.progress",
    "Transform": "augury.transforms.base",
    "Translations": "augury.transforms.finite_groups",
    "Width": "augury.records.results",
    "WidthSpec": "augury.core.units",
    "adapt": "augury.methods.hyper.adapt",
    "amortize": "augury.methods.hyper.amortize",
    "audit": "augury.auditing.audit",
    "learn": "augury.methods.learn",
    "load": "augury.data.load",
    "load_model": "augury.training.saved_model",
    "swap_batchnorm": "augury.models.batchnorm",
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
