"""A policy as torchvision code (transforms.v2): the exact distribution by an affine map passed to `perspective`.

torchvision's `affine` takes an angle, a shift, one factor and two shears; no choice of these gives the exponential of
several generators. `perspective` takes the eight coefficients of a map from output to input pixels, whose centres lie
at 0.5, 1.5, ...: with the last two at 0 that is any affine map, for tensors and for PIL images alike.
"""

from functools import partial

from augury.export.code import TORCH_GREY, TORCH_OPERATIONS, Library, Parts, Ranges, number, write_code

USAGE = """\
`policy` draws from exactly the learned distribution; `nearest` is the closest approximation by RandomAffine.
There is one draw per call, so put the policy into the data set, where each image is a call. Written for
torchvision 0.21 or newer; colours need float tensors (v2.ToImage(), v2.ToDtype(torch.float32, scale=True))."""

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


def _imports(parts: Parts) -> str:
    text = "import math\n\n" if parts.colors else ""
    text += "import torch\n" + ("from torchvision import tv_tensors\n" if parts.colors else "")
    return text + ("from torchvision.transforms import v2\nfrom torchvision.transforms.v2 import functional as F\n")


def _turn(n: int, p: str) -> str:
    smooth = "" if n in (2, 4) else ", interpolation=v2.InterpolationMode.BILINEAR"
    angles = (number(360 * j / n) for j in range(1, n))
    turns = ", ".join(f"v2.RandomRotation(({d}, {d}){smooth})" for d in angles)
    return f"v2.RandomApply([v2.RandomChoice([{turns}])], p={p})"


def _nearest(r: Ranges) -> list[str]:
    return [
        f"degrees={number(min(r.degrees, 180.0))}",
        f"translate=({number(r.translate_x)}, {number(r.translate_y)})",
        f"scale=({number(1 / r.scale)}, {number(r.scale)})",
        f"shear=({number(-r.shear)}, {number(r.shear)}, {number(-r.shear)}, {number(r.shear)})",
        "interpolation=v2.InterpolationMode.BILINEAR",
    ]


TORCHVISION = Library(
    name="torchvision",
    usage=USAGE,
    imports=_imports,
    affine=AFFINE,
    colors=COLORS,
    operations=TORCH_OPERATIONS,
    grey=TORCH_GREY,
    blur=BLUR,
    flip="v2.Random{axis}Flip(p={p})",
    turn=_turn,
    compose=("v2.Compose([", "])", "v2.Identity()"),
    nearest=("v2.RandomAffine(", _nearest),
    affine_notes=("a factor for each axis: RandomAffine has one for both, so `nearest` takes their geometric mean",),
)
torchvision_code = partial(write_code, library=TORCHVISION)
