"""Kronecker-factored curvature of a network with shared copies (paper A, Eqs. 7, 14, 15).

Block of a linear or convolutional layer:  H_l = A_l (x) G_l / n,  n = data x positions,

    A_l = sum_n sum_p a a^T,      a the shared inputs (averaged over copies; a 1 appended for the bias),
    G_l = sum_n sum_p g g^T,      g the shared gradients of one column of the root of Lambda (summed over copies),

with one position where they are reduced. With eigenvalues a_j of A, b_i of G,

    log|scale H + delta|  = sum_ij log(scale a_j b_i / n + delta)
    d/dA = V_A diag_j( sum_i  (scale b_i / n) / (scale a_j b_i / n + delta) ) V_A^T,  and likewise for G.

Scalars and the affine parameters of norms are few: their block is the exact J^T J. A bias with a prior precision of its
own (prior="tensor") has the block G, exact where positions are reduced.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from augury.curvature.factors import Factor, Outer, Pair, Rows, quadratic
from augury.curvature.layers import is_kronecker, learned, shared_gradients, shared_inputs, summed_jacobian
from augury.curvature.structure import Block, Collected, Statistics, Structure
from augury.curvature.tape import Tape


def _rows(parts: list[Float[Tensor, "B P groups d"]]) -> Float[Tensor, "groups m d"]:
    return torch.cat(parts, dim=1).flatten(0, 1).transpose(0, 1)


def _counts(rows: Rows) -> Statistics:
    return {f"{key[:-2]}/n": r.new_tensor(float(r.shape[1])) for key, r in rows.items()}


class Kron(Structure):
    """Kronecker factors for every linear map, exact dense blocks for the rest."""

    def _joint(self, layer: nn.Module) -> bool:
        return self.prior != "tensor" and len(learned(layer)) == 2

    def make_blocks(self) -> list[Block]:
        """Return the blocks."""
        blocks = []
        for name, layer in self.layers.items():
            if is_kronecker(layer) and self._joint(layer):
                blocks.append(Block(name, name, tuple(learned(layer).values())))
            else:
                blocks += [Block(f"{name}.{p}", name, (t,)) for p, t in learned(layer).items()]
        return blocks

    def inputs(self, tape: Tape) -> Statistics:
        """Return A_l of every layer that has one, and the count n."""
        rows = self.input_rows(tape)
        return {key: r.mT @ r for key, r in rows.items()} | _counts(rows)

    def input_rows(self, tape: Tape) -> Rows:
        """Return the shared inputs a whose outer products are A_l."""
        out: Rows = {}
        for name, layer in self.layers.items():
            if not is_kronecker(layer) or "weight" not in learned(layer):
                continue
            joint = self._joint(layer)
            a = [shared_inputs(layer, c.a, tape.S, self.positions, joint) for c in tape.calls[name]]
            a = [torch.stack(a).mean(0)] if self.positions == "reduce" and len(a) > 1 else a
            out[f"{name}/A"] = _rows(a)
        return out

    def outputs(self, tape: Tape, grads: dict[str, list[Tensor]]) -> Statistics:
        """Return G_l of one column."""
        return {key: r.mT @ r for key, r in self.output_rows(tape, grads).items()}

    def output_rows(self, tape: Tape, grads: dict[str, list[Tensor]]) -> Rows:
        """Return the shared gradients g, or the Jacobians, whose outer products are G_l."""
        out: Rows = {}
        for name, layer in self.layers.items():
            if is_kronecker(layer):
                g = [shared_gradients(layer, g, tape.S, self.positions) for g in grads[name]]
                g = [torch.stack(g).sum(0)] if self.positions == "reduce" and len(g) > 1 else g
                out[f"{name}/G"] = _rows(g)
                continue
            for parameter, J in summed_jacobian(layer, tape.pairs(name, grads), tape.S).items():
                out[f"{name}.{parameter}/G"] = J[None]
        return out

    def inner_inputs(self, tape: Tape, preconditioner: Statistics) -> Float[Tensor, ""]:
        """Return <preconditioner, A> as sum of a^T M a: one product, no outer product and no second one behind it."""
        return quadratic(self.input_rows(tape), preconditioner)

    def inner_outputs(
        self, tape: Tape, grads: dict[str, list[Tensor]], preconditioner: Statistics
    ) -> Float[Tensor, ""]:
        """Return <preconditioner, G> of one column as sum of g^T M g."""
        return quadratic(self.output_rows(tape, grads), preconditioner)

    def collect_inputs(self, tape: Tape) -> Collected:
        """Return what `inputs` returns, as rows."""
        rows = self.input_rows(tape)
        return {key: Outer((r,)) for key, r in rows.items()} | _counts(rows)

    def collect_outputs(self, tape: Tape, grads: dict[str, list[Tensor]]) -> Collected:
        """Return what `outputs` returns, as rows."""
        return {key: Outer((r,)) for key, r in self.output_rows(tape, grads).items()}

    def decompose(self, totals: Collected, vectors: bool = True) -> list[Pair]:
        """Return the factors of every block in their eigenbases: one eigh per factor."""
        factors = {
            key: T.factor(vectors) if isinstance(T, Outer) else Factor.of(T, vectors)
            for key, T in totals.items()
            if not key.endswith("/n")
        }
        pairs = []
        for block in self.blocks:
            layer = self.layers[block.layer]
            if not is_kronecker(layer):
                pairs.append(Pair(None, factors[f"{block.name}/G"], 1.0))
            elif block.parameters[0] is layer.bias:
                pairs.append(Pair(None, factors[f"{block.layer}/G"], 1.0))
            else:
                A, n = factors[f"{block.layer}/A"], float(totals[f"{block.layer}/n"])
                pairs.append(Pair(A, factors[f"{block.layer}/G"], n))
        return pairs

    def logdet(
        self, spectrum: list[Pair], delta: Float[Tensor, " L"], scale: Float[Tensor, ""]
    ) -> Float[Tensor, ""]:
        """Return log|scale * GGN + delta|."""
        deltas = self.delta_of_blocks(delta)
        return torch.stack([p.logdet(d, scale) for p, d in zip(spectrum, deltas, strict=True)]).sum()

    def preconditioner(
        self, spectrum: list[Pair], delta: Float[Tensor, " L"], scale: Float[Tensor, ""]
    ) -> Statistics:
        """Return d log|H| / dA and d log|H| / dG for every block."""
        out: Statistics = {}
        for block, pair, d in zip(self.blocks, spectrum, self.delta_of_blocks(delta), strict=True):
            inverse = scale / (scale * pair.eigenvalues() + d)  # [groups, D, O]
            dense = not is_kronecker(self.layers[block.layer])
            key = f"{block.name if dense else block.layer}/G"
            if pair.A is None:
                gradient = pair.G.with_values(inverse[:, 0])
            else:
                a, b = pair.A.values, pair.G.values
                gradient = pair.G.with_values((inverse * a[:, :, None]).sum(1) / pair.n)
                out[f"{block.layer}/A"] = pair.A.with_values((inverse * b[:, None, :]).sum(2) / pair.n)
            out[key] = out[key] + gradient if key in out else gradient
        return out
