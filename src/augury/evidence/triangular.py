"""Cholesky factors that survive rounding, and fast inverses of triangles; both for batches of large matrices."""

import torch
from jaxtyping import Float
from torch import Tensor

from augury.core.errors import RunError

JITTER = 1e-6
"""What is added to the diagonal of a matrix that rounding has made indefinite, as a share of its mean."""
_SMALL = 64
"""Triangles up to this size are inverted by substitution, larger ones by their blocks."""


def cholesky(A: Float[Tensor, "C n n"]) -> Float[Tensor, "C n n"]:
    """Return Cholesky factors. Where float32 has rounded a matrix to an indefinite one, a little is added to it."""
    R, failed = torch.linalg.cholesky_ex(A)
    if failed.any():
        more = JITTER * A.diagonal(dim1=-2, dim2=-1).mean(-1) * (failed > 0)
        R, failed = torch.linalg.cholesky_ex(A.double() + torch.diag_embed(more[:, None].expand(A.shape[:2])))
    lost = failed.bool() | ~R.flatten(1).isfinite().all(1)
    if lost.any():
        raise RunError(
            f"the posterior precision of output {int(lost.nonzero()[0])} is not positive definite: features or labels "
            f"hold extreme values. Scale the inputs (pixels to [0, 1]), or lower the network's alpha."
        )
    return R.to(A)


def inverse_triangular(R: Float[Tensor, "C n n"]) -> Float[Tensor, "C n n"]:
    """Return the inverses of lower triangular matrices, block by block: nearly all of it is matrix products."""
    n = R.shape[-1]
    if n <= _SMALL:
        eye = torch.eye(n, dtype=R.dtype, device=R.device).expand_as(R)
        return torch.linalg.solve_triangular(R, eye, upper=False)
    h = n // 2
    above, below = inverse_triangular(R[:, :h, :h]), inverse_triangular(R[:, h:, h:])
    out = torch.zeros_like(R)
    out[:, :h, :h], out[:, h:, h:] = above, below
    out[:, h:, :h] = -(below @ (R[:, h:, :h] @ above))
    return out
