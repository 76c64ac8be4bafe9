"""The comparison of policies, a section for each data set: accuracy, trainings, processor time, widths."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from papers.catalog import Item
from papers.markdown import accuracies, mean_of, spread, table
from papers.policies.policies import PLACES, POLICIES, grid, run
from papers.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INTRODUCTION = """\
The same network, data, steps, batches and optimiser in every training of a data set, with one view per input; the same
number of views per input at test time (a policy without transformations has one view, which is what any number of
equal ones would give). *Trainings* counts all that a policy needs until its last network is there; *CPU seconds* is the
processor time of all of them, tests included, and *times plain* its ratio to no augmentation. A search judges its
candidates on a fifth of the training data and then trains the best one on all of them. The fixed policies, the ranges
of the random ones and the grids of the searches were written down before any result was seen.
"""
MARKS = ("o", "s", "^", "v", "D", "P", "X", "*", "d")


def write(results: Sequence[Result]) -> str:
    parts = [INTRODUCTION]
    for place, here in by_place(results).items():
        plain = mean_of(r.extra["cpu_seconds"] for r in here if r.cell.method == "plain")
        rows = [_row(name, rows, plain) for name, rows in by_policy(here).items()]
        head = ["policy", "what", "test accuracy, %", "trainings", "CPU seconds", "times plain", "widths"]
        parts.append(f"### {place}\n\n{table(head, rows)}")
    trainings, total = (sum(r.extra[name] for r in results) for name in ("trainings", "cpu_seconds"))
    return "\n".join([*parts, f"{trainings} trainings, {total:,.0f} CPU seconds in all.\n"])


def by_place(results: Sequence[Result]) -> dict[str, list[Result]]:
    """Gather the results of each data set, network and size."""
    found: dict[str, list[Result]] = {}
    for r in results:
        found.setdefault(f"{r.cell.data}, {r.cell.variant}: {r.cell.model}, {r.N:,} training data", []).append(r)
    return found


def by_policy(results: Sequence[Result]) -> dict[str, list[Result]]:
    """Gather the results of each policy that has some, in the order of the table."""
    found = {name: [r for r in results if r.cell.method == policy.method] for name, policy in POLICIES.items()}
    return {name: rows for name, rows in found.items() if rows}


def draw(results: Sequence[Result]) -> "Mapping[str, Figure]":
    """Return accuracy against processor time, a panel for each data set."""
    from papers.figures import legend, panels

    places = by_place(results)
    figure, axes = panels(len(places), size=(3.2, 2.6))
    for panel, (place, here) in zip(axes, places.items(), strict=True):
        for name, rows in by_policy(here).items():
            mark = MARKS[list(POLICIES).index(name)]
            cost = [r.extra["cpu_seconds"] for r in rows]
            height = [100 * (a or 0.0) for a in accuracies(rows)]
            panel.plot(sum(cost) / len(cost), sum(height) / len(height), mark, label=name)
        panel.set(title=place.partition(":")[0] + f", {here[0].N:,}", xlabel="CPU seconds", ylabel="test accuracy, %")
        panel.set_xscale("log")
    legend(figure)
    return {"cost": figure}


def _row(name: str, results: Sequence[Result], plain: float | None) -> list[str]:
    seconds = [r.extra["cpu_seconds"] for r in results]
    return [
        name,
        POLICIES[name].what,
        spread(accuracies(results), 1, 100),
        str(max(r.extra["trainings"] for r in results)),
        spread(seconds, 0),
        f"{sum(seconds) / len(seconds) / plain:.1f}" if plain else "-",
        "; ".join(dict.fromkeys(map(_widths, results))) or "-",
    ]


def _widths(result: Result) -> str:
    """Return the widths that move anything, in their units."""
    shown = []
    for name, w in result.invariance.widths.items():
        still = 1.0 if w.unit == "factor" else 0.0
        digits = 2 if w.unit in ("factor", "") else 0
        if round(w.value, digits) != still:
            shown.append(f"{name} {w.value:.{digits}f}{'' if w.unit == 'factor' else f' {w.unit}'.rstrip()}")
    return ", ".join(shown) or "none"


ITEM = Item(
    "Who should choose the augmentation? Ways to choose a policy on real data, at equal budgets.",
    grid,
    write,
    draw,
    run=run,
    scales=tuple(PLACES),
)
