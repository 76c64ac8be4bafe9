"""The blocks of a structure written out as dense matrices, rows in the order of the parameters."""

import torch

from augury.curvature.layers import is_kronecker


def dense_blocks(structure, totals):
    """One dense matrix per block of a Kronecker structure: G (x) A / n, group after group; rows [out, in (+ 1)]."""
    out = []
    for block in structure.blocks:
        layer = structure.layers[block.layer]
        if not is_kronecker(layer):
            out.append(totals[f"{block.name}/G"][0])
            continue
        G = totals[f"{block.layer}/G"]
        if block.parameters[0] is layer.bias:
            out.append(torch.block_diag(*G))
            continue
        A, n = totals[f"{block.layer}/A"], totals[f"{block.layer}/n"]
        out.append(torch.block_diag(*[torch.kron(G_k, A_k) / n for A_k, G_k in zip(A, G, strict=True)]))
    return out


def posterior_precision(structure, totals, delta, scale):
    """The whole of scale * GGN + delta as one dense matrix, each kind of structure spelt out."""
    deltas = structure.delta_of_blocks(delta)
    sizes = [sum(p.numel() for p in block.parameters) for block in structure.blocks]
    prior = torch.diag(torch.cat([d.expand(size) for d, size in zip(deltas, sizes, strict=True)]))
    if "H" in totals:
        return scale * totals["H"] + prior
    if any(key.endswith("/G") for key in totals):
        return scale * torch.block_diag(*dense_blocks(structure, totals)) + prior
    return scale * torch.diag(torch.cat([totals[block.name] for block in structure.blocks])) + prior
