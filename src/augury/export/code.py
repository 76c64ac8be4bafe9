"""A policy sorted by what other libraries need to know of it: a matrix exponential, finite groups, colours.

Colour operations as source code on tensors [..., C, H, W]: only the lines that a policy needs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from augury.core.errors import InputError
from augury.export.policy import Policy

SMALLEST = 1e-6
"""eta below which a width is left out of the code: it moves nothing."""


@dataclass(frozen=True)
class Parts:
    """The widths of a policy as eta, by what they do to an image."""

    geometry: dict[str, float]
    """Affine generators: T = exp(sum_k eps_k eta_k G_k)."""
    matrices: dict[str, list[list[float]]]
    """Their generator matrices G_k."""
    finite: dict[str, float]
    """Finite groups: the chance of leaving the identity."""
    colors: dict[str, float]
    """Colours and blur."""


def parts_of(policy: Policy, library: str) -> Parts:
    """Sort the widths of a policy for images."""
    if policy.kind != "image":
        raise InputError(
            f"{library} transforms images; this policy is for data of kind '{policy.kind}'. Take --to json, which "
            f"augury.Policy.read reads back, or --to torch for the model."
        )
    from augury.transforms.affine2d import MATRICES
    from augury.transforms.color import COLORS

    transform = policy.transform().double()
    transform.set_widths(policy.widths_for())
    eta = {
        n: v
        for n, v in zip(transform.names, transform.eta.detach().abs().tolist(), strict=True)
        if v > SMALLEST
    }
    geometry = {name: value for name, value in eta.items() if name in MATRICES}
    return Parts(
        geometry,
        {name: MATRICES[name].tolist() for name in geometry},
        {name: value for name, value in eta.items() if name not in MATRICES and name not in COLORS},
        {name: value for name, value in eta.items() if name in COLORS},
    )


@dataclass(frozen=True)
class Code:
    """A policy as source code."""

    text: str
    """What to paste."""
    left_out: tuple[str, ...] = ()
    """Widths that the library cannot express, with the reason; also said in the text."""


def header(policy: Policy, library: str, exact: str, notes: Sequence[str], left_out: Sequence[str]) -> str:
    """Return the docstring of the code."""
    by = policy.learned
    learned = f", learned from {by['data']} by {by['method']} with {by['model']}" if by else ""
    lines = [f"An augmentation policy for {library}{learned}.", ""]
    lines += ["    width            up to          verdict"]
    lines += [f"    {n:<16} {_value(w.value, w.unit):<14} {w.verdict}" for n, w in policy.widths.items()]
    lines += ["", exact, "", "What the library's own classes cannot say:", *(f"- {note}" for note in notes)]
    if left_out:
        lines += ["", "Left out here:", *(f"- {note}" for note in left_out)]
    text = "\n".join(lines).replace("\\", "/").replace('"', "'")
    return f'"""{text}\n"""\n'


def _value(value: float, unit: str) -> str:
    return f"x {value:.3g}" if unit == "factor" else f"{value:.4g} {unit}".strip()


def number(value: float) -> str:
    """Write a number for source code."""
    return f"{value:.8g}" if "." in f"{value:.8g}" or "e" in f"{value:.8g}" else f"{value:.8g}.0"


def table(name: str, values: dict[str, float]) -> str:
    """Write a dictionary of numbers for source code."""
    entries = ", ".join(f'"{key}": {number(value)}' for key, value in values.items())
    return f"{name} = {{{entries}}}\n"


def generators(matrices: dict[str, list[list[float]]]) -> str:
    """Write the generator matrices for source code."""
    rows = "".join(
        f'    "{name}": {[[round(v) for v in row] for row in G]},\n' for name, G in matrices.items()
    )
    return f"GENERATORS = {{\n{rows}}}\n"


def listed(name: str, opening: str, steps: Sequence[str], closing: str) -> str:
    """Write an assignment with one step a line."""
    inner = "".join(f"    {step},\n" for step in steps)
    return f"{name} = {opening}\n{inner}{closing}\n"


@dataclass(frozen=True)
class Ranges:
    """The nearest that a library's own random affine can be asked for."""

    degrees: float
    """Largest turn."""
    translate_x: float
    """Largest shift to the side, as a share of the image's width."""
    translate_y: float
    """Largest shift up or down, as a share of its height."""
    scale_x: float
    """Largest factor along x."""
    scale_y: float
    """Largest factor along y."""
    shear: float
    """Largest shear in degrees."""

    @property
    def scale(self) -> float:
        """One factor for both axes."""
        return math.sqrt(self.scale_x * self.scale_y)


def ranges(eta: dict[str, float], input_shape: Sequence[int]) -> Ranges:
    """Return what comes nearest to a matrix exponential in the words of other libraries."""
    joint, half = eta.get("scale_joint", 0.0), min(input_shape[1:]) / 2
    return Ranges(
        math.degrees(eta.get("rotation", 0.0)),
        eta.get("translate_x", 0.0) * half / input_shape[2],
        eta.get("translate_y", 0.0) * half / input_shape[1],
        math.exp(eta.get("scale_x", 0.0) + joint),
        math.exp(eta.get("scale_y", 0.0) + joint),
        math.degrees(math.atan(eta.get("shear", 0.0))),
    )


AFFINE_NOTES = (
    "one exponential of all generators together: theirs are applied one after the other, in an order of their own",
    "factors whose logarithm is uniform (x 1/2 as likely as x 2): theirs are uniform between the two ends",
    "shear along both axes by one number (the papers' generator [[0, 1], [1, 0]]): theirs are drawn for each axis",
)
FINITE_NOTE = (
    "finite groups: Augury blends an image with its moved copy while it learns; here a draw moves it or not"
)
COLOR_NOTE = "colours are not cut off at 0 and 1, factors are uniform in their logarithm, hue turns about the grey axis"
BLUR_NOTE = "the blur's variance, not its width, is uniform; near borders it differs a little from Augury's"


GREY = """
def grey(x):
    weights = torch.tensor([0.299, 0.587, 0.114] if x.shape[-3] == 3 else [1 / x.shape[-3]] * x.shape[-3]).to(x)
    return (weights[:, None, None] * x).sum(-3, keepdim=True)

"""

LINES = {
    "blur": '    x = blur(x, e["blur"].abs().sqrt())',
    "brightness": '    x = x * e["brightness"].exp()',
    "contrast": (
        '    mean = grey(x).mean((-2, -1), keepdim=True)\n    x = mean + e["contrast"].exp() * (x - mean)'
    ),
    "saturation": '    x = grey(x) + e["saturation"].exp() * (x - grey(x))',
    "hue": (
        '    c, s = e["hue"].cos(), e["hue"].sin() / math.sqrt(3)\n'
        "    x = c * x + (1 - c) * x.mean(-3, keepdim=True) + s * (x.roll(1, -3) - x.roll(-1, -3))"
    ),
    "grey": '    x = x + e["grey"].abs().clamp(max=1) * (grey(x) - x)',
}
"""What each operation does to x, in the order in which they act; e are numbers uniform on [-eta, eta]."""

NEED_GREY = ("contrast", "saturation", "grey")


def color_function(colors: dict[str, float]) -> str:
    """Return `change_colors(x, e)` with the operations that are asked for."""
    lines = [line for name, line in LINES.items() if name in colors]
    helper = GREY if any(name in NEED_GREY for name in colors) else ""
    return helper + "\ndef change_colors(x, e):\n" + "\n".join(lines) + "\n    return x\n"
