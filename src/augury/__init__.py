"""Augury learns which invariances a data set has, and how much of each, while a PyTorch network trains.

Public names load on first use, so that `import augury` (and the command line) does not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.2.0"

if TYPE_CHECKING:  # what type checkers see; PUBLIC has the same names, as tests/test_public_names.py checks
    from augury.auditing.audit import audit as audit
    from augury.core import units as units
    from augury.core.errors import AuguryError as AuguryError
    from augury.data.dataset import Dataset as Dataset
    from augury.data.load import load as load
    from augury.evidence import likelihoods as likelihoods
    from augury.evidence.ascent import Evidence as Evidence
    from augury.evidence.laplace import Laplace as Laplace
    from augury.evidence.ntk import NtkBound as NtkBound
    from augury.export.policy import Policy as Policy
    from augury.methods.estimators import InvariantClassifier as InvariantClassifier
    from augury.methods.estimators import InvariantRegressor as InvariantRegressor
    from augury.methods.hyper.adapt import Adapted as Adapted
    from augury.methods.hyper.adapt import adapt as adapt
    from augury.methods.hyper.amortize import Amortized as Amortized
    from augury.methods.hyper.amortize import amortize as amortize
    from augury.methods.learn import Learned as Learned
    from augury.methods.learn import learn as learn
    from augury.methods.own_loop import intervals as intervals
    from augury.models.batchnorm import swap_batchnorm as swap_batchnorm
    from augury.models.hypernetwork import HyperExtractor as HyperExtractor
    from augury.models.orbit import OrbitAverage as OrbitAverage
    from augury.records.results import Adaptation as Adaptation
    from augury.records.results import Audit as Audit
    from augury.records.results import Invariance as Invariance
    from augury.records.results import Width as Width
    from augury.report.page import write_report as write_report
    from augury.training.progress import Progress as Progress
    from augury.training.progress import TensorBoard as TensorBoard
    from augury.training.saved_model import load_model as load_model
    from augury.transforms.affine2d import Affine2d as Affine2d
    from augury.transforms.affine2d import AffineCoordinates as AffineCoordinates
    from augury.transforms.base import Transform as Transform
    from augury.transforms.color import Color as Color
    from augury.transforms.compose import Compose as Compose
    from augury.transforms.compose import Correlated as Correlated
    from augury.transforms.finite_groups import CyclicRotation as CyclicRotation
    from augury.transforms.finite_groups import Flip as Flip
    from augury.transforms.finite_groups import Translations as Translations
    from augury.transforms.points3d import Rotation3d as Rotation3d
    from augury.transforms.signal1d import Signal1d as Signal1d

_HOMES = {
    "auditing.audit": "audit",
    "core": "units",
    "core.errors": "AuguryError",
    "data.dataset": "Dataset",
    "data.load": "load",
    "evidence": "likelihoods",
    "evidence.ascent": "Evidence",
    "evidence.laplace": "Laplace",
    "evidence.ntk": "NtkBound",
    "export.policy": "Policy",
    "methods.estimators": "InvariantClassifier InvariantRegressor",
    "methods.hyper.adapt": "Adapted adapt",
    "methods.hyper.amortize": "Amortized amortize",
    "methods.learn": "Learned learn",
    "methods.own_loop": "intervals",
    "models.batchnorm": "swap_batchnorm",
    "models.hypernetwork": "HyperExtractor",
    "models.orbit": "OrbitAverage",
    "records.results": "Adaptation Audit Invariance Width",
    "report.page": "write_report",
    "training.progress": "Progress TensorBoard",
    "training.saved_model": "load_model",
    "transforms.affine2d": "Affine2d AffineCoordinates",
    "transforms.base": "Transform",
    "transforms.color": "Color",
    "transforms.compose": "Compose Correlated",
    "transforms.finite_groups": "CyclicRotation Flip Translations",
    "transforms.points3d": "Rotation3d",
    "transforms.signal1d": "Signal1d",
}
PUBLIC = {name: f"augury.{home}" for home, names in _HOMES.items() for name in names.split()}
"""Every public name and the module, or for a module the package, that holds it."""

__all__ = sorted(PUBLIC)

if not TYPE_CHECKING:  # so that a misspelt name is an error for type checkers too

    def __getattr__(name: str) -> object:
        if name not in PUBLIC:
            raise AttributeError(f"module 'augury' has no attribute {name!r}")
        home = import_module(PUBLIC[name])
        return getattr(home, name) if hasattr(home, name) else import_module(f"{PUBLIC[name]}.{name}")


def __dir__() -> list[str]:
    return sorted([*PUBLIC, "__version__"])
