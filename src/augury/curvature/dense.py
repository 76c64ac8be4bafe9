"""The diagonal of the GGN, and the whole GGN, from every datum's exact Jacobian.

Both are exact in what they keep (no Kronecker approximation over copies, positions or data) and both are slow: use
them for small networks, for the ablation of paper A (appendix F), and as a check on the factors.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from augury.core.errors import InputError
from augury.core.world import ALONE, World
from augury.curvature.layers import jacobian, trainable
from augury.curvature.structure import Block, Deltas, Scalar, Statistics, Structure
from augury.curvature.tape import Gradients, Tape

LARGEST_FULL = 10_000  # largest number of parameters whose full curvature is formed: 800 MB in float64


class _PerParameter(Structure):
    """Blocks are parameter tensors; the Jacobian of each is exact."""

    def make_blocks(self) -> list[Block]:
        return [
            Block(f"{name}.{p}", name, (tensor,))
            for name, layer in self.layers.items()
            for p, tensor in trainable(layer).items()
        ]

    def jacobians(self, tape: Tape, grads: Gradients) -> list[Float[Tensor, "B d"]]:
        """Return the Jacobian of one column in every block."""
        out: list[Tensor] = []
        for name, layer in self.layers.items():
            out += jacobian(layer, tape.pairs(name, grads), tape.S).values()
        return out


class Diag(_PerParameter):
    """The diagonal of the GGN: H_ii = sum_n (J_n)_i^2."""

    def outputs(self, tape: Tape, grads: Gradients) -> Statistics:
        """Return the squared Jacobians of one column, summed over the batch."""
        jacobians = self.jacobians(tape, grads)
        return {b.name: J.square().sum(0) for b, J in zip(self.blocks, jacobians, strict=True)}

    def decompose(self, totals: Statistics, vectors: bool = True, world: World = ALONE) -> list[Tensor]:
        return [totals[block.name] for block in self.blocks]

    def logdet(self, spectrum: list[Tensor], delta: Deltas, scale: Scalar) -> Scalar:
        deltas = self.delta_of_blocks(delta)
        return torch.stack([(scale * h + d).log().sum() for h, d in zip(spectrum, deltas, strict=True)]).sum()

    def preconditioner(self, spectrum: list[Tensor], delta: Deltas, scale: Scalar) -> dict[str, Tensor]:
        rows = zip(self.blocks, spectrum, self.delta_of_blocks(delta), strict=True)
        return {block.name: scale / (scale * h + d) for block, h, d in rows}


class Full(_PerParameter):
    """The whole GGN, H = sum_n J_n^T J_n over all parameters at once."""

    def make_blocks(self) -> list[Block]:
        blocks = super().make_blocks()
        P = sum(p.numel() for block in blocks for p in block.parameters)
        if P > LARGEST_FULL:
            raise InputError(
                f"the full curvature of {P:,} parameters does not fit: at most {LARGEST_FULL:,}. "
                f"Use structure='kron', or a smaller network."
            )
        return blocks

    def outputs(self, tape: Tape, grads: Gradients) -> Statistics:
        J = torch.cat(self.jacobians(tape, grads), dim=1)
        return {"H": J.mT @ J}

    def decompose(self, totals: Statistics, vectors: bool = True, world: World = ALONE) -> Tensor:
        return totals["H"]  # a Cholesky factor per prior precision serves better than its eigenvalues

    def _posterior_precision(self, H: Tensor, delta: Tensor, scale: Tensor) -> Tensor:
        sizes = [sum(p.numel() for p in block.parameters) for block in self.blocks]
        diagonal = [d.expand(size) for d, size in zip(self.delta_of_blocks(delta), sizes, strict=True)]
        return scale * H + torch.diag(torch.cat(diagonal).to(H))

    def logdet(self, spectrum: Tensor, delta: Deltas, scale: Scalar) -> Scalar:
        """Return log|scale * H + diag(delta)| by Cholesky."""
        L = torch.linalg.cholesky(self._posterior_precision(spectrum, delta, scale))
        return 2 * L.diagonal().log().sum()

    def preconditioner(self, spectrum: Tensor, delta: Deltas, scale: Scalar) -> dict[str, Tensor]:
        L = torch.linalg.cholesky(self._posterior_precision(spectrum, delta, scale))
        return {"H": scale * torch.cholesky_inverse(L)}
