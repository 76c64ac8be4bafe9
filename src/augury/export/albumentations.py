"""A policy as albumentations code: numpy images, OpenCV's warp."""

from augury.export.code import Code, Library, Parts, Ranges, number, write_code
from augury.export.policy import Policy

USAGE = """\
`policy` draws from exactly the learned distribution (OpenCV rounds positions to 1/32 of a pixel); `nearest` is the
closest approximation by A.Affine. Images are [H, W] or [H, W, C], uint8 or float32 in [0, 1]. Written for
albumentations 1.4.19 or newer."""

AFFINE = '''
class LearnedAffine(A.ImageOnlyTransform):
    """T = exp(sum_k eps_k eta_k G_k), one draw per image."""

    def get_params_dependent_on_data(self, params, data):
        H, W = params["shape"][:2]
        half = min(H, W) / 2
        e = self.random_generator.uniform(-1, 1, len(ETA)) * list(ETA.values())
        T = expm(np.einsum("k,kij->ij", e, np.array(list(GENERATORS.values()), dtype=float)))
        centred = np.array([[1 / half, 0, (1 - W) / 2 / half], [0, 1 / half, (1 - H) / 2 / half], [0, 0, 1]])
        return {"matrix": (np.linalg.inv(centred) @ T @ centred)[:2]}

    def apply(self, img, matrix, **params):
        H, W = img.shape[:2]
        flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        warped = cv2.warpAffine(img, matrix, (W, H), flags=flags, borderMode=cv2.BORDER_CONSTANT, borderValue=0)
        return warped.reshape(img.shape)
'''

COLORS = '''
class LearnedColors(A.ImageOnlyTransform):
    """Colours and blur, one draw per image."""

    def get_params(self):
        return {"e": {name: self.random_generator.uniform(-eta, eta) for name, eta in COLORS.items()}}

    def apply(self, img, e, **params):
        if img.dtype != np.uint8:
            return change_colors(img, e).astype(img.dtype)
        return np.clip(np.rint(255 * change_colors(img / 255, e)), 0, 255).astype(np.uint8)
'''

GREY = """
def grey(x):
    if x.ndim == 2 or x.shape[-1] != 3:
        return x if x.ndim == 2 else x.mean(-1, keepdims=True)
    return (x * np.array([0.299, 0.587, 0.114])).sum(-1, keepdims=True)
"""

OPERATIONS = {
    "blur": (
        '    sigma = max(abs(e["blur"]) ** 0.5, 0.01)\n'
        "    x = cv2.GaussianBlur(x, (0, 0), sigma, borderType=cv2.BORDER_REFLECT).reshape(x.shape)"
    ),
    "brightness": '    x = x * np.exp(e["brightness"])',
    "contrast": '    x = grey(x).mean() + np.exp(e["contrast"]) * (x - grey(x).mean())',
    "saturation": '    x = grey(x) + np.exp(e["saturation"]) * (x - grey(x))',
    "hue": (
        '    c, s = np.cos(e["hue"]), np.sin(e["hue"]) / np.sqrt(3)\n'
        "    x = c * x + (1 - c) * x.mean(-1, keepdims=True) + s * (np.roll(x, 1, -1) - np.roll(x, -1, -1))"
    ),
    "grey": '    x = x + min(abs(e["grey"]), 1) * (grey(x) - x)',
}


def albumentations_code(policy: Policy) -> Code:
    return write_code(policy, ALBUMENTATIONS)


def _imports(parts: Parts) -> str:
    text = "import albumentations as A\nimport cv2\nimport numpy as np\n"
    return text + ("from scipy.linalg import expm\n" if parts.geometry else "")


def _turn(n: int, p: str) -> str:
    angles = (number(360 * j / n) for j in range(1, n))
    turns = (f"A.Rotate(limit=({d}, {d}), border_mode=cv2.BORDER_CONSTANT, p=1.0)" for d in angles)
    return f"A.OneOf([{', '.join(turns)}], p={p})"


def _nearest(r: Ranges) -> list[str]:
    def both(value: float) -> str:
        return f"({number(-value)}, {number(value)})"

    return [
        f"rotate={both(r.degrees)}",
        f'translate_percent={{"x": {both(r.translate_x)}, "y": {both(r.translate_y)}}}',
        f'scale={{"x": ({number(1 / r.scale_x)}, {number(r.scale_x)}), '
        f'"y": ({number(1 / r.scale_y)}, {number(r.scale_y)})}}',
        f'shear={{"x": {both(r.shear)}, "y": {both(r.shear)}}}',
        "p=1.0",
    ]


ALBUMENTATIONS = Library(
    name="albumentations",
    usage=USAGE,
    imports=_imports,
    affine=AFFINE,
    colors=COLORS,
    operations=OPERATIONS,
    grey=GREY,
    flip="A.{axis}Flip(p={p})",
    turn=_turn,
    compose=("A.Compose([", "])", "A.NoOp()"),
    nearest=("A.Affine(", _nearest),
    options="p=1.0",
)
