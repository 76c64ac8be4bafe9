"""The measures of paper D as double loops over images and group elements, one image at a time; and a full Jacobian."""

import math

import torch


def saliency(net, x):
    x = x.detach().clone().requires_grad_()
    logits = net(x[None])[0]
    c = max(range(len(logits)), key=lambda c: logits[c].item())
    logits[c].backward()
    return x.grad


def softmax(logits):
    weights = [math.exp(v) for v in logits.tolist()]
    return [w / sum(weights) for w in weights]


def measures(net, images, moves, back):
    """moves[s](image) makes view s, back[s](map) brings a map of it back; returns lists [image][view]."""
    rows = {"LI": [], "DI": [], "SI": [], "agreement": []}
    for x in images:
        row = {name: [] for name in rows}
        for move, undo in zip(moves, back, strict=True):
            view = move(x)
            f, f_g = net(x[None])[0].detach(), net(view[None])[0].detach()
            p, q = softmax(f), softmax(f_g)
            a, b = saliency(net, x), undo(saliency(net, view))
            row["LI"].append(sum((u - v) ** 2 for u, v in zip(f.tolist(), f_g.tolist(), strict=True)))
            row["DI"].append(sum(u * math.log(u / v) for u, v in zip(p, q, strict=True)))
            row["SI"].append(((a * b).sum() / a.norm() / b.norm()).item())
            row["agreement"].append(float(f.argmax() == f_g.argmax()))
        for name in rows:
            rows[name].append(row[name])
    return {name: torch.tensor(values, dtype=torch.float64) for name, values in rows.items()}


def mean_and_stderr(values):
    """Mean over images of each image's mean over views, and the standard error of that over images."""
    per_image = [sum(row) / len(row) for row in values.tolist()]
    n, mean = len(per_image), sum(per_image) / len(per_image)
    variance = sum((v - mean) ** 2 for v in per_image) / (n - 1)
    return mean, math.sqrt(variance / n)


def pair_distance(logits):
    """Mean squared distance between the logits of two different inputs."""
    n, total = len(logits), 0.0
    for i in range(n):
        for j in range(n):
            total += (logits[i] - logits[j]).square().sum().item()
    return total / (n * (n - 1))


def jacobian(net, x):
    """The Jacobian of the logits at one input, as a matrix."""
    J = torch.autograd.functional.jacobian(lambda x: net(x[None])[0], x)
    return J.flatten(1)
