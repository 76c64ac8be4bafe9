"""The numbers printed in paper B: test accuracy in per cent and ELBO per image, one run each. Free of torch."""

Scores = dict[tuple[str, str], tuple[float, float | None]]
"""(Test accuracy, ELBO) by row and variant; None where the paper prints no ELBO."""

ROTATIONS = ("rotated", "partially_rotated", "original")
"""Columns of Tables 1, 4 and 5."""
SINGLE = ("rotated", "translated", "scaled", "original")
"""Columns of Tables 2, 3, 6 and 7."""
PAIRS = ("rotated+translated", "rotated+scaled", "translated+scaled", "original")
"""Columns of Table 8."""

_TABLE_4 = """
fixed_5    79.29 86.71 96.00  -1.07 -0.80 -0.36
fixed_45   87.35 91.13 95.93  -0.63 -0.49 -0.26
fixed_90   90.33 91.69 94.69  -0.52 -0.44 -0.30
fixed_135  91.19 91.04 92.13  -0.45 -0.45 -0.36
fixed_175  91.57 90.47 90.97  -0.43 -0.47 -0.45
from_5     91.72 92.34 96.40  -0.43 -0.42 -0.26
from_45    91.65 92.31 96.42  -0.43 -0.42 -0.26
from_90    91.65 92.37 96.40  -0.43 -0.42 -0.26
from_135   91.66 92.37 96.10  -0.43 -0.42 -0.26
from_175   91.68 91.69 95.64  -0.43 -0.43 -0.26
"""

_TABLE_5 = """
fixed_5    87.21 90.68 96.76  -0.28 -0.20 -0.02
fixed_45   95.24 96.46 98.13  -0.09 -0.06 -0.02
fixed_90   96.50 97.11 98.14  -0.07 -0.06 -0.03
fixed_135  97.15 97.31 97.79  -0.06 -0.06 -0.04
fixed_175  97.53 97.30 97.15  -0.07 -0.06 -0.06
from_0     97.34 97.13 98.40  -0.07 -0.06 -0.02
from_45    97.23 97.36 98.27  -0.07 -0.05 -0.02
from_90    97.28 97.22 98.19  -0.07 -0.06 -0.02
from_135   97.45 97.29 98.33  -0.06 -0.05 -0.02
from_175   97.23 97.23 98.03  -0.06 -0.06 -0.03
"""

_TABLE_6 = """
none         79.29 66.07 89.25 95.16  -1.14 -1.49 -0.69 -0.39
rotation     92.59 75.06 88.66 96.59  -0.43 -1.08 -0.62 -0.26
translation  83.66 87.81 86.15 96.78  -0.82 -0.64 -0.72 -0.24
scale        82.77 75.48 91.31 96.52  -0.84 -1.08 -0.49 -0.26
affine       92.64 87.77 90.58 97.38  -0.43 -0.64 -0.54 -0.21
"""

_TABLE_7 = """
sgpr         91.19 89.22 72.10 97.52
none         90.35 89.34 96.61 98.10  -0.06 -0.06 -0.03 -0.02
rotation     98.05 94.08 97.62 98.64  -0.05 -0.06 -0.03 -0.02
translation  93.59 97.87 97.98 98.76  -0.09 -0.06 -0.03 -0.02
scale        93.80 94.30 98.06 98.35  -0.06 -0.06 -0.03 -0.02
affine       98.14 97.66 98.31 98.93  -0.05 -0.06 -0.03 -0.02
"""

_TABLE_3 = """
none         41.24 40.75 46.56 54.49
rotation     46.04 40.71 46.77 54.72
translation  40.99 45.20 47.44 55.79
scale        40.92 41.22 49.28 54.72
affine       46.12 45.77 48.81 55.44
"""

_TABLE_8 = """
none         53.36 80.71 75.50 98.10  -0.26 -0.10 -0.12 -0.02
rotation     85.35 95.66 85.42 98.64  -0.31 -0.10 -0.27 -0.02
translation  83.84 83.40 91.77 98.76  -0.42 -0.16 -0.19 -0.02
scale        55.63 89.81 86.04 98.35  -0.39 -0.12 -0.17 -0.02
affine       89.37 95.88 91.95 98.93  -0.37 -0.09 -0.18 -0.02
"""


def _parse(text: str, variants: tuple[str, ...]) -> Scores:
    found: Scores = {}
    for line in text.strip().split("\n"):
        row, *words = line.split()
        numbers = list(map(float, words))
        bounds: list[float | None] = [*numbers[len(variants) :]] or [None] * len(variants)
        for variant, accuracy, bound in zip(variants, numbers, bounds, strict=False):
            found[row, variant] = accuracy, bound
    return found


TABLE_4 = _parse(_TABLE_4, ROTATIONS)
"""RFF network, rotation fixed or learned. Table 1 is a part of it."""
TABLE_5 = _parse(_TABLE_5, ROTATIONS)
"""The same for the ReLU network."""
TABLE_6 = _parse(_TABLE_6, SINGLE)
"""RFF network, several transformations."""
TABLE_7 = _parse(_TABLE_7, SINGLE)
"""The same for the ReLU network; its accuracies are those of Table 2, which has the baseline besides."""
TABLE_3 = _parse(_TABLE_3, SINGLE)
"""ReLU network on CIFAR-10."""
TABLE_8 = _parse(_TABLE_8, PAIRS)
"""ReLU network, two transformations planted at once."""
