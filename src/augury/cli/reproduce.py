"""`augury reproduce` and `augury bench`: pass everything on to `python -m papers`, which is not in the wheel."""

from typing import Annotated

import typer

from augury.core.errors import InputError

HELP = """
Reproduce a table or a figure of a paper, ours beside theirs. Needs a clone of the repository.

\b
augury reproduce lila recovery --scale quick    the same as: python -m papers lila recovery --scale quick
augury reproduce --help                         all papers, items and options
"""
BENCH = """
Compare ways to choose an augmentation policy, at equal budgets. Needs a clone of the repository.

\b
augury bench policies --scale quick    the same as: python -m papers policies table --scale quick
augury bench --help                    all options
"""
PASS_ON = {"ignore_unknown_options": True, "help_option_names": []}
"""Settings of the command: every word, --help too, is for `papers`."""


def reproduce(
    words: Annotated[list[str] | None, typer.Argument(metavar="PAPER ITEM ...", help="Passed on as they are.")] = None,
) -> None:
    """Run `python -m papers`."""
    run_papers(words or [], "augury reproduce")


def bench(
    words: Annotated[list[str] | None, typer.Argument(metavar="policies ...", help="Passed on as they are.")] = None,
) -> None:
    """Run `python -m papers policies table`; the first word may name the comparison."""
    given = words or []
    named = bool(given) and not given[0].startswith("-")
    run_papers([given[0] if named else "policies", "table", *given[named:]], "python -m papers")


def run_papers(words: list[str], name: str) -> None:
    """Run the papers' command line, or raise an error that says where to get it."""
    try:
        from papers.__main__ import main
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("papers"):
            raise
        raise InputError(
            "the papers' experiments must be importable; they are only in the repository. Clone it, and run there: "
            "pip install -e '.[papers]'"
        ) from None
    main(words, name)
