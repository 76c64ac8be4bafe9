"""A policy as kornia code: augmentation classes that draw, build and warp exactly as Augury does."""

from functools import partial

from augury.export.code import TORCH_GREY, TORCH_OPERATIONS, Library, Parts, Ranges, number, write_code

USAGE = """\
`policy` draws from exactly the learned distribution; `nearest` is the closest approximation by RandomAffine."""

AFFINE = '''
class LearnedAffine(K.GeometricAugmentationBase2D):
    """T = exp(sum_k eps_k eta_k G_k), one draw per image."""

    def __init__(self):
        super().__init__(p=1.0)

    def generate_parameters(self, batch_shape):
        return {"eps": torch.rand(batch_shape[0], len(ETA)) * 2 - 1}

    def compute_transformation(self, input, params, flags):
        H, W = input.shape[-2:]
        half = min(H, W) / 2
        eta = torch.tensor(list(ETA.values())).to(input)
        G = torch.tensor(list(GENERATORS.values())).to(input)
        X = torch.einsum("bk,kij->bij", params["eps"].to(input) * eta, G)
        centred = torch.tensor([[1 / half, 0, (1 - W) / 2 / half], [0, 1 / half, (1 - H) / 2 / half], [0, 0, 1]])
        centred = centred.to(input)
        # kornia maps input to output pixels: the inverse of T.
        return torch.linalg.inv(centred) @ torch.matrix_exp(-X) @ centred

    def apply_transform(self, input, params, flags, transform=None):
        # With align_corners=True kornia's pixel coordinates are exact; the border is the same either way.
        return warp_affine(input, transform[:, :2], input.shape[-2:], align_corners=True, padding_mode="zeros")
'''

TURNS = '''
class LearnedTurns(K.GeometricAugmentationBase2D):
    """With probability p a turn by a multiple of 360 / n degrees, all equally likely."""

    def __init__(self, n, p):
        super().__init__(p=p)
        self.n = n

    def generate_parameters(self, batch_shape):
        return {"j": torch.randint(1, self.n, (batch_shape[0],))}

    def compute_transformation(self, input, params, flags):
        H, W = input.shape[-2:]
        angle = params["j"].to(input) * (2 * math.pi / self.n)
        c, s = angle.cos(), angle.sin()
        zero, one = torch.zeros_like(c), torch.ones_like(c)
        R = torch.stack([c, s, zero, -s, c, zero, zero, zero, one], -1).unflatten(-1, (3, 3))
        centred = torch.tensor([[1, 0, (1 - W) / 2], [0, 1, (1 - H) / 2], [0, 0, 1]]).to(input)
        return torch.linalg.inv(centred) @ R @ centred

    def apply_transform(self, input, params, flags, transform=None):
        return warp_affine(input, transform[:, :2], input.shape[-2:], align_corners=True, padding_mode="zeros")
'''

COLORS = '''
class LearnedColors(K.IntensityAugmentationBase2D):
    """Colours and blur, one draw per image."""

    def __init__(self):
        super().__init__(p=1.0)

    def generate_parameters(self, batch_shape):
        return {"eps": torch.rand(batch_shape[0], len(COLORS)) * 2 - 1}

    def apply_transform(self, input, params, flags, transform=None):
        eps = params["eps"].to(input)
        e = {name: eps[:, k, None, None, None] * eta for k, (name, eta) in enumerate(COLORS.items())}
        return change_colors(input, e)
'''

BLUR = """
def blur(x, sigma):
    sides = [2 * math.ceil(4 * COLORS["blur"] ** 0.5) + 1] * 2
    sides = [min(side, n - 1 + n % 2) for side, n in zip(sides, x.shape[-2:])]
    return gaussian_blur2d(x, sides, sigma.flatten(1).clamp(min=0.01).expand(-1, 2), "reflect")
"""


def _imports(parts: Parts) -> str:
    turns = any(name.startswith("C") for name in parts.finite)
    text = "import math\n\n" if parts.colors or turns else ""
    text += "import kornia.augmentation as K\nimport torch\n"
    text += "from kornia.filters import gaussian_blur2d\n" if "blur" in parts.colors else ""
    return text + ("from kornia.geometry.transform import warp_affine\n" if parts.geometry or turns else "")


def _nearest(r: Ranges) -> list[str]:
    x, y = (f"{number(1 / factor)}, {number(factor)}" for factor in (r.scale_x, r.scale_y))
    return [
        f"degrees={number(r.degrees)}",
        f"translate=({number(r.translate_x)}, {number(r.translate_y)})",
        f"scale=({x}, {y})",
        f"shear={number(r.shear)}",
        "p=1.0",
    ]


KORNIA = Library(
    name="kornia",
    usage=USAGE,
    imports=_imports,
    affine=AFFINE,
    colors=COLORS,
    operations=TORCH_OPERATIONS,
    grey=TORCH_GREY,
    blur=BLUR,
    flip="K.Random{axis}Flip(p={p})",
    turn=lambda n, p: f"LearnedTurns({n}, p={p})",
    turns=TURNS,
    compose=("torch.nn.Sequential(", ")", "torch.nn.Identity()"),
    nearest=("K.RandomAffine(", _nearest),
    finite_notes=(
        "equal probabilities: RandomRotation90 rounds a uniform number, and its middle turn comes twice as often",
    ),
)
kornia_code = partial(write_code, library=KORNIA)
