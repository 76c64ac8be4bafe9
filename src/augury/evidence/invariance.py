r"""Invariance errors of a network, per view (paper D): measured by the audit, lowered by the regulariser.

    LI = |f(g x) - f(x)|^2                              logits, squared L2, summed over the outputs
    DI = KL(softmax f(x) || softmax f(g x))             predictive distributions
    SI = cos(m(x), m_g(x)),   m(x) = d/dx max_c f_c(x),   m_g(x) = d/dx max_c f_c(g x) = J_g^T m(g x)

m is a saliency map: the signed gradient of the largest logit (with absolute values SI is inflated, and with
log-probabilities even a tied network scores below 1). J_g^T brings the map of the transformed input back to the
frame of x. Where g permutes pixels it is the inverse of g; for any other g it makes SI = 1 for a network that is
exactly invariant: differentiate f(g x) = f(x).
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


def logit_error(f: Float[Tensor, "B C"], f_g: Float[Tensor, "B S C"]) -> Float[Tensor, "B S"]:
    return (f_g - f[:, None]).square().sum(-1)


def distribution_error(f: Float[Tensor, "B C"], f_g: Float[Tensor, "B S C"]) -> Float[Tensor, "B S"]:
    log_p, log_q = F.log_softmax(f, -1)[:, None], F.log_softmax(f_g, -1)
    return (log_p.exp() * (log_p - log_q)).sum(-1).clamp(min=0.0)  # rounding may leave it below 0


def gradient_of_largest(f: Float[Tensor, "B C"], x: Tensor, create_graph: bool = False) -> Tensor:
    """Return the gradient in x of every row's largest logit; zeros where f does not depend on x."""
    if not f.requires_grad:
        return torch.zeros_like(x)
    largest = f.max(dim=-1).values.sum()
    (m,) = torch.autograd.grad(largest, x, create_graph=create_graph, allow_unused=True)
    return torch.zeros_like(x) if m is None else m


def similarity(m: Float[Tensor, "B *shape"], m_g: Float[Tensor, "B S *shape"]) -> Float[Tensor, "B S"]:
    """Return SI of every view: the cosine of two maps, 1 where both are zero, 0 where one of them is."""
    m, m_g = m.flatten(1), m_g.flatten(2)
    dot = torch.einsum("bd,bsd->bs", m, m_g)
    norm, norm_g = torch.linalg.vector_norm(m, dim=1)[:, None], torch.linalg.vector_norm(m_g, dim=2)
    size = norm * norm_g
    both_zero = (norm == 0) & (norm_g == 0)
    cosine = (dot / size.clamp(min=torch.finfo(size.dtype).tiny)).clamp(-1.0, 1.0)  # rounding may pass 1
    return torch.where(size > 0, cosine, both_zero.to(size))
