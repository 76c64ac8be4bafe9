"""The drift figure: the same networks asked on data that they were not trained on."""

from collections.abc import Mapping, Sequence
from functools import partial

from matplotlib.figure import Figure

from papers.catalog import Item
from papers.figures import legend, panels
from papers.genuine.claims import DRIFTED
from papers.genuine.curves import plot
from papers.genuine.runs import GROUPS, by_row, grid, group_of, run, sets_of, value
from papers.markdown import grouped, spread, table
from papers.results import Result

MEASURES = {"agreement": "share of predictions kept", "SI": "SI", "LI_relative": "LI / spread"}
"""Fields of `Scores`, and what they are called."""


def write(results: Sequence[Result]) -> str:
    rows = []
    for (data, group, _, method), runs in grouped(results, by_row).items():
        sets = [sets_of(r) for r in runs]
        for name in sets[0]:
            there = [scores[name] for scores in sets if name in scores]
            rows.append([
                *(group, method, f"{data}: {name}" if name == "test" else name),
                spread([s.LI.value for s in there], 3),
                spread([s.LI_relative for s in there], 4),
                spread([value(s.SI) for s in there], 3),
                spread([value(s.agreement) for s in there], 1, 100),
            ])
    head = ["group", "method", "asked on", "LI", "LI / spread", "SI", "agreement, %"]
    return (
        "Mean ± standard error over seeds. LI / spread is relative to the logits' spread on the same set: 1 is as far "
        f"as another input. The paper draws this figure without numbers.\n\n{table(head, rows)}"
    )


def _measures(result: Result, field: str) -> list[float | None]:
    return [value(getattr(scores, field)) for scores in sets_of(result).values()]


def draw(results: Sequence[Result]) -> Mapping[str, Figure]:
    names = [name.replace("_", " ") for name in sets_of(results[0])]
    figure, axes = panels(len(GROUPS) * len(MEASURES), len(MEASURES), (2.9, 2.7))
    for ax, (group, field) in zip(axes, [(g, f) for g in GROUPS for f in MEASURES], strict=True):
        some = [r for r in results if group_of(r.cell) == group]
        plot(ax, some, lambda r: range(len(sets_of(r))), partial(_measures, field=field), marker="o")
        ax.set(title=group, ylabel=MEASURES[field])
        ax.set_xticks(range(len(names)), names, rotation=35, ha="right", rotation_mode="anchor")
    legend(figure)
    return {"drift": figure}


ITEM = Item(
    "Invariance asked on other data: Fashion-MNIST and corrupted copies.",
    grid, write, draw, run, claims=DRIFTED,
)  # fmt: skip
