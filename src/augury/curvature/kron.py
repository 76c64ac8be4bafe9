"""Kronecker-factored curvature of a network with shared copies (paper A, Eqs. 7, 14, 15).

Block of a linear or convolutional layer:  H_l = A_l (x) G_l / n,  n = data x positions,

    A_l = sum_n sum_p a a^T,      a the shared inputs (averaged over copies; a 1 appended for the bias),
    G_l = sum_n sum_p g g^T,      g the shared gradients of one column of the root of Lambda (summed over copies),

with one position where they are reduced. With eigenvalues a_j of A, b_i of G,

    log|scale H + delta|  = sum_ij log(scale a_j b_i / n + delta)
    d/dA = V_A diag_j( sum_i  (scale b_i / n) / (scale a_j b_i / n + delta) ) V_A^T,  and likewise for G.

Scalars and the affine parameters of norms are few: their block is the exact J^T J. A bias with its own prior precision
(prior="tensor") has the block G, exact where positions are reduced.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from augury.core.world import ALONE, World
from augury.curvature.factors import KronBlock, OuterSum, decomposed
from augury.curvature.layers import is_kronecker, jacobian, shared_gradients, shared_inputs, trainable
from augury.curvature.structure import Block, Deltas, Scalar, Statistics, Structure
from augury.curvature.tape import Gradients, Tape


class Kron(Structure):
    """Kronecker factors for every linear map, exact dense blocks for the rest."""

    def _joint(self, layer: nn.Module) -> bool:
        return self.prior != "tensor" and len(trainable(layer)) == 2

    def make_blocks(self) -> list[Block]:
        blocks = []
        for name, layer in self.layers.items():
            if is_kronecker(layer) and self._joint(layer):
                blocks.append(Block(name, name, tuple(trainable(layer).values())))
            else:
                blocks += [Block(f"{name}.{p}", name, (t,)) for p, t in trainable(layer).items()]
        return blocks

    def inputs(self, tape: Tape) -> Statistics:
        """Return A_l of every layer that has one."""
        out: Statistics = {}
        for name, layer in self.layers.items():
            if not is_kronecker(layer) or "weight" not in trainable(layer):
                continue
            joint = self._joint(layer)
            a = [shared_inputs(layer, c.a, tape.S, self.positions, joint) for c in tape.calls[name]]
            a = [torch.stack(a).mean(0)] if self.positions == "reduce" and len(a) > 1 else a
            out[f"{name}/A"] = _outer(a)
        return out

    def of_inputs(self, name: str) -> bool:
        return name.endswith("/A")

    def outputs(self, tape: Tape, grads: Gradients) -> Statistics:
        """Return G_l of one column, or the exact block J^T J."""
        out: Statistics = {}
        for name, layer in self.layers.items():
            if is_kronecker(layer):
                g = [shared_gradients(layer, g, tape.S, self.positions) for g in grads[name]]
                g = [torch.stack(g).sum(0)] if self.positions == "reduce" and len(g) > 1 else g
                out[f"{name}/G"] = _outer(g)
                continue
            for parameter, J in jacobian(layer, tape.pairs(name, grads), tape.S).items():
                out[f"{name}.{parameter}/G"] = OuterSum.of(J[None])
        return out

    def decompose(self, totals: Statistics, vectors: bool = True, world: World = ALONE) -> list[KronBlock]:
        """Return the factors of every block in their eigenbases: one eigh per factor, each on one process."""
        factors = decomposed(totals, vectors, world)
        blocks = []
        for block in self.blocks:
            layer = self.layers[block.layer]
            if not is_kronecker(layer):
                blocks.append(KronBlock(None, factors[f"{block.name}/G"]))
            elif block.parameters[0] is layer.bias:
                blocks.append(KronBlock(None, factors[f"{block.layer}/G"]))
            else:
                A = f"{block.layer}/A"
                blocks.append(KronBlock(factors[A], factors[f"{block.layer}/G"], totals[A].n))
        return blocks

    def logdet(self, spectrum: list[KronBlock], delta: Deltas, scale: Scalar) -> Scalar:
        deltas = self.delta_of_blocks(delta)
        return torch.stack([b.logdet(d, scale) for b, d in zip(spectrum, deltas, strict=True)]).sum()

    def preconditioner(self, spectrum: list[KronBlock], delta: Deltas, scale: Scalar) -> dict[str, Tensor]:
        """Return d log|H| / dA and d log|H| / dG for every block."""
        out: dict[str, Tensor] = {}
        for block, kron, d in zip(self.blocks, spectrum, self.delta_of_blocks(delta), strict=True):
            inverse = scale / (scale * kron.eigenvalues() + d)  # [groups, D, O]
            dense = not is_kronecker(self.layers[block.layer])
            key = f"{block.name if dense else block.layer}/G"
            if kron.A is None:
                gradient = kron.G.with_values(inverse[:, 0])
            else:
                a, b = kron.A.values, kron.G.values
                gradient = kron.G.with_values((inverse * a[:, :, None]).sum(1) / kron.n)
                out[f"{block.layer}/A"] = kron.A.with_values((inverse * b[:, None, :]).sum(2) / kron.n)
            out[key] = out[key] + gradient if key in out else gradient
        return out


def _outer(parts: list[Float[Tensor, "B P groups d"]]) -> OuterSum:
    return OuterSum.of(torch.cat(parts, dim=1).flatten(0, 1).transpose(0, 1))
