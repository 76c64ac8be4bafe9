"""The drift figure: the same networks asked on data that they were not trained on."""

from collections.abc import Mapping, Sequence

from papers.cell import Result
from papers.genuine.figures import by_row, curves, sets_of, value
from papers.genuine.run import run
from papers.genuine.settings import GROUPS, grid, group_of
from papers.item import Item
from papers.markdown import grouped, spread, table
from papers.svg import Panel, chart

MEASURES = (("agreement", "views that keep the prediction"), ("SI", "SI"), ("LI_relative", "LI / spread"))
"""Fields of `Scores`, and what they are called."""


def write(results: Sequence[Result]) -> str:
    """Return the measures on every set."""
    rows = []
    for (data, group, _, method), runs in grouped(results, by_row).items():
        sets = [sets_of(r) for r in runs]
        for name in sets[0]:
            there = [scores[name] for scores in sets if name in scores]
            figures = [
                spread([s.LI.value for s in there], 3),
                spread([s.LI_relative for s in there], 4),
                spread([value(s.SI) for s in there], 3),
                spread([value(s.agreement) for s in there], 1, 100),
            ]
            rows.append([group, method, f"{data}: {name}" if name == "test" else name, *figures])
    head = ["group", "method", "asked on", "LI", "LI / spread", "SI", "agreement, %"]
    return (
        "Mean ± standard error over seeds. LI / spread is relative to the logits' spread on the same set: 1 is as far "
        f"as another input. The paper draws this figure without numbers.\n\n{table(head, rows)}"
    )


def draw(results: Sequence[Result]) -> Mapping[str, bytes]:
    """Draw a row of panels for each group: agreement, SI and relative LI on every set, a line per method."""
    names = tuple(sets_of(results[0]))
    panels = []
    for group in GROUPS:
        some = [r for r in results if group_of(r.cell) == group]
        for field, label in MEASURES:
            lines = curves(
                some,
                lambda r, field=field: [value(getattr(s, field)) for s in sets_of(r).values()],  # type: ignore[misc]
                lambda r: range(len(sets_of(r))),
            )
            panels.append(Panel(f"{group}: {label}", lines, from_zero=True, x_names=names))
    return {"drift.svg": chart(panels)}


DRIFT = Item("Invariance asked on other data: Fashion-MNIST and corrupted copies.", grid, write, draw, run)
