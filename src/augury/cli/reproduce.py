"""`augury reproduce`: pass everything on to `python -m papers`, which is in the repository but not in the wheel."""

from typing import Annotated

import typer

from augury.core.errors import InputError

HELP = """
Reproduce a table or a figure of a paper, ours beside theirs. Needs a clone of the repository.

\b
augury reproduce lila recovery --scale quick    the same as: python -m papers lila recovery --scale quick
augury reproduce --help                         all papers, items and options
"""
PASS_ON = {"ignore_unknown_options": True, "help_option_names": []}
"""Settings of the command: every word, --help too, is for `papers`."""


def reproduce(
    words: Annotated[list[str] | None, typer.Argument(metavar="PAPER ITEM ...", help="Passed on as they are.")] = None,
) -> None:
    """Run `python -m papers`."""
    run_papers(words or [], "augury reproduce")


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
