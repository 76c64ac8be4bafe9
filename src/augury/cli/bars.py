"""A bar for a run that trains, with the widths and the evidence as they are learned."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.text import Text

from augury.cli.tables import number
from augury.training.progress import Progress


class LiveBar(Progress):
    """Draws a bar and, below it, what was learned so far."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("epoch {task.fields[epoch]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
        )
        self.below = Text("")
        self.live = Live(Group(self.bar, self.below), console=console, refresh_per_second=4)

    def start(self, method: str, epochs: int, steps: int, done: int, units: Mapping[str, str]) -> None:
        """Draw the empty bar."""
        self.epochs, self.steps, self.units = epochs, steps, units
        self.task = self.bar.add_task(
            method, total=epochs * steps, completed=done * steps, epoch=f"{done}/{epochs}"
        )
        self.live.start()

    def step(self, epoch: int, step: int, loss: float) -> None:
        """Move the bar."""
        done = (epoch - 1) * self.steps + step
        self.bar.update(self.task, completed=done, epoch=f"{epoch}/{self.epochs}")

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Show the epoch's widths, loss and evidence."""
        widths = [f"{name} {number(value, self.units[name])}" for name, value in row["widths"].items()]
        parts = [f"loss {row['loss']:.3f}", *widths]
        if "log_evidence" in row:
            parts.insert(1, f"log evidence {row['log_evidence']:.1f}")
        self.below.plain = "  ".join(parts)

    def stop(self) -> None:
        """Leave the bar as it stands."""
        self.live.stop()

    def for_baseline(self) -> "LiveBar":
        """Draw a bar of its own for the baseline."""
        return LiveBar(self.console)
