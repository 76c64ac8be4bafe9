"""The spectral-decay figure: largest singular values of the Jacobian and of the first layer during training."""

from collections.abc import Mapping, Sequence

from papers.cell import Result
from papers.genuine.figures import audit_of, by_row, curves
from papers.genuine.run import run
from papers.genuine.settings import GROUPS, grid, group_of
from papers.item import Item
from papers.markdown import grouped, spread, table
from papers.svg import Panel, chart

COLUMNS = (
    ("jacobian", "sigma_max(J)"),
    ("relative", "sigma_max(J) / size of logits"),
    ("first_weight", "sigma_max(W_1)"),
)
"""Columns of the trace, and what they are called."""


def write(results: Sequence[Result]) -> str:
    """Return the values before and after training."""
    rows = []
    for (_, group, _, method), runs in grouped(results, by_row).items():
        figures = []
        for name, _ in COLUMNS:
            for at in (0, -1):
                figures.append(spread([r.extra["spectrum"][name][at] for r in runs], 2))
        on_all = spread([audit_of(r).sigma_max_jacobian for r in runs], 1)
        rows.append([group, method, *figures, on_all])
    head = ["group", "method", *(f"{words}, {when}" for _, words in COLUMNS for when in ("first", "last"))]
    return (
        "Mean ± standard error over seeds; at 100 test images during training, at 200 in the audit. In a tied network "
        "J is that of the whole network, W_1 the shared weight. The paper draws this figure without numbers.\n\n"
        + table([*head, "sigma_max(J), audit"], rows)
    )


def draw(results: Sequence[Result]) -> Mapping[str, bytes]:
    """Draw a row of panels for each group, a line per method."""
    panels = []
    for group in GROUPS:
        some = [r for r in results if group_of(r.cell) == group]
        for name, words in COLUMNS:
            lines = curves(
                some,
                lambda r, name=name: r.extra["spectrum"][name],  # type: ignore[misc]
                lambda r: r.extra["spectrum"]["epoch"],
            )
            panels.append(Panel(f"{group}: {words}", lines, "epoch", from_zero=True))
    return {"spectrum.svg": chart(panels)}


SPECTRUM = Item("Largest singular values during training: spectral decay.", grid, write, draw, run)
