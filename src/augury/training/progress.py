"""Whoever wants to watch a run: the loop tells it what happens, and it may draw a bar."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from augury.core.errors import InputError


class Progress:
    """Watches nothing and says nothing; override what you want to hear of."""

    def start(self, method: str, epochs: int, steps: int, done: int, units: Mapping[str, str]) -> None:
        """Learn that a run begins.

        Parameters
        ----------
        method
            Which method trains.
        epochs
            Epochs of the whole run.
        steps
            Steps in an epoch.
        done
            Epochs that were done before, where a run continues.
        units
            The unit of each width that will be reported, by name.
        """

    def step(self, epoch: int, step: int, loss: float) -> None:
        """Learn that a step is done.

        Parameters
        ----------
        epoch, step
            Where the run stands, both from 1.
        loss
            The loss on this mini-batch.
        """

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Learn that an epoch is done.

        Parameters
        ----------
        row
            Its line of metrics: epoch, loss, widths in their units, log evidence where there is one, seconds.
        """

    def stop(self) -> None:
        """Learn that the run has ended, well or not."""


class Together(Progress):
    """Tells several watchers, one after the other."""

    def __init__(self, watchers: Sequence[Progress]) -> None:
        self.watchers = list(watchers)

    def start(self, method: str, epochs: int, steps: int, done: int, units: Mapping[str, str]) -> None:
        """Pass it on."""
        for watcher in self.watchers:
            watcher.start(method, epochs, steps, done, units)

    def step(self, epoch: int, step: int, loss: float) -> None:
        """Pass it on."""
        for watcher in self.watchers:
            watcher.step(epoch, step, loss)

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Pass it on."""
        for watcher in self.watchers:
            watcher.epoch(row)

    def stop(self) -> None:
        """Pass it on, to every one even if another fails."""
        with ExitStack() as stack:
            for watcher in reversed(self.watchers):
                stack.callback(watcher.stop)


def together(watchers: Progress | Sequence[Any]) -> Progress:
    """Return one watcher for any number of them."""
    if isinstance(watchers, Progress):
        return watchers
    strangers = [watcher for watcher in watchers if not isinstance(watcher, Progress)]
    if strangers:
        raise InputError(
            f"callbacks must be instances of augury.Progress; got {strangers[0]!r:.60}. "
            f"Make a class of it, class Mine(augury.Progress), and override what you want to hear of."
        )
    return Together(watchers)
