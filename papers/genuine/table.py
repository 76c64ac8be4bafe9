"""Paper D's table: accuracy, LI, DI and SI of three ways to invariance, for two groups, ours beside the paper's."""

from collections.abc import Sequence

from papers.cell import Result
from papers.genuine.claims import claims
from papers.genuine.figures import audit_of, by_row, value
from papers.genuine.published import printed
from papers.genuine.run import run
from papers.genuine.settings import GROUP_IN_PAPER, grid
from papers.item import Item
from papers.markdown import NONE, accuracies, grouped, seconds, spread, table

HEAD = [
    "group",
    "method",
    "whose",
    "accuracy, %",
    "LI",
    "DI",
    "SI",
    "accuracy on views, %",
    "LI / spread",
    "agreement, %",
    "sigma_max(J)",
    "sigma_max(J) / size",
    "nu",
    "seconds",
]
ABOUT = """Mean ± standard error over seeds, on the test images; the paper does not say what its errors are.
LI / spread: relative to the mean squared distance between the logits of two images. sigma_max(J) / size: relative to
the root mean squared distance of the logits from their mean. nu follows SI during training; its last value is shown.
"""


def write(results: Sequence[Result]) -> str:
    """Return ours beside the paper's, and which of its statements hold."""
    rows = [line for key, runs in grouped(results, by_row).items() for line in _lines(key, runs)]
    first = results[0]
    epochs = f"{first.cell.settings['epochs']} epochs, IR for those beside its name; in the paper 300"
    trained = f"Trained on {first.N:,} images of {first.cell.data} for {epochs}."
    return f"{trained}\n{ABOUT}\n{table(HEAD, rows)}\n{claims(results)}"


def _lines(key: tuple[str, ...], runs: list[Result]) -> list[list[str]]:
    _, group, method, name = key
    audits = [audit_of(r) for r in runs]
    theirs = [printed(group, method, column) for column in ("accuracy", "LI", "DI", "SI")]
    nus = [r.extra.get("nu") for r in runs]
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
        spread(nus, 2),
        spread(seconds(runs), 0),
    ]
    row = f"{group} ({GROUP_IN_PAPER.get(group, group)})"
    return [[row, name, "ours", *ours], ["", "", "paper", *theirs, *[NONE] * 7]]


TABLE = Item(
    "Accuracy and invariance of weight tying, data augmentation and regularisation.", grid, write, run=run
)
