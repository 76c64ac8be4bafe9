"""The structures of the curvature, in one table."""

from augury.curvature.dense import Diag, Full
from augury.curvature.kron import Kron
from augury.curvature.structure import Structure

STRUCTURES: dict[str, type[Structure]] = {"kron": Kron, "diag": Diag, "full": Full}
