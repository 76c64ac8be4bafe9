"""Table 3: training accuracy beside test accuracy, and the bound of Theorem 3.1. The runs are those of Table 1."""

from collections.abc import Sequence

from papers.catalog import Item
from papers.claims import Pair, ahead, means, pairs
from papers.hyperinvariances.downstream import run
from papers.hyperinvariances.published import TABLES_1_AND_3
from papers.hyperinvariances.table1 import PAPERS_OWN, at_size
from papers.hyperinvariances.table1 import grid as table1_grid
from papers.markdown import accuracies, grouped, spread, table
from papers.results import Cell, Result

METHODS = ("evidence", "loss", PAPERS_OWN, "mtl")
BOUND = {"risk": "risk", "complexity": "2XB/sqrt(n)", "choice": "choice", "total": "bound"}
"""Terms of the bound and their sum, and what the columns are called."""


def grid(scale: str, seeds: Sequence[int]) -> list[Cell]:
    return [cell for cell in table1_grid(scale, seeds) if cell.method in METHODS]


def write(results: Sequence[Result]) -> str:
    rows = []
    for key, group in grouped(results, lambda c: (c.variant, str(c.settings["per_class"]), c.method)).items():
        paper = TABLES_1_AND_3.get((key[0], int(key[1])))
        theirs = ["-", "-"]
        if paper and key[2] != "evidence":
            pair = (paper.train_mtl, paper.mtl) if key[2] == "mtl" else (paper.train, paper.continuous)
            theirs = [f"{value:.1f}" for value in pair]
        terms = [spread([r.extra["bound"][name] for r in group], 2) for name in BOUND]
        train = spread([r.extra["train"] for r in group], 1, 100)
        rows.append([*key, train, theirs[0], spread(accuracies(group), 1, 100), theirs[1], *terms])
    head = ["task", "N", "method", "train, %", "paper", "test, %", "paper", *BOUND.values()]
    return (
        "Accuracy with the continuous descriptor, and the bound on the ramp loss (95 %), whose middle term is that of "
        "the solved head; above 1 it says nothing. A continuous descriptor counts as one of 1001^2, and the multi-task "
        f"baseline chooses none.\n\n{table(head, rows)}"
    )


def _by(cell: Cell) -> tuple[str, int, str]:
    return cell.variant, cell.settings["per_class"], cell.method


def fit(group: Sequence[Result]) -> list[float | None]:
    return [r.extra["train"] for r in group]


def numbers(results: Sequence[Result]) -> list[Pair]:
    theirs = {(*key, "loss"): row.train for key, row in TABLES_1_AND_3.items()}
    theirs |= {(*key, "mtl"): row.train_mtl for key, row in TABLES_1_AND_3.items()}
    return pairs("training accuracy, %", means(results, _by, fit), theirs, 100)


ITEM = Item(
    "Training and test accuracy, and the bound.",
    grid, write, run=run, pairs=numbers,
    claims=(ahead("by training loss, the paper's own: a better training fit", "mtl", at_size, fit, ours=PAPERS_OWN),),
)  # fmt: skip
