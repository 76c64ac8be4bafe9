"""The numbers printed in paper D's table, with their errors over seeds."""

from papers.markdown import NONE

COLUMNS = ("accuracy", "LI", "DI", "SI")
_TABLE = """
C4 weight_tied     94.6 0.1   0.00 0.0   0.0 0.0   1.00 0.00
C4 data_augmented  94.0 0.5   98.6 5.4   0.3 0.1   0.17 0.04
C4 regularised     87.9 0.8   0.02 0.0   0.0 0.0   0.95 0.03
T3 weight_tied     96.6 0.1   0.0 0.0    0.0 0.0   1.00 0.0
T3 data_augmented  96.2 0.2   50.8 6.8   0.1 0.0   0.57 0.08
T3 regularised     93.1 0.1   0.01 0.0   0.0 0.0   0.95 0.07
"""


def _parse(text: str) -> dict[tuple[str, str], dict[str, str]]:
    found = {}
    for group, method, *numbers in map(str.split, text.strip().splitlines()):
        pairs = zip(numbers[::2], numbers[1::2], strict=True)
        values = [f"{mean} ± {error}" for mean, error in pairs]
        found[group, method] = dict(zip(COLUMNS, values, strict=True))
    return found


TABLE = _parse(_TABLE)
"""By group and method: accuracy in per cent, LI, DI, SI, as printed. MNIST, 300 epochs."""


def printed(group: str, method: str, column: str) -> str:
    """Return a published number."""
    return TABLE.get((group, method), {}).get(column, NONE)
