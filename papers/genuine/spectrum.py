"""The spectral-decay figure: largest singular values of the Jacobian and of the first layer during training."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from matplotlib.figure import Figure

from papers.catalog import Item
from papers.figures import legend, panels
from papers.genuine.claims import AUDITED
from papers.genuine.curves import plot
from papers.genuine.runs import GROUPS, audit_of, by_row, grid, group_of, run
from papers.markdown import grouped, spread, table
from papers.results import Result

COLUMNS = {"jacobian": "sigma_max(J)", "relative": "sigma_max(J) / size of logits", "first_weight": "sigma_max(W_1)"}
"""Columns of the trace, and what they are called."""
SYMBOLS = (r"$\sigma_{max}(J)$", r"$\sigma_{max}(J)$ / size of logits", r"$\sigma_{max}(W_1)$")
"""The same in figures."""


def write(results: Sequence[Result]) -> str:
    rows = []
    for (_, group, _, method), runs in grouped(results, by_row).items():
        ends = [spread([r.extra["spectrum"][name][at] for r in runs], 2) for name in COLUMNS for at in (0, -1)]
        rows.append([group, method, *ends, spread([audit_of(r).sigma_max_jacobian for r in runs], 1)])
    head = ["group", "method", *(f"{words}, {when}" for words in COLUMNS.values() for when in ("first", "last"))]
    return (
        "Mean ± standard error over seeds; at 100 test images during training, at 200 in the audit. In a tied network "
        "J is that of the whole network, W_1 the shared weight. The paper draws this figure without numbers.\n\n"
        + table([*head, "sigma_max(J), audit"], rows)
    )


def _column(result: Result, name: str) -> list[Any]:
    column: list[Any] = result.extra["spectrum"][name]
    return column


def draw(results: Sequence[Result]) -> Mapping[str, Figure]:
    figure, axes = panels(len(GROUPS) * len(COLUMNS), len(COLUMNS))
    where = [(group, *column) for group in GROUPS for column in zip(COLUMNS, SYMBOLS, strict=True)]
    for ax, (group, name, symbol) in zip(axes, where, strict=True):
        some = [r for r in results if group_of(r.cell) == group]
        plot(ax, some, partial(_column, name="epoch"), partial(_column, name=name))
        ax.set(title=group, xlabel="epoch", ylabel=symbol)
    legend(figure)
    return {"spectrum": figure}


ITEM = Item("Largest singular values during training: spectral decay.", grid, write, draw, run, claims=AUDITED[7:8])
