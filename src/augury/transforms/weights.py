r"""Affine maps of first-layer weights instead of inputs (paper B, section 3.2).

A first layer sees <W, g(x)> with g(x)(p) = x(T p). Substituting q = T p in the sum over pixels (as an
integral),

    sum_p W(p) x(T p)  ~  sum_q |det A|^-1 W(T^-1 q) x(q)  =  <W_T, x>,    T = [A, t],

so the weights that do the same to x are W sampled through the *inverse* map, divided by the factor by which T
scales areas (1 for rotations and translations, where the paper leaves it out). Equal for quarter turns and
whole pixels; otherwise up to interpolation: one side interpolates the image, the other the weights. On the
weights of an RFF network (white noise) that is 0.5 % at 5 degrees and 10 % at 45; on smooth weights far less.

Why bother: S transformed copies of F filters serve every input of a batch, S * F warps instead of S * B.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from augury.core.errors import InputError
from augury.transforms.affine_matrices import determinant, inverse_affine
from augury.transforms.warp import warp


def transform_weights(weight: Float[Tensor, "F C H W"], T: Float[Tensor, "S 2 3"]) -> Float[Tensor, "S F C H W"]:
    """Return the first-layer weights W_T with <W_T, x> = <W, g(x)> up to interpolation, for each of S maps."""
    F, C, H, W = weight.shape
    # All filters share the maps, so they are channels of one image: one grid of sampling points per map.
    moved = warp(weight.reshape(1, F * C, H, W), inverse_affine(T)[None])[0]
    return moved.unflatten(1, (F, C)) / determinant(T).abs()[:, None, None, None, None]


def transform_flat_weights(
    weight: Float[Tensor, "F D"], T: Float[Tensor, "S 2 3"], image_shape: tuple[int, int, int]
) -> Float[Tensor, "S F D"]:
    """Do the same for weights whose inputs are images flattened to vectors."""
    C, H, W = image_shape
    if weight.shape[1] != C * H * W:
        raise InputError(
            f"weights on images of shape {[C, H, W]} must have {C * H * W} inputs; got {weight.shape[1]}. "
            f"Give the shape of the images that the layer sees."
        )
    return torch.flatten(transform_weights(weight.unflatten(1, (C, H, W)), T), 2)
