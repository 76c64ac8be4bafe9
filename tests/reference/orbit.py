"""The orbit average as paper A writes it (Eq. 1): a loop over inputs, and for each a loop over samples."""

import torch


def orbit_average(net, transform, x, eps):
    """Return f_hat(x) for given noise [B, S, K]: one view, one forward pass, one addition at a time."""
    B, S = eps.shape[:2]
    rows = []
    for b in range(B):
        total = 0.0
        for s in range(S):
            view = transform.act(x[b : b + 1], eps[b : b + 1, s : s + 1])[:, 0]
            total = total + net(view)[0]
        rows.append(total / S)
    return torch.stack(rows)
