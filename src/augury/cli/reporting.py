"""What every command leaves at its end: how it was called, and the report."""

import json
import os
import platform
import shlex
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from augury import __version__
from augury.core.files import write_text
from augury.report.page import write_report
from augury.training.run_folder import COMMAND

NOT_AGAIN = ("--resume", "--overwrite")
"""Options that a repetition does not need."""


def leave_report(folder: Path) -> Path:
    """Write how the command was called and the report to a run's folder."""
    write_text(folder / COMMAND, json.dumps(called(), indent=2) + "\n")
    return write_report(folder)


def called() -> dict[str, Any]:
    """Return the command as it was typed, and what it ran on."""
    words = ["augury", *(word for word in sys.argv[1:] if word not in NOT_AGAIN)]
    return {
        "command": shlex.join(words),
        "augury": __version__,
        "python": platform.python_version(),
        "torch": version("torch"),
        "numpy": version("numpy"),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }
