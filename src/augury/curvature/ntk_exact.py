"""The tangent kernel of any network that torch.func can differentiate, from the exact Jacobian of every datum.

Memory: the Jacobian of one group, M * m rows of P numbers, and the graph of one chunk of data. The graph of a chunk
is not kept: with V_l = (dE/dQ_l + its transpose) J_l, the gradient of any E in a chunk of views is one vector-Jacobian
product of <V, J(views)>, for which the chunk is run once more.
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.func import functional_call, vjp, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from augury.core.errors import InputError
from augury.curvature.ntk import Kernel, Precisions, Root, Subset, gram, unit_columns
from augury.curvature.plain_norms import PlainNorms

LARGEST_JACOBIAN = 2**30
"""Most numbers in the Jacobian of a group: 4 GB in float32."""


class Exact(Kernel):
    """The kernel of any network."""

    def __init__(self, net: nn.Module, precisions: Precisions, chunk: int = 32) -> None:
        super().__init__(net, precisions)
        self.chunk = chunk

    def group(
        self, views: Float[Tensor, "R ..."], S: int, root: Root, subsets: Sequence[Subset], graph: bool
    ) -> tuple[Float[Tensor, "M C"], list[Float[Tensor, "L _ _"]]]:
        """Return the averaged outputs and the Gram matrices of a group."""
        views = views.unflatten(0, (-1, S))
        self._check_size(len(views) * max(len(subset) for subset in subsets))
        results = [
            _Grams.apply(views if graph else views.detach(), _Rows(self, root, subset)) for subset in subsets
        ]
        return results[0][0], [grams for _, grams in results]

    def _check_size(self, rows: int) -> None:
        P = sum(p.numel() for p in self.precisions.parameters.values())
        if rows * P > LARGEST_JACOBIAN:
            raise InputError(
                f"the exact kernel of a group holds {rows:,} rows of {P:,} numbers, at most {LARGEST_JACOBIAN:,} in "
                f"all. Use smaller groups of data, fewer outputs_per_group, or kernel='reduced'."
            )


class _Rows:
    """Jacobian rows of some columns, as a function of views."""

    def __init__(self, kernel: Exact, root: Root, subset: Subset) -> None:
        self.kernel, self.root, self.subset = kernel, root, subset
        self.theta = {name: p.detach() for name, p in kernel.precisions.parameters.items()}

    def of_datum(self, views: Float[Tensor, "S ..."]) -> tuple[Tensor, dict[str, Tensor]]:
        """Return f_hat of one datum and the gradient of each <R_c, f_hat> in each parameter."""
        net = self.kernel.net
        f, pull_back, *_ = vjp(lambda theta: functional_call(net, theta, (views,)).mean(0), self.theta)
        units = unit_columns(self.subset, f[None])
        return f, vmap(pull_back)(self.root(f.expand_as(units), units))[0]

    def of_chunk(self, views: Float[Tensor, "b S ..."]) -> tuple[Tensor, list[Tensor]]:
        """Return f_hat of some data and their rows [b, m * P_l], one tensor per parameter."""
        # Only this attention of torch's can be differentiated twice; under vmap, only plain norms.
        with sdpa_kernel(SDPBackend.MATH), PlainNorms():
            try:
                f, rows = vmap(self.of_datum)(views)
            except RuntimeError as error:
                raise InputError(
                    f"torch.func must be able to differentiate {type(self.kernel.net).__name__}; it cannot: {error}. "
                    f"Usual reasons: .item(), a branch on the data, or writing in place into a fresh tensor."
                ) from error
        return f, [rows[name].flatten(2) for name in self.theta]


class _Grams(torch.autograd.Function):
    """Views -> (f_hat, Q_l), with a backward pass that runs chunk by chunk."""

    @staticmethod
    def forward(
        ctx: Any, views: Float[Tensor, "M S ..."], rows: _Rows
    ) -> tuple[Float[Tensor, "M C"], Float[Tensor, "L n n"]]:
        parts = [rows.of_chunk(chunk) for chunk in views.split(rows.kernel.chunk)]
        J = [torch.cat(same).flatten(0, 1) for same in zip(*(part[1] for part in parts), strict=True)]
        ctx.rows = rows
        ctx.save_for_backward(views, *J)
        grams = {name: gram(J_l) for name, J_l in zip(rows.theta, J, strict=True)}
        return torch.cat([part[0] for part in parts]), rows.kernel.precisions.gathered(grams)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_f: Tensor, grad_grams: Tensor) -> tuple[Tensor, None]:
        views, *J = ctx.saved_tensors
        rows, m = ctx.rows, len(ctx.rows.subset)
        where = rows.kernel.precisions.index
        both = (grad_grams + grad_grams.mT).to(views)
        V = [(both[where[name]] @ J_l).unflatten(0, (-1, m)) for name, J_l in zip(rows.theta, J, strict=True)]
        size, grads = rows.kernel.chunk, []
        for k, chunk in enumerate(views.split(size)):
            here = slice(k * size, (k + 1) * size)
            with torch.enable_grad():
                leaf = chunk.detach().requires_grad_()
                f, J_chunk = rows.of_chunk(leaf)
            pairs = zip([f, *J_chunk], [grad_f[here], *(v[here] for v in V)], strict=True)
            # Some rows are constants: those of the last bias, for one.
            outputs, directions = zip(*[pair for pair in pairs if pair[0].requires_grad], strict=True)
            grads += torch.autograd.grad(outputs, leaf, directions)
        return torch.cat(grads), None
