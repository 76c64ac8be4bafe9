"""The comparison as a table in Markdown."""

from collections.abc import Sequence

from papers.cell import Result
from papers.markdown import accuracies, spread, table
from papers.policies.policies import POLICIES
from papers.provenance import settings_table

INTRODUCTION = """# Who should choose the augmentation?

The same network, images, epochs, batches and views per input in every training; the same number of views per input
at test time (a policy without transformations has one view, which is what any number of equal ones would give).
*Trainings* counts all that a policy needs until its last network is there; *CPU seconds* is the processor time of all
of them, tests included. A search judges its candidates on a fifth of the training images and then trains the best one
on all of them. The fixed policy, the ranges of the random one and the grid of the search were written down before any
result was seen.
"""


def write(results: Sequence[Result], command: str) -> str:
    """Return the whole page."""
    parts = [INTRODUCTION]
    places = dict.fromkeys((r.cell.data, r.cell.variant, r.cell.model) for r in results)
    for place in places:
        here = [r for r in results if (r.cell.data, r.cell.variant, r.cell.model) == place]
        parts.append(_section(place, here))
    return "\n".join([*parts, _footer(results, command)])


def _section(place: tuple[str, str, str], results: Sequence[Result]) -> str:
    data, variant, model = place
    first = results[0]
    head = ["policy", "what", "test accuracy, %", "trainings", "CPU seconds", "widths"]
    rows = [_row(name, [r for r in results if r.cell.method == POLICIES[name].method]) for name in POLICIES]
    images = f"{first.N:,} training images, {first.cell.test_images:,} test images"
    return f"## {data}, {variant}: {model}, {images}\n\n{table(head, [row for row in rows if row])}"


def _row(name: str, results: Sequence[Result]) -> list[str]:
    if not results:
        return []
    return [
        name,
        POLICIES[name].what,
        spread(accuracies(results), 1, 100),
        str(max(r.extra["trainings"] for r in results)),
        spread([r.extra["cpu_seconds"] for r in results], 0),
        _widths(results),
    ]


def _widths(results: Sequence[Result]) -> str:
    """Return the widths of every seed that moved anything, in their units."""
    return "; ".join(dict.fromkeys(_of_one(r) for r in results)) or "-"


def _of_one(result: Result) -> str:
    shown = []
    for name, w in result.invariance.widths.items():
        still = 1.0 if w.unit == "factor" else 0.0
        digits = 2 if w.unit in ("factor", "") else 0
        if round(w.value, digits) != still:
            shown.append(f"{name} {w.value:.{digits}f}{'' if w.unit == 'factor' else f' {w.unit}'.rstrip()}")
    return ", ".join(shown) or "none"


def _footer(results: Sequence[Result], command: str) -> str:
    seeds = sorted({r.cell.seed for r in results})
    total = sum(r.extra["cpu_seconds"] for r in results)
    trainings = sum(r.extra["trainings"] for r in results)
    m = results[0].machine
    machine = f"{m['cores']} cores, {m['memory_gb']} GB, {m['threads']} threads per run, torch {m['torch']}"
    return (
        f"- Command: `{command}`\n"
        f"- Seeds: {', '.join(map(str, seeds))}; {trainings} trainings, {total:,.0f} CPU seconds in all.\n"
        f"- Machine: {machine}.\n\n"
        f"Settings that are not defaults:\n\n{settings_table(results)}"
    )
