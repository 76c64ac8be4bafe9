"""Derivatives as quotients."""

import torch


@torch.no_grad()
def central_difference(value, parameter, h=1e-6):
    """d value() / d parameter, entry by entry."""
    flat, out = parameter.data.view(-1), torch.zeros_like(parameter)
    for k in range(len(flat)):
        here, ends = flat[k].item(), []
        for step in (h, -h):
            flat[k] = here + step
            with torch.enable_grad():
                ends.append(float(torch.as_tensor(value(), dtype=torch.float64).detach()))
        flat[k] = here
        out.view(-1)[k] = (ends[0] - ends[1]) / (2 * h)
    return out
