"""A policy as albumentations code: numpy images, OpenCV's warp."""

from augury.export.code import (
    AFFINE_NOTES,
    BLUR_NOTE,
    COLOR_NOTE,
    FINITE_NOTE,
    Code,
    Ranges,
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
`policy` draws from exactly the learned distribution (OpenCV rounds positions to 1/32 of a pixel); `nearest` is the
closest that A.Affine can be asked for. Images are [H, W] or [H, W, C], uint8 or float32 in [0, 1]. Written for
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

LINES = {
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
NEED_GREY = ("contrast", "saturation", "grey")


def albumentations_code(policy: Policy) -> Code:
    """Write a policy for albumentations."""
    parts = parts_of(policy, "albumentations")
    steps, left_out = _finite(parts.finite)
    notes = [
        *(AFFINE_NOTES if parts.geometry else ()),
        *((FINITE_NOTE,) if parts.finite else ()),
        *((COLOR_NOTE, BLUR_NOTE) if parts.colors else ()),
    ]
    text = header(policy, "albumentations", EXACT, notes or ["nothing: every width is zero"], left_out)
    text += "\nimport albumentations as A\nimport cv2\nimport numpy as np\n"
    if parts.geometry:
        text += (
            "from scipy.linalg import expm\n\n"
            + table("ETA", parts.geometry)
            + generators(parts.matrices)
            + AFFINE
        )
        steps.append("LearnedAffine(p=1.0)")
    if parts.colors:
        text += (
            ("\n\n" if parts.geometry else "\n")
            + table("COLORS", parts.colors)
            + "\n"
            + _colors(parts.colors)
        )
        steps.append("LearnedColors(p=1.0)")
    text += "\n\n" + listed("policy", "A.Compose([", steps or ["A.NoOp()"], "])")
    nearest = _nearest(ranges(parts.geometry, policy.input_shape)) if parts.geometry else ""
    return Code(text + nearest, tuple(left_out))


def _colors(colors: dict[str, float]) -> str:
    lines = "\n".join(line for name, line in LINES.items() if name in colors)
    helper = GREY if any(name in NEED_GREY for name in colors) else ""
    return f"{helper}\ndef change_colors(x, e):\n{lines}\n    return x\n{COLORS}"


def _finite(groups: dict[str, float]) -> tuple[list[str], list[str]]:
    steps, left_out = [], []
    for name, p in groups.items():
        if name in ("flip_x", "flip_y"):
            steps.append(f"A.{'Horizontal' if name == 'flip_x' else 'Vertical'}Flip(p={number(p)})")
        elif name.startswith("C"):
            n = int(name[1:])
            angles = (number(360 * j / n) for j in range(1, n))
            turns = ", ".join(
                f"A.Rotate(limit=({d}, {d}), border_mode=cv2.BORDER_CONSTANT, p=1.0)" for d in angles
            )
            steps.append(f"A.OneOf([{turns}], p={number(p)})")
        else:
            left_out.append(f"{name} (chance {p:.2f}): albumentations has no transform for this group")
    return steps, left_out


def _nearest(r: Ranges) -> str:
    def both(value: float) -> str:
        return f"({number(-value)}, {number(value)})"

    words = [
        f"rotate={both(r.degrees)}",
        f'translate_percent={{"x": {both(r.translate_x)}, "y": {both(r.translate_y)}}}',
        f'scale={{"x": ({number(1 / r.scale_x)}, {number(r.scale_x)}), '
        f'"y": ({number(1 / r.scale_y)}, {number(r.scale_y)})}}',
        f'shear={{"x": {both(r.shear)}, "y": {both(r.shear)}}}',
        "p=1.0",
    ]
    return listed("nearest", "A.Affine(", words, ")")
