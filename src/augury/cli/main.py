"""The command `augury`. Nothing here loads torch: help and lists must come at once."""

import sys
from typing import Annotated

import typer

from augury import __version__
from augury.cli.adapt import HELP as ADAPT_HELP
from augury.cli.adapt import adapt
from augury.cli.amortize import HELP as AMORTIZE_HELP
from augury.cli.amortize import amortize
from augury.cli.audit import HELP as AUDIT_HELP
from augury.cli.audit import audit
from augury.cli.bench import HELP as BENCH_HELP
from augury.cli.bench import bench
from augury.cli.compare import HELP as COMPARE_HELP
from augury.cli.compare import compare
from augury.cli.console import say_error
from augury.cli.data import app as data_app
from augury.cli.doctor import HELP as DOCTOR_HELP
from augury.cli.doctor import doctor
from augury.cli.export import HELP as EXPORT_HELP
from augury.cli.export import export
from augury.cli.learn import HELP, learn
from augury.cli.report import HELP as REPORT_HELP
from augury.cli.report import report
from augury.cli.reproduce import HELP as REPRODUCE_HELP
from augury.cli.reproduce import PASS_ON, reproduce
from augury.core.errors import AuguryError

INTRODUCTION = """
Learn which transformations leave the labels of a data set alone, and how far, while a network trains.

\b
augury data list                          what data there are
augury learn mnist5k --variant rotated    learn the rotation planted in real digits
augury learn my_photos/                   a folder of images, one sub-folder per class
augury doctor my_photos/                  would an invariance be found in them?
augury export runs/a --to kornia          what was learned, as code
"""

EXIT_CODES = """
Exit codes: 0 done; 1 a fault of Augury's own; 2 something given does not fit, or the run could not go on;
3 an answer that was asked about is no (audit's limits, doctor); 130 interrupted.
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
app.command(help=HELP, epilog=EXIT_CODES)(learn)
app.command(help=AUDIT_HELP, epilog=EXIT_CODES)(audit)
app.command(help=AMORTIZE_HELP, epilog=EXIT_CODES)(amortize)
app.command(help=ADAPT_HELP, epilog=EXIT_CODES)(adapt)
app.command(help=EXPORT_HELP, epilog=EXIT_CODES)(export)
app.command(help=REPORT_HELP, epilog=EXIT_CODES)(report)
app.command(help=COMPARE_HELP, epilog=EXIT_CODES)(compare)
app.command(help=REPRODUCE_HELP, context_settings=PASS_ON)(reproduce)
app.command(help=BENCH_HELP, context_settings=PASS_ON)(bench)
app.command(help=DOCTOR_HELP, epilog=EXIT_CODES)(doctor)
app.add_typer(data_app, name="data")


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
        app(prog_name="augury")
    except AuguryError as error:
        say_error(error)
        sys.exit(2)
