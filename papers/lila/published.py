"""The numbers printed in paper A: test accuracy in per cent, with its standard error over three seeds."""

from papers.lila.schedules import VARIANTS

_TABLE_1 = """
mnist         mlp         plain     93.82 0.10  95.83 0.03  94.15 0.02  97.07 0.06  98.20 0.03
mnist         mlp         augerino  97.83 0.03  96.35 0.02  94.47 0.08  97.45 0.03  98.45 0.03
mnist         mlp         lila      97.74 0.07  97.81 0.11  97.28 0.05  98.33 0.05  98.98 0.05
mnist         cnn         plain     95.97 0.33  97.51 0.17  96.54 0.29  98.37 0.00  99.09 0.02
mnist         cnn         augerino  99.04 0.02  98.91 0.03  97.79 0.09  98.77 0.06  98.26 0.10
mnist         cnn         lila      98.83 0.07  98.92 0.05  98.69 0.07  99.01 0.06  99.42 0.02
fashion_mnist mlp         plain     77.62 0.30  81.10 0.23  77.68 0.10  81.84 0.05  88.48 0.56
fashion_mnist mlp         augerino  77.76 0.15  81.40 0.05  78.05 0.10  82.46 0.09  89.10 0.13
fashion_mnist mlp         lila      87.39 0.06  86.72 0.13  84.62 0.08  84.31 0.06  89.94 0.12
fashion_mnist cnn         plain     78.69 0.28  82.12 0.35  80.33 0.19  83.66 0.37  89.54 0.23
fashion_mnist cnn         augerino  85.76 3.23  81.54 0.19  82.94 0.13  83.58 0.08  90.07 0.12
fashion_mnist cnn         lila      89.45 0.03  88.40 0.00  87.73 0.20  87.33 0.00  91.92 0.21
cifar10       resnet_8_16 plain     54.16 0.40  59.90 0.12  69.65 0.16  66.06 0.13  74.13 0.51
cifar10       resnet_8_16 augerino  75.40 0.19  74.76 0.34  73.71 0.31  72.07 0.09  79.03 1.04
cifar10       resnet_8_16 lila      79.50 0.62  77.71 0.46  79.21 0.17  76.03 0.15  84.19 0.76
"""


def _parse(text: str) -> dict[tuple[str, str, str, str], tuple[float, float]]:
    found = {}
    for data, model, method, *words in map(str.split, text.strip().splitlines()):
        numbers = list(map(float, words))
        for variant, *pair in zip(VARIANTS, numbers[::2], numbers[1::2], strict=True):
            found[data, variant, model, method] = pair[0], pair[1]
    return found


TABLE_1 = _parse(_TABLE_1)
"""By data, variant, network and method; trained on all images."""

TABLE_2 = {"plain": (85.17, 0.39), "augerino": (87.67, 0.08), "lila/ggn": (91.98, 0.04), "lila/ef": (91.64, 0.26)}
"""Wide ResNet on CIFAR-10, by method."""


def printed(pair: tuple[float, float] | None) -> str:
    return "-" if pair is None else f"{pair[0]:.2f} ± {pair[1]:.2f}"
