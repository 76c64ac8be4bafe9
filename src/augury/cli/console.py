"""Where the command line speaks: results on standard output, everything else on standard error."""

import json
from typing import Any

from rich.console import Console
from rich.text import Text

out = Console()
"""Results: tables, and with --json one JSON object and nothing else."""

err = Console(stderr=True)
"""Progress, remarks and errors."""


def say_error(error: Exception) -> None:
    """Print an error's message in red."""
    err.print(Text.assemble(("error: ", "bold red"), (str(error), "red")), soft_wrap=True)


def print_json(values: dict[str, Any]) -> None:
    """Print one JSON object on standard output."""
    print(json.dumps(values, indent=2, allow_nan=False))
