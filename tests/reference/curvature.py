"""Gauss-Newton curvature as the papers write it: one datum, one copy, one output at a time; no structure is used.

`views` is always [N, S, ...]: S copies of each of N data. theta runs over the trainable parameters in the order of
`net.named_parameters()`, each flattened row by row.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, jacrev


def averaged(net, views):
    """f_hat(x_n) = 1/S sum_s f(x_n^s), paper A Eq. 1."""
    return torch.stack([net(copies).mean(0) for copies in views])


def jacobians(net, views):
    """J_n = d f_hat(x_n) / d theta (Eq. 11) for every parameter: {name: [N, C, size]}."""
    theta = {name: p.detach() for name, p in net.named_parameters() if p.requires_grad}

    def f_hat(theta, copies):
        return functional_call(net, theta, (copies,)).mean(0)

    J = [jacrev(f_hat)(theta, copies) for copies in views]
    return {name: torch.stack([j[name].flatten(1) for j in J]) for name in theta}


def lambdas(f, y=None):
    """Hessian of -log p in the outputs, by automatic differentiation: labels of whole numbers, or unit noise."""

    def loss(f_n):
        if y is not None and y.dtype != torch.int64:
            return f_n.square().sum() / 2  # the target does not matter for the Hessian
        return -F.log_softmax(f_n, 0)[0]  # nor does the label

    return torch.stack([jacrev(jacrev(loss))(f_n) for f_n in f.detach()])


def empirical(f, y):
    """Outer product of d log p(y_n | f_n) / df: what the empirical Fisher puts in the place of Lambda."""
    leaf = f.detach().requires_grad_()
    log_p = -F.cross_entropy(leaf, y, reduction="sum") if y.dtype == torch.int64 else -(y - leaf).square().sum() / 2
    (r,) = torch.autograd.grad(log_p, leaf)
    return r[:, :, None] * r[:, None, :]


def ggn(J, Lambda):
    """sum_n J_n^T Lambda_n J_n (Eq. 12), J a dict of parameters put side by side."""
    J = torch.cat(list(J.values()), dim=2)
    return sum(J_n.mT @ L_n @ J_n for J_n, L_n in zip(J, Lambda, strict=True))


def roots(Lambda):
    """Columns of the symmetric root of Lambda: not the root the library uses. [C, N, C]."""
    values, vectors = torch.linalg.eigh(Lambda)
    root = (vectors * values.clamp(min=0).sqrt()[:, None, :]) @ vectors.mT
    return root.permute(2, 0, 1)


def joint(J, layer):
    """Jacobian of a layer's [weight | bias] as one matrix of rows [out, in + 1], flattened row by row."""
    W, b = J[f"{layer}.weight"], J.get(f"{layer}.bias")
    if b is None:
        return W
    N, C, O = b.shape
    return torch.cat([W.reshape(N, C, O, -1), b[..., None]], dim=3).flatten(2)


def _positions(layer, a, g):
    """Inputs [P, D] and gradients [C, P, O] of one copy at every position (2-d convolutions: F.unfold)."""
    if isinstance(layer, nn.Linear):
        return a.reshape(-1, layer.in_features), g.reshape(len(g), -1, layer.out_features)
    columns = F.unfold(a[None], layer.kernel_size, layer.dilation, layer.padding, layer.stride)[0]
    return columns.T, g.flatten(2).mT


def _one_copy(net, layer, copy):
    seen = []
    handle = layer.register_forward_hook(lambda _, inputs, z: seen.append((inputs[0], z)))
    f = net(copy[None])[0]
    handle.remove()
    ((a, z),) = seen
    g = torch.stack([torch.autograd.grad(f_c, z, retain_graph=True)[0][0] for f_c in f])
    return (*_positions(layer, a[0].detach(), g), f.detach())


def paper_block(net, layer, views, positions, with_bias, Lambda_of=lambdas):
    """A (x) G of one layer by Eqs. 7, 14 and 15, sums over copies n, s and positions written as loops.

    The rows run over [out, in (+ 1)]. Each Jacobian is approximated by 1/S^2 [sum_s a] (x) [sum_s g]; with
    positions="reduce" the positions are summed like copies, with "expand" every one has factors of its own.
    """
    N, S = views.shape[:2]
    A, G = 0.0, 0.0
    for copies in views:
        a_sum, g_sum, f_sum = 0.0, 0.0, 0.0
        for copy in copies:
            a, g, f = _one_copy(net, layer, copy)
            if positions == "reduce":
                a, g = a.mean(0, keepdim=True), g.sum(1, keepdim=True)
            a = torch.cat([a, torch.ones_like(a[:, :1])], dim=1) if with_bias else a
            a_sum, g_sum, f_sum = a_sum + a, g_sum + g, f_sum + f
        Lambda = Lambda_of(f_sum[None] / S)[0]
        P = len(a_sum)
        for p in range(P):
            A = A + torch.outer(a_sum[p], a_sum[p])
            G = G + g_sum[:, p].T @ Lambda @ g_sum[:, p]
    return torch.kron(G, A) / S**4 / (N * P)
