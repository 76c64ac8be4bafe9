"""A policy as source code for another library: what the libraries share, and the function that writes the code.

A library (`torchvision.py`, `kornia.py`, `albumentations.py`) is a `Library`: source of its classes, and how to write a
flip, a turn and its own random affine. The code draws from exactly the learned distribution.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from augury.core.errors import InputError
from augury.export.policy import Policy, in_unit

SMALLEST = 1e-6  # widths with a smaller eta are left out of the code


@dataclass(frozen=True)
class Code:
    """A policy as source code."""

    text: str
    left_out: tuple[str, ...] = ()  # widths that the library cannot express, with the reason; also in the text


@dataclass(frozen=True)
class Parts:
    """The widths of a policy as eta, by what they do to an image."""

    geometry: dict[str, float]  # affine generators: T = exp(sum_k eps_k eta_k G_k)
    matrices: dict[str, list[list[float]]]  # their generator matrices G_k
    finite: dict[str, float]  # finite groups: the probability of leaving the identity
    colors: dict[str, float]  # colours and blur


@dataclass(frozen=True)
class Library:
    """How to write a policy for one library."""

    name: str
    usage: str  # what the code does and how to use it, for its docstring
    imports: Callable[[Parts], str]
    affine: str  # source of the class `LearnedAffine`
    colors: str  # source of the class `LearnedColors`, which calls `change_colors(x, e)`
    operations: dict[str, str]
    """Lines of `change_colors` by name, in the order in which they act; e is uniform on [-eta, eta]."""
    grey: str  # source of `grey(x)`, which some operations need
    flip: str  # a flip, with places for {axis} and {p}
    turn: Callable[[int, str], str]  # a turn by a random multiple of 360 / n degrees with probability p
    compose: tuple[str, str, str]  # opening and closing of a sequence of steps, and a step that does nothing
    nearest: tuple[str, Callable[["Ranges"], list[str]]]  # opening and arguments of the library's own random affine
    blur: str = ""  # source of `blur(x, sigma)`
    base: str = ""  # source of what the learned classes share
    turns: str = ""  # source of the class that `turn` uses
    options: str = ""  # arguments of the learned classes
    affine_notes: tuple[str, ...] = ()
    finite_notes: tuple[str, ...] = ()  # what its own classes cannot express, beyond what no library can


MEANING = """\
Every image x becomes x(T p): p runs over the pixels, T = exp(sum_k eps_k eta_k G_k), eps uniform on [-1, 1].
Coordinates are those of a square as long as the image's shorter side, from -1 to 1; outside the image is 0.
"""
AFFINE_NOTES = (
    "one exponential of all generators together: theirs are applied one after the other, in their own order",
    "factors whose logarithm is uniform (x 1/2 as likely as x 2): theirs are uniform between the two ends",
    "shear along both axes by one number (the papers' generator [[0, 1], [1, 0]]): theirs are drawn for each axis",
)
FINITE_NOTE = "finite groups: Augury blends an image with its transformed copy while it learns; here a draw is either"
COLOR_NOTES = (
    "colours are not clipped to 0 and 1, factors are uniform in their logarithm, hue rotates about the grey axis",
    "the blur's variance, not its width, is uniform; near borders it differs a little from Augury's",
)
NEED_GREY = ("contrast", "saturation", "grey")


def write_code(policy: Policy, library: Library) -> Code:
    parts = parts_of(policy, library.name)
    steps, left_out = _finite(parts.finite, library)
    turns = library.turns if any(name.startswith("C") for name in parts.finite) else ""
    constants, blocks = "", [turns, library.base if parts.geometry or parts.colors else ""]
    if parts.geometry:
        rows = ((name, [[round(v) for v in row] for row in G]) for name, G in parts.matrices.items())
        matrices = "".join(f'    "{name}": {G},\n' for name, G in rows)
        constants += f"{_table('ETA', parts.geometry)}GENERATORS = {{\n{matrices}}}\n"
        blocks.append(library.affine)
        steps.append(f"LearnedAffine({library.options})")
    if parts.colors:
        constants += _table("COLORS", parts.colors)
        lines = [line for name, line in library.operations.items() if name in parts.colors]
        blocks += [
            library.grey if any(name in NEED_GREY for name in parts.colors) else "",
            library.blur if "blur" in parts.colors else "",
            "\n".join(["def change_colors(x, e):", *lines, "    return x"]),
            library.colors,
        ]
        steps.append(f"LearnedColors({library.options})")
    opening, closing, nothing = library.compose
    text = _header(policy, library, parts, left_out) + "\n" + library.imports(parts)
    text += f"\n{constants}" if constants else ""
    text += "".join(f"\n\n{block.strip()}\n" for block in blocks if block)
    text += "\n\n" + _listed("policy", opening, steps or [nothing], closing)
    if parts.geometry:
        start, arguments = library.nearest
        text += _listed("nearest", start, arguments(ranges(parts.geometry, policy.input_shape)), ")")
    return Code(text, tuple(left_out))


def parts_of(policy: Policy, library: str) -> Parts:
    if policy.kind != "image":
        raise InputError(
            f"{library} transforms images; this policy is for data of kind '{policy.kind}'. Take --to json, which "
            f"augury.Policy.read reads back, or --to torch for the model."
        )
    from augury.transforms.affine2d import MATRICES
    from augury.transforms.color import COLORS

    transform = policy.transform().double()
    transform.set_widths(policy.widths_for())
    etas = zip(transform.names, transform.eta.detach().abs().tolist(), strict=True)
    eta = {name: value for name, value in etas if value > SMALLEST}
    geometry = {name: value for name, value in eta.items() if name in MATRICES}
    return Parts(
        geometry,
        {name: MATRICES[name].tolist() for name in geometry},
        {name: value for name, value in eta.items() if name not in MATRICES and name not in COLORS},
        {name: value for name, value in eta.items() if name in COLORS},
    )


def _finite(groups: dict[str, float], library: Library) -> tuple[list[str], list[str]]:
    steps, left_out, axes = [], [], {"flip_x": "Horizontal", "flip_y": "Vertical"}
    for name, p in groups.items():
        if name in axes:
            steps.append(library.flip.format(axis=axes[name], p=number(p)))
        elif name.startswith("C"):
            steps.append(library.turn(int(name[1:]), number(p)))
        else:
            left_out.append(f"{name} (probability {p:.2f}): {library.name} has no transform for this group")
    return steps, left_out


def _header(policy: Policy, library: Library, parts: Parts, left_out: Sequence[str]) -> str:
    by = policy.learned
    learned = f", learned from {by['data']} by {by['method']} with {by['model']}" if by else ""
    notes = [
        *((*AFFINE_NOTES, *library.affine_notes) if parts.geometry else ()),
        *((FINITE_NOTE, *library.finite_notes) if parts.finite else ()),
        *(COLOR_NOTES if parts.colors else ()),
    ] or ["nothing: every width is zero"]
    lines = [f"An augmentation policy for {library.name}{learned}.", ""]
    lines += ["    width            up to          verdict"]
    lines += [f"    {n:<16} {in_unit(w.value, w.unit):<14} {w.verdict}" for n, w in policy.widths.items()]
    lines += ["", MEANING + library.usage, "", "What the library's own classes cannot express:"]
    lines += [f"- {note}" for note in notes]
    if left_out:
        lines += ["", "Left out here:", *(f"- {note}" for note in left_out)]
    text = "\n".join(lines).replace("\\", "/").replace('"', "'")
    return f'"""{text}\n"""\n'


def number(value: float) -> str:
    return f"{value:.8g}" if "." in f"{value:.8g}" or "e" in f"{value:.8g}" else f"{value:.8g}.0"


def _table(name: str, values: dict[str, float]) -> str:
    entries = ", ".join(f'"{key}": {number(value)}' for key, value in values.items())
    return f"{name} = {{{entries}}}\n"


def _listed(name: str, opening: str, steps: Sequence[str], closing: str) -> str:
    inner = "".join(f"    {step},\n" for step in steps)
    return f"{name} = {opening}\n{inner}{closing}\n"


@dataclass(frozen=True)
class Ranges:
    """The closest approximation by a library's own random affine: the largest value of each argument."""

    degrees: float
    translate_x: float  # as a share of the image's width
    translate_y: float  # as a share of its height
    scale_x: float  # a factor
    scale_y: float
    shear: float  # in degrees

    @property
    def scale(self) -> float:
        return math.sqrt(self.scale_x * self.scale_y)


def ranges(eta: dict[str, float], input_shape: Sequence[int]) -> Ranges:
    joint, half = eta.get("scale_joint", 0.0), min(input_shape[1:]) / 2
    return Ranges(
        math.degrees(eta.get("rotation", 0.0)),
        eta.get("translate_x", 0.0) * half / input_shape[2],
        eta.get("translate_y", 0.0) * half / input_shape[1],
        math.exp(eta.get("scale_x", 0.0) + joint),
        math.exp(eta.get("scale_y", 0.0) + joint),
        math.degrees(math.atan(eta.get("shear", 0.0))),
    )


TORCH_GREY = """
def grey(x):
    weights = torch.tensor([0.299, 0.587, 0.114] if x.shape[-3] == 3 else [1 / x.shape[-3]] * x.shape[-3]).to(x)
    return (weights[:, None, None] * x).sum(-3, keepdim=True)
"""

TORCH_OPERATIONS = {
    "blur": '    x = blur(x, e["blur"].abs().sqrt())',
    "brightness": '    x = x * e["brightness"].exp()',
    "contrast": ('    mean = grey(x).mean((-2, -1), keepdim=True)\n    x = mean + e["contrast"].exp() * (x - mean)'),
    "saturation": '    x = grey(x) + e["saturation"].exp() * (x - grey(x))',
    "hue": (
        '    c, s = e["hue"].cos(), e["hue"].sin() / math.sqrt(3)\n'
        "    x = c * x + (1 - c) * x.mean(-3, keepdim=True) + s * (x.roll(1, -3) - x.roll(-1, -3))"
    ),
    "grey": '    x = x + e["grey"].abs().clamp(max=1) * (grey(x) - x)',
}
"""Colour operations on tensors [..., C, H, W]."""
