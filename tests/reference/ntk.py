"""The Laplace evidence in function space, written out: one Jacobian row at a time, one matrix of all pairs."""

import torch


def evidence(model, likelihood, x, y, delta, seed):
    """Return log-likelihood - penalty - 1/2 log|I + R^T J J^T R / delta| over all data and outputs."""
    theta = [p for p in model.net.parameters() if p.requires_grad]
    f = model.average(x, torch.Generator().manual_seed(seed))
    rows = []
    for c in range(f.shape[1]):
        unit = torch.eye(f.shape[1], dtype=f.dtype)[c]
        column = likelihood.root(f.detach(), unit.expand_as(f))
        for n in range(len(x)):
            grads = torch.autograd.grad(f[n] @ column[n], theta, retain_graph=True)
            rows.append(torch.cat([g.flatten() for g in grads]))
    J = torch.stack(rows)
    scale = likelihood.scale("ggn").detach()
    log_det = torch.linalg.slogdet(torch.eye(len(J), dtype=f.dtype) + scale * J @ J.T / delta)[1]
    penalty = delta / 2 * sum(p.detach().square().sum() for p in theta)
    return likelihood.log_prob(f, y).detach() - penalty - log_det / 2
