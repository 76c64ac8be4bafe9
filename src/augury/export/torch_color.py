"""Colour operations as source code on tensors [..., C, H, W]: only the lines that a policy needs."""

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
