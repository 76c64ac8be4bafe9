"""The comparison of policies, a section for each data set: accuracy, trainings, processor time, widths."""

from collections.abc import Sequence

from papers.catalog import Item
from papers.markdown import accuracies, spread, table
from papers.policies.policies import POLICIES, SCALES, grid, run
from papers.results import Result

INTRODUCTION = """\
The same network, images, epochs, batches and views per input in every training; the same number of views per input
at test time (a policy without transformations has one view, which is what any number of equal ones would give).
*Trainings* counts all that a policy needs until its last network is there; *CPU seconds* is the processor time of all
of them, tests included. A search judges its candidates on a fifth of the training images and then trains the best one
on all of them. The fixed policy, the ranges of the random one and the grid of the search were written down before any
result was seen.
"""


def write(results: Sequence[Result]) -> str:
    parts = [INTRODUCTION]
    for place in dict.fromkeys((r.cell.data, r.cell.variant, r.cell.model) for r in results):
        here = [r for r in results if (r.cell.data, r.cell.variant, r.cell.model) == place]
        images = f"{here[0].N:,} training images, {here[0].cell.test_images:,} test images"
        rows = [_row(name, [r for r in here if r.cell.method == POLICIES[name].method]) for name in POLICIES]
        head = ["policy", "what", "test accuracy, %", "trainings", "CPU seconds", "widths"]
        title = f"### {place[0]}, {place[1]}: {place[2]}, {images}"
        parts.append(f"{title}\n\n{table(head, [row for row in rows if row])}")
    trainings, total = (sum(r.extra[name] for r in results) for name in ("trainings", "cpu_seconds"))
    return "\n".join([*parts, f"{trainings} trainings, {total:,.0f} CPU seconds in all.\n"])


def _row(name: str, results: Sequence[Result]) -> list[str]:
    if not results:
        return []
    return [
        name,
        POLICIES[name].what,
        spread(accuracies(results), 1, 100),
        str(max(r.extra["trainings"] for r in results)),
        spread([r.extra["cpu_seconds"] for r in results], 0),
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
    run=run,
    scales=tuple(SCALES),
)
