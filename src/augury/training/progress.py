"""Whoever wants to watch a run: the loop tells it what happens, and it may draw a bar."""

from collections.abc import Mapping
from typing import Any


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
