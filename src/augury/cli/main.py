"""The command `augury`. Nothing here loads torch: help and lists must come at once."""

import sys
from typing import Annotated

import typer

from augury import __version__
from augury.cli import adapt, amortize, audit, compare, data, doctor, export, learn, report, reproduce
from augury.cli.console import say_error
from augury.cli.processes import check_alone, end_alone, leave_last, leave_together
from augury.core.errors import AuguryError

INTRODUCTION = """
Learn which transformations do not change the labels of a data set, and how far, while a network trains.

\b
augury data list                          the data sets by name
augury learn mnist5k --variant rotated    learn the rotation planted in real digits
augury learn my_photos/                   a folder of images, one sub-folder per class
augury doctor my_photos/                  would an invariance be found in them?
augury export runs/a --to kornia          what was learned, as code
"""

EXIT_CODES = """
Exit codes: 0 done; 1 a bug in Augury; 2 invalid input, or the run could not continue;
3 a negative result (audit's limits, doctor); 129, 130, 143 stopped by a signal.
"""

app = typer.Typer(
    name="augury",
    help=INTRODUCTION,
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (learn, audit, amortize, adapt, export, report, compare, reproduce, doctor):
    name = module.__name__.rpartition(".")[2]
    words = reproduce.PASS_ON if module is reproduce else None
    app.command(name, help=module.HELP, epilog=EXIT_CODES, context_settings=words)(getattr(module, name))
    if module is reproduce:
        app.command("bench", help=reproduce.BENCH, epilog=EXIT_CODES, context_settings=words)(reproduce.bench)
app.add_typer(data.app, name="data")


def _version(asked: bool) -> bool:
    if asked:
        typer.echo(f"augury {__version__}")
        raise typer.Exit
    return asked


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Hold the options of `augury` itself."""


def main() -> None:
    """Run the command line: an `AuguryError` becomes a message and exit code 2, without a traceback."""
    try:
        check_alone("".join(sys.argv[1:2]))
        app(prog_name="augury")
    except SystemExit as end:
        leave_together() if end.code in (0, audit.BEYOND_LIMIT) else leave_last()
        raise
    except AuguryError as error:
        if type(error).__name__ == "Gone":
            end_alone(error)
        say_error(error)
        leave_last()
        sys.exit(2)
