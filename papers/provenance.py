"""What stands below every table: the command, the seeds, the settings, the time, the machine."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from papers.cell import Cell, Result
from papers.markdown import grouped, spread, table

if TYPE_CHECKING:
    from papers.reproduce import Request


def provenance(request: "Request", scale: str, results: Sequence[Result]) -> str:
    """Return how the figures of a table came about."""
    seeds = sorted({r.cell.seed for r in results})
    total = sum(r.invariance.seconds for r in results)
    machines = sorted({_machine(r) for r in results})
    jobs = "" if request.jobs == 1 else f" --jobs {request.jobs}"
    lines = [
        f"- Command: `augury reproduce {request.paper} {request.item} --scale {scale} --seeds {len(seeds)}{jobs}`",
        f"- Seeds: {', '.join(map(str, seeds))}; {len(results)} runs, {total:,.0f} seconds of training in all.",
        f"- Machine: {'; '.join(machines)}.",
        f"- Raw results: the `{request.paper}_*_{scale}.jsonl` files beside this one.",
    ]
    return "\n".join(lines) + f"\n\nSettings that are not defaults:\n\n{settings_table(results)}"


def _machine(result: Result) -> str:
    m = result.machine
    return f"{m['cores']} cores, {m['memory_gb']} GB, {m['threads']} threads per run, torch {m['torch']}"


def settings_table(results: Sequence[Result]) -> str:
    """Return the settings of every method and network, each line once."""

    def by(cell: Cell) -> tuple[str, ...]:
        settings = ", ".join(
            f"{k}={v}" for k, v in sorted(json.loads(json.dumps(dict(cell.settings))).items())
        )
        return cell.data, cell.model, cell.method, str(cell.subset or "all"), settings or "none"

    rows = [
        (*key, spread([r.invariance.seconds for r in group], 0))
        for key, group in grouped(results, by).items()
    ]
    return table(["data", "network", "method", "images", "settings", "seconds"], rows)
