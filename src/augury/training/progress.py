"""Callbacks of a training run, and the one that writes curves for TensorBoard (needs TensorBoard)."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from augury.core.errors import InputError
from augury.core.files import check_writable


class Progress:
    """A callback that does nothing; override the methods you need."""

    def start(self, method: str, epochs: int, steps: int, done: int, units: Mapping[str, str]) -> None:
        """Note that a run begins.

        Parameters
        ----------
        method
            Which method trains.
        epochs
            Epochs of the whole run.
        steps
            Steps in an epoch.
        done
            Epochs that were done before, if the run was resumed.
        units
            The unit of each width that will be reported, by name.
        """

    def step(self, epoch: int, step: int, loss: float) -> None:
        """Note that a step is done: epoch and step, counted from 1, and the loss on its mini-batch."""

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Note that an epoch is done.

        Its line of metrics: epoch, loss, widths in their units, log evidence if there is one, seconds.
        """

    def ahead(self, stages: Sequence[str]) -> None:
        """Note, before a run begins, what will follow its epochs, as `stage` will name it."""

    def stage(self, what: str, done: int = 0, total: int = 0) -> None:
        """Note that the epochs are done and something else begins, or how far it is.

        Parameters
        ----------
        what
            The intervals of the widths, or the scores on the test set.
        done, total
            How much of it is done, of about how much; 0 if unknown.
        """

    def remaining(self, seconds: float) -> None:
        """Note about how long the run still takes, intervals and scores included; a baseline is another run.

        Parameters
        ----------
        seconds
            Estimated from what its parts have taken so far.
        """

    def note(self, text: str) -> None:
        """Note something that the user should know.

        Parameters
        ----------
        text
            Such as a damaged checkpoint that was passed over.
        """

    def stop(self) -> None:
        """Note that the run has ended, perhaps by an error."""

    def for_baseline(self) -> "Progress":
        """Return the callback of the baseline that is trained after this run: by default this object, started again."""
        return self


class Together(Progress):
    """Calls several callbacks, one after the other."""

    def __init__(self, callbacks: Sequence[Progress]) -> None:
        self.callbacks = list(callbacks)

    def start(self, method: str, epochs: int, steps: int, done: int, units: Mapping[str, str]) -> None:
        for callback in self.callbacks:
            callback.start(method, epochs, steps, done, units)

    def step(self, epoch: int, step: int, loss: float) -> None:
        for callback in self.callbacks:
            callback.step(epoch, step, loss)

    def epoch(self, row: Mapping[str, Any]) -> None:
        for callback in self.callbacks:
            callback.epoch(row)

    def ahead(self, stages: Sequence[str]) -> None:
        for callback in self.callbacks:
            callback.ahead(stages)

    def stage(self, what: str, done: int = 0, total: int = 0) -> None:
        for callback in self.callbacks:
            callback.stage(what, done, total)

    def remaining(self, seconds: float) -> None:
        for callback in self.callbacks:
            callback.remaining(seconds)

    def note(self, text: str) -> None:
        for callback in self.callbacks:
            callback.note(text)

    def stop(self) -> None:
        """Pass a call on to every callback, even if one fails."""
        with ExitStack() as stack:
            for callback in reversed(self.callbacks):
                stack.callback(callback.stop)

    def for_baseline(self) -> Progress:
        return Together([callback.for_baseline() for callback in self.callbacks])


def together(callbacks: Progress | Sequence[Any]) -> Progress:
    """Return one callback for any number of them."""
    if isinstance(callbacks, Progress):
        return callbacks
    others = [callback for callback in callbacks if not isinstance(callback, Progress)]
    if others:
        raise InputError(
            f"callbacks must be instances of augury.Progress; got {others[0]!r:.60}. "
            f"Make a class of it, class Mine(augury.Progress), and override the methods you need."
        )
    return Together(callbacks)


NOT_SCALARS = ("epoch", "widths")  # entries of a line of metrics without a curve of their own


@runtime_checkable
class Writer(Protocol):
    """What is needed of a `SummaryWriter`; any other logger with these two methods works."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> Any:
        """Note a number."""

    def close(self) -> Any:
        """Flush and close."""


class TensorBoard(Progress):
    """Writes curves for TensorBoard: `augury.learn(data, callbacks=[augury.TensorBoard("tb/a")])`.

    | curve | by |
    |---|---|
    | loss/step | training step |
    | loss, log_evidence, seconds, test_accuracy, ... | epoch: every entry of the line of metrics |
    | width/rotation (deg), ... | epoch, in its unit |

    Parameters
    ----------
    folder
        Where the event files go.
    writer
        Another writer to use. Default: `torch.utils.tensorboard.SummaryWriter`.
    """

    def __init__(self, folder: str | Path, writer: Writer | None = None) -> None:
        self.writer = _summary_writer(folder) if writer is None else writer
        self.folder = Path(folder) if writer is None else None
        self.steps, self.units = 0, dict[str, str]()

    def start(self, method: str, epochs: int, steps: int, done: int, units: Mapping[str, str]) -> None:
        self.steps, self.units = steps, dict(units)

    def step(self, epoch: int, step: int, loss: float) -> None:
        self.writer.add_scalar("loss/step", loss, (epoch - 1) * self.steps + step)

    def epoch(self, row: Mapping[str, Any]) -> None:
        at = int(row["epoch"])
        for name, value in row.items():
            if name not in NOT_SCALARS and value is not None:
                self.writer.add_scalar(name, value, at)
        for name, value in row["widths"].items():
            unit = f" ({self.units[name]})" if self.units.get(name) else ""
            self.writer.add_scalar(f"width/{name}{unit}", value, at)

    def stop(self) -> None:
        self.writer.close()

    def for_baseline(self) -> Progress:
        """Write the baseline's curves to the sub-folder baseline; a writer of one's own gets none of them."""
        return Progress() if self.folder is None else TensorBoard(self.folder / "baseline")


def _summary_writer(folder: str | Path) -> Writer:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise InputError(
            "TensorBoard must be installed to write its files; it is not. Run: pip install tensorboard (in a "
            "clone: pip install -e '.[tensorboard]'), "
            "or give a writer of your own with add_scalar and close."
        ) from error
    check_writable(Path(folder))
    writer: Writer = SummaryWriter(log_dir=str(folder))
    return writer
