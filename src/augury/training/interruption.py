"""SIGINT, SIGTERM and SIGHUP wait until a training step is done and a checkpoint is written."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from augury.core.world import ALONE, World

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Held:
    """Holds the first signal back until `deliver`; a second one acts at once."""

    def __init__(self) -> None:
        self.number: int | None = None
        """The signal that came."""
        self.before: dict[int, Any] = {}

    def install(self) -> None:
        found = {number: signal.getsignal(number) for number in SIGNALS}
        ours = {number: was for number, was in found.items() if was not in (signal.SIG_IGN, None)}  # nohup ignores
        self.before = {number: was for number, was in ours.items() if was != self._hold}
        for number in self.before:
            signal.signal(number, self._hold)

    def remove(self) -> None:
        for number, was in self.before.items():
            signal.signal(number, was)

    def _hold(self, number: int, frame: Any) -> None:
        if self.number is not None:
            self.remove()
            signal.raise_signal(number)
        self.number = number

    def agreed(self, world: World) -> bool:
        """Return whether a signal came to any process: then all of them stop here."""
        if world.agreed(self.number is not None):
            self.number = self.number or signal.SIGTERM
            return True
        return False

    def deliver(self, world: World = ALONE) -> None:
        """Let the signal do what it would have done, in all processes; training goes on if its handler returns."""
        world.agreed(True)  # the first has written its checkpoint: one that ends before would take it along
        number, self.number = self.number, None
        if number is not None:
            self.remove()
            signal.raise_signal(number)
            self.install()


@contextmanager
def held_back(wanted: bool = True) -> Iterator[Held]:
    """Hold signals back in the block; only the main thread can."""
    held = Held()
    if not wanted or threading.current_thread() is not threading.main_thread():
        yield held
        return
    held.install()
    try:
        yield held
        held.deliver()
    finally:
        held.remove()
