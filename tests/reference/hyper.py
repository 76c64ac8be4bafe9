"""Slow twins of paper C's pre-training: the contrastive loss by a double loop, measured invariance image by image."""

import math

import torch
import torch.nn.functional as F


def nt_xent(z, z_other, temperature):
    views = [*z, *z_other]
    B, total = len(z), 0.0
    for a in range(2 * B):
        b = a + B if a < B else a - B
        similar = {c: float(views[a] @ views[c] / (views[a].norm() * views[c].norm())) for c in range(2 * B) if c != a}
        others = sum(math.exp(s / temperature) for s in similar.values())
        total -= math.log(math.exp(similar[b] / temperature) / others)
    return total / (2 * B)


def shallow_features(x, reference, weight, scale, shift, eps=1e-5):
    """One convolution, standardised by the statistics of the reference, ReLU, flat."""
    a, r = F.conv2d(x, weight, stride=2), F.conv2d(reference, weight, stride=2)
    rows = []
    for image in a:
        channels = []
        for c, channel in enumerate(image):
            mean = r[:, c].mean()
            var = ((r[:, c] - mean) ** 2).mean()
            channels.append(torch.relu((channel - mean) / torch.sqrt(var + eps) * scale[c] + shift[c]).flatten())
        rows.append(torch.cat(channels))
    return torch.stack(rows)


def cosine(a, b):
    return float((a * b).sum() / (a.norm() * b.norm()))
