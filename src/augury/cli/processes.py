"""Several processes on the command line: those that `--devices` starts here, or that torchrun has started."""

import logging
import os
import sys
import threading
import time
from contextlib import AbstractContextManager, suppress
from typing import Any

from augury.cli.console import err, out, say_error
from augury.core.errors import AuguryError, InputError

ELSEWHERE = ("RANK", "LOCAL_RANK", "NODE_RANK")
"""Variables that torchrun and Lightning Fabric set; all are 0, or not set, in the first process."""

LAUNCHER = "AUGURY_LAUNCHER"
"""Variable with the number of the process that starts others, for these."""
GRACE = 5.0
"""Seconds in which a process may notice by its connection that the first one has ended: that says more."""

TOGETHER = ("learn", "amortize", "audit")  # commands that several processes run together


def is_first() -> bool:
    """Return whether this process speaks and writes; the others are silent."""
    first = all(os.environ.get(name, "0") in ("", "0") for name in ELSEWHERE)
    if not first and not out.quiet:
        out.quiet = err.quiet = True
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    return first


def check_alone(command: str) -> None:
    """Raise if several processes were started for a command of one: they would write to the same folder."""
    there = int(os.environ.get("WORLD_SIZE") or 1)
    if there > 1 and command not in TOGETHER and not command.startswith("-"):
        is_first()
        raise InputError(
            f"augury {command} takes one process; {there} were started (WORLD_SIZE). Run it without torchrun; several "
            f"are for {', '.join(TOGETHER)}."
        )


def launched(devices: int | None, device: str) -> Any:
    """Return a Fabric whose processes are running, this one among them; None for a single process."""
    if devices is not None and devices < 1:
        raise InputError(f"--devices must be at least 1; got {devices}. It is the number of processes on this machine.")
    there = int(os.environ.get("WORLD_SIZE") or 1)
    if max(there, devices or 1) < 2:
        return None
    try:
        from lightning_fabric import Fabric
    except ImportError as error:
        raise InputError(
            "several processes need Lightning Fabric, which is not installed: pip install -e '.[fabric]'."
        ) from error
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    here = int(os.environ.get("LOCAL_WORLD_SIZE") or devices or there)
    if devices not in (None, here):
        raise InputError(f"--devices {devices} must be what torchrun has started here, {here}; leave it out.")
    accelerator = device.partition(":")[0]
    try:
        fabric = Fabric(accelerator=accelerator, devices=here, num_nodes=max(1, there // here), strategy="ddp")
        if os.environ.get("LT_CLI_USED") != "1":  # by `fabric run`, whose processes are running
            _launch(fabric)
    except (RuntimeError, ValueError, TypeError) as error:
        raise InputError(f"{here} processes on {accelerator} cannot be started: {error}") from error
    return fabric


def _launch(fabric: Any) -> None:
    if LAUNCHER in os.environ and sys.platform != "win32":
        threading.Thread(target=_end_with_first, daemon=True).start()
    else:
        os.environ[LAUNCHER] = str(os.getpid())
    fabric.launch()


def _started_by_first() -> bool:
    """Return whether this process was started by the first one, and that one is still there."""
    return os.environ.get(LAUNCHER) == str(os.getppid())


def _end_with_first() -> None:
    """End this process after the first one: if they have not met yet, it would wait for it half an hour."""
    from augury.core.world import GONE, Gone

    while _started_by_first():
        time.sleep(1)
    time.sleep(GRACE)
    end_alone(Gone(GONE.format(reason="the first process is no more")))


def end_alone(error: AuguryError) -> None:
    """Say why, and end: the first process, which speaks otherwise, may be dead."""
    err.quiet = False
    say_error(error)
    sys.stderr.flush()
    os._exit(2)  # the threads of a lost connection would abort a usual exit


def sharing_errors(fabric: Any) -> AbstractContextManager[None]:
    """Return a block whose errors end all processes, and are printed whichever had them: only the first one speaks."""
    from augury.core.world import world_of

    return world_of(fabric).sharing_errors()


def leave_last() -> None:
    """Wait for the end of the first process: Fabric kills it if one that it started has ended with an error."""
    deadline = time.monotonic() + GRACE
    while _started_by_first() and time.monotonic() < deadline:
        time.sleep(0.05)


def leave_together() -> None:
    """Wait for the first process, which writes the report: connections that one end has left may abort the other."""
    dist = sys.modules.get("torch.distributed")
    if dist is not None and dist.is_available() and dist.is_initialized():
        with suppress(RuntimeError):  # a process was killed after its work
            dist.barrier()
            dist.destroy_process_group()
