"""A policy as torchvision code (transforms.v2): the exact distribution by an affine map handed to `perspective`.

torchvision's `affine` takes an angle, a shift, one factor and two shears; no choice of these gives the exponential of
several generators. `perspective` takes the eight coefficients of a map from output to input pixels, whose centres lie
at 0.5, 1.5, ...: with the last two at 0 that is any affine map, for tensors and for PIL images alike.
"""

from augury.export.code import (
    AFFINE_NOTES,
    BLUR_NOTE,
    COLOR_NOTE,
    FINITE_NOTE,
    Code,
    Ranges,
    color_function,
    generators,
    header,
    listed,
    number,
    parts_of,
    ranges,
    table,
)
from augury.export.policy import Policy

EXACT = """Every image x becomes x(T p): p runs over the pixels, T = exp(sum_k eps_k eta_k G_k), eps uniform on [-1, 1].
Coordinates are those of a square as long as the image's shorter side, from -1 to 1; outside the image is 0.
`policy` draws from exactly the learned distribution; `nearest` is the closest that RandomAffine can be asked for.
One draw serves a whole call, so put the policy into the data set, where each image is a call. Written for
torchvision 0.21 or newer; colours need float tensors (v2.ToImage(), v2.ToDtype(torch.float32, scale=True))."""

ONE_FACTOR = "a factor for each axis: RandomAffine has one for both, so `nearest` takes their geometric mean"

AFFINE = '''

class LearnedAffine(v2.Transform):
    """T = exp(sum_k eps_k eta_k G_k), one draw per call."""

    def make_params(self, flat_inputs):
        H, W = v2.query_size(flat_inputs)
        half = min(H, W) / 2
        eps = torch.rand(len(ETA), dtype=torch.float64) * 2 - 1
        eta = torch.tensor(list(ETA.values()), dtype=torch.float64)
        G = torch.tensor(list(GENERATORS.values()), dtype=torch.float64)
        T = torch.matrix_exp(torch.einsum("k,kij->ij", eps * eta, G))
        centred = torch.tensor([[1 / half, 0, -W / 2 / half], [0, 1 / half, -H / 2 / half], [0, 0, 1]]).double()
        P = torch.linalg.inv(centred) @ T @ centred
        return {"coefficients": [*P[0].tolist(), *P[1].tolist(), 0.0, 0.0]}

    def transform(self, inpt, params):
        return self._call_kernel(F.perspective, inpt, None, None, fill=0, coefficients=params["coefficients"])
'''

COLORS = '''

class LearnedColors(v2.Transform):
    """Colours and blur, one draw per call."""

    _transformed_types = (tv_tensors.Image, F.is_pure_tensor)

    def make_params(self, flat_inputs):
        return {name: (torch.rand(()) * 2 - 1) * eta for name, eta in COLORS.items()}

    def transform(self, inpt, params):
        return change_colors(inpt, params)
'''

BLUR = """
def blur(x, sigma):
    side = min(2 * math.ceil(4 * COLORS["blur"] ** 0.5) + 1, 2 * min(x.shape[-2:]) - 1)
    return F.gaussian_blur(x, [side, side], [max(float(sigma), 0.01)] * 2)

"""


def torchvision_code(policy: Policy) -> Code:
    """Write a policy for torchvision."""
    parts = parts_of(policy, "torchvision")
    steps, left_out = _finite(parts.finite)
    notes = [
        *((*AFFINE_NOTES, ONE_FACTOR) if parts.geometry else ()),
        *((FINITE_NOTE,) if parts.finite else ()),
        *((COLOR_NOTE, BLUR_NOTE) if parts.colors else ()),
    ]
    text = header(policy, "torchvision", EXACT, notes or ["nothing: every width is zero"], left_out)
    text += "\nimport math\n\n" if parts.colors else "\n"
    text += "import torch\n" + ("from torchvision import tv_tensors\n" if parts.colors else "")
    text += "from torchvision.transforms import v2\nfrom torchvision.transforms.v2 import functional as F\n"
    if parts.geometry:
        text += "\n" + table("ETA", parts.geometry) + generators(parts.matrices) + AFFINE
        steps.append("LearnedAffine()")
    if parts.colors:
        text += ("\n\n" if parts.geometry else "\n") + table("COLORS", parts.colors) + "\n"
        text += (BLUR if "blur" in parts.colors else "") + color_function(parts.colors) + COLORS
        steps.append("LearnedColors()")
    text += "\n\n" + listed("policy", "v2.Compose([", steps or ["v2.Identity()"], "])")
    nearest = _nearest(ranges(parts.geometry, policy.input_shape)) if parts.geometry else ""
    return Code(text + nearest, tuple(left_out))


def _finite(groups: dict[str, float]) -> tuple[list[str], list[str]]:
    steps, left_out = [], []
    for name, p in groups.items():
        if name in ("flip_x", "flip_y"):
            steps.append(f"v2.Random{'Horizontal' if name == 'flip_x' else 'Vertical'}Flip(p={number(p)})")
        elif name.startswith("C"):
            n = int(name[1:])
            smooth = "" if n in (2, 4) else ", interpolation=v2.InterpolationMode.BILINEAR"
            angles = (number(360 * j / n) for j in range(1, n))
            turns = ", ".join(f"v2.RandomRotation(({d}, {d}){smooth})" for d in angles)
            steps.append(f"v2.RandomApply([v2.RandomChoice([{turns}])], p={number(p)})")
        else:
            left_out.append(f"{name} (chance {p:.2f}): torchvision has no transform for this group")
    return steps, left_out


def _nearest(r: Ranges) -> str:
    words = [
        f"degrees={number(min(r.degrees, 180.0))}",
        f"translate=({number(r.translate_x)}, {number(r.translate_y)})",
        f"scale=({number(1 / r.scale)}, {number(r.scale)})",
        f"shear=({number(-r.shear)}, {number(r.shear)}, {number(-r.shear)}, {number(r.shear)})",
        "interpolation=v2.InterpolationMode.BILINEAR",
    ]
    return listed("nearest", "v2.RandomAffine(", words, ")")
