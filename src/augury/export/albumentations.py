"""A policy as albumentations code: numpy images, OpenCV's warp."""

from functools import partial

from augury.export.code import Library, Parts, Ranges, number, write_code

USAGE = """\
`policy` draws from exactly the learned distribution (OpenCV rounds positions to 1/32 of a pixel); `nearest` is the
closest approximation by A.Affine. Images are [H, W] or [H, W, C], uint8 or float32 in [0, 1]. Masks, boxes and
keypoints move with the image; to_dict and from_dict keep the widths. Tested with albumentations 2.0.8 and
AlbumentationsX 2.5."""

DRAWN = '''
class Drawn:
    """How albumentations and AlbumentationsX ask for one draw per image."""

    def get_params_dependent_on_data(self, params, data):
        return self.draw(params["shape"], self.random_generator)

    def sample_parameters(self, params, data, targets, sampling):
        from albumentations.core.transform_params import SampledParams

        return SampledParams(params=self.draw(params["shape"], sampling.random_generator))
'''

AFFINE = '''
class LearnedAffine(Drawn, A.DualTransform):
    """T = exp(sum_k eps_k eta_k G_k), one draw per image, for all that belongs to it."""

    _targets = ALL_TARGETS

    def __init__(self, eta=None, p=1.0):
        super().__init__(p=p)
        self.eta = dict(ETA if eta is None else eta)

    def draw(self, shape, rng):
        H, W = shape[:2]
        half = min(H, W) / 2
        e = rng.uniform(-1, 1, len(self.eta)) * list(self.eta.values())
        T = expm(np.einsum("k,kij->ij", e, np.array([GENERATORS[name] for name in self.eta], dtype=float)))
        centred = np.array([[1 / half, 0, (1 - W) / 2 / half], [0, 1 / half, (1 - H) / 2 / half], [0, 0, 1]])
        return {"matrix": np.linalg.inv(centred) @ T @ centred}  # from pixels of the view to pixels of the image

    def apply(self, img, matrix, flags=cv2.INTER_LINEAR, **params):
        H, W = img.shape[:2]
        own = img.dtype in (np.uint8, np.uint16, np.int16, np.float32, np.float64)
        layers = (img if own else img.astype(np.float64)).reshape(H, W, -1)
        how = {"flags": flags | cv2.WARP_INVERSE_MAP, "borderMode": cv2.BORDER_CONSTANT, "borderValue": 0}
        parts = [layers[..., k : k + 4] for k in range(0, layers.shape[-1], 4)]  # OpenCV takes four channels at once
        warped = [cv2.warpAffine(part, matrix[:2], (W, H), **how).reshape(part.shape) for part in parts]
        return np.concatenate(warped, -1).reshape(img.shape).astype(img.dtype)

    def apply_to_mask(self, mask, matrix, **params):
        return self.apply(mask, matrix, cv2.INTER_NEAREST)

    def apply_to_keypoints(self, keypoints, matrix, **params):
        M, moved = np.linalg.inv(matrix), np.array(keypoints, dtype=float)  # x, y, z, angle, scale, ...
        cos, sin = M[:2, :2] @ [np.cos(moved[:, 3]), -np.sin(moved[:, 3])]
        moved[:, :2] = moved[:, :2] @ M[:2, :2].T + M[:2, 2]
        moved[:, 3], moved[:, 4] = np.arctan2(-sin, cos) % (2 * np.pi), moved[:, 4] * abs(np.linalg.det(M)) ** 0.5
        return moved.astype(keypoints.dtype)

    def apply_to_bboxes(self, bboxes, matrix, shape, **params):
        size, M, moved = np.array(shape[1::-1]), np.linalg.inv(matrix), np.array(bboxes, dtype=float)
        corners = moved[:, [[0, 1], [2, 1], [0, 3], [2, 3]]] * size - 0.5  # pixels have their centres at 0, 1, ...
        corners = (corners @ M[:2, :2].T + M[:2, 2] + 0.5) / size
        moved[:, :2], moved[:, 2:4] = corners.min(1), corners.max(1)
        return moved.astype(bboxes.dtype)
'''

COLORS = '''
class LearnedColors(Drawn, A.ImageOnlyTransform):
    """Colours and blur, one draw per image."""

    def __init__(self, eta=None, p=1.0):
        super().__init__(p=p)
        self.eta = dict(COLORS if eta is None else eta)

    def draw(self, shape, rng):
        return {"e": {name: rng.uniform(-eta, eta) for name, eta in self.eta.items()}}

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


def _imports(parts: Parts) -> str:
    text = "import albumentations as A\nimport cv2\nimport numpy as np\n"
    targets = "from albumentations.core.type_definitions import ALL_TARGETS\n"
    return text + (f"{targets}from scipy.linalg import expm\n" if parts.geometry else "")


def _turn(n: int, p: str) -> str:
    angles = (number(360 * j / n) for j in range(1, n))
    turns = (f"A.Rotate(({d}, {d}), border_mode=cv2.BORDER_CONSTANT, p=1.0)" for d in angles)
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
        "keep_ratio=False",
        "p=1.0",
    ]


ALBUMENTATIONS = Library(
    name="albumentations",
    usage=USAGE,
    imports=_imports,
    base=DRAWN,
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
albumentations_code = partial(write_code, library=ALBUMENTATIONS)
