"""`augury bench`: pass everything on to `python -m papers policies table`."""

from typing import Annotated

import typer

from augury.cli.reproduce import run_papers

HELP = """
Compare ways to choose an augmentation policy, at equal budgets. Needs a clone of the repository.

\b
augury bench policies --scale quick    the same as: python -m papers policies table --scale quick
augury bench --help                    all options
"""


def bench(
    words: Annotated[list[str] | None, typer.Argument(metavar="policies ...", help="Passed on as they are.")] = None,
) -> None:
    """Run `python -m papers policies table`; the first word may name the comparison."""
    given = words or []
    named = bool(given) and not given[0].startswith("-")
    run_papers([given[0] if named else "policies", "table", *given[named:]], "python -m papers")
