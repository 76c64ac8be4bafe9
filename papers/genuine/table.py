"""Paper D's table: accuracy, LI, DI and SI of three ways to invariance, for two groups, ours beside the paper's."""

from collections.abc import Sequence
from dataclasses import replace

from papers.catalog import Item
from papers.claims import Pair, pairs
from papers.genuine.claims import AUDITED, claims
from papers.genuine.runs import EPOCHS, LONG, audit_of, by_row, run, value
from papers.genuine.runs import grid as shared_grid
from papers.markdown import NONE, accuracies, grouped, mean_of, seconds, spread, table
from papers.results import Cell, Result

_PUBLISHED = """
C4 weight_tied     94.6 0.1   0.00 0.0   0.0 0.0   1.00 0.00
C4 data_augmented  94.0 0.5   98.6 5.4   0.3 0.1   0.17 0.04
C4 regularised     87.9 0.8   0.02 0.0   0.0 0.0   0.95 0.03
T3 weight_tied     96.6 0.1   0.0 0.0    0.0 0.0   1.00 0.0
T3 data_augmented  96.2 0.2   50.8 6.8   0.1 0.0   0.57 0.08
T3 regularised     93.1 0.1   0.01 0.0   0.0 0.0   0.95 0.07
"""
PUBLISHED = {
    (group, method): [f"{mean} ± {error}" for mean, error in zip(numbers[::2], numbers[1::2], strict=True)]
    for group, method, *numbers in map(str.split, _PUBLISHED.strip().splitlines())
}
"""By group and method: accuracy in per cent, LI, DI, SI, with their errors over seeds. MNIST, 300 epochs."""
GROUP_IN_PAPER = {"C4": "R^2_4", "T3": "T^2_3"}

HEAD = (
    *("group", "method", "whose", "accuracy, %", "LI", "DI", "SI", "accuracy on views, %", "LI / spread"),
    *("agreement, %", "sigma_max(J)", "sigma_max(J) / size", "nu", "seconds"),
)
ABOUT = """Mean ± standard error over seeds, on the test images; the paper does not say what its errors are.
LI / spread: relative to the mean squared distance between the logits of two images. sigma_max(J) / size: relative to
the root mean squared distance of the logits from their mean. nu follows SI during training; its last value is shown.
"""


def grid(scale: str, seeds: Sequence[int]) -> list[Cell]:
    """Return the runs; at `small` augmentation trains with C4 for the paper's 300 epochs too, with the first seed."""
    cells = shared_grid(scale, seeds)
    if scale != "small" or not cells:
        return cells
    one = next(c for c in cells if c.method == "data_augmented/C4")
    return [*cells, replace(one, method=one.method + LONG, settings={**one.settings, "epochs": EPOCHS["paper"]})]


def write(results: Sequence[Result]) -> str:
    rows = [line for key, runs in grouped(results, by_row).items() for line in _lines(key, runs)]
    first = results[0]
    epochs = f"{first.cell.settings['epochs']} epochs, IR for those beside its name; in the paper 300"
    trained = f"Trained on {first.N:,} images of {first.cell.data} for {epochs}."
    return f"{trained}\n{ABOUT}\n{table(HEAD, rows)}\n{claims(results)}"


def _lines(key: tuple[str, ...], runs: list[Result]) -> list[list[str]]:
    _, group, method, name = key
    audits = [audit_of(r) for r in runs]
    ours = [
        spread(accuracies(runs), 1, 100),
        spread([a.LI.value for a in audits], 3),
        spread([value(a.DI) for a in audits], 3),
        spread([value(a.SI) for a in audits], 3),
        spread([a.accuracy_moved for a in audits], 1, 100),
        spread([a.LI_relative for a in audits], 5),
        spread([value(a.agreement) for a in audits], 1, 100),
        spread([a.sigma_max_jacobian for a in audits], 1),
        spread([a.sigma_max_relative for a in audits], 2),
        spread([r.extra.get("nu") for r in runs], 2),
        seconds(runs),
    ]
    theirs = PUBLISHED.get((group, method), [NONE] * 4)
    row = f"{group} ({GROUP_IN_PAPER.get(group, group)})"
    return [[row, name, "ours", *ours], ["", "", "paper", *theirs, *[NONE] * 7]]


def numbers(results: Sequence[Result]) -> list[Pair]:
    found = []
    groups = grouped(results, by_row)
    for measure, at in (("accuracy, %", 0), ("SI", 3)):
        theirs = {key: float(PUBLISHED[key[1], key[2]][at].split()[0]) for key in groups}
        ours = {
            key: mean_of([100 * (r.invariance.test_accuracy or 0) if at == 0 else value(audit_of(r).SI) for r in runs])
            for key, runs in groups.items()
        }
        found += pairs(measure, {key: v for key, v in ours.items() if v is not None}, theirs)
    return found


ITEM = Item(
    "Accuracy and invariance of weight tying, data augmentation and regularisation.",
    grid, write, run=run, claims=AUDITED[:7], pairs=numbers,
)  # fmt: skip
