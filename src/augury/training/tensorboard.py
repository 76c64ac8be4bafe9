"""Training as TensorBoard shows it: loss, evidence, test score and every width, by epoch. Needs augury[tensorboard]."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from augury.core.errors import InputError
from augury.training.progress import Progress

NOT_SCALARS = ("epoch", "widths")
"""What of a line of metrics is no curve of its own."""


@runtime_checkable
class Writer(Protocol):
    """What is needed of a `SummaryWriter`; any other logger with these two methods will do."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> Any:
        """Note a number."""

    def close(self) -> Any:
        """Write what is still to be written."""


class TensorBoard(Progress):
    """Writes curves for TensorBoard: `augury.learn(data, callbacks=[augury.TensorBoard("tb/a")])`.

    | curve | by |
    |---|---|
    | loss/step | training step |
    | loss, log_evidence, seconds, test_accuracy, ... | epoch: whatever the line of metrics holds |
    | width/rotation (deg), ... | epoch, in the unit a person reads |

    Parameters
    ----------
    folder
        Where the event files go.
    writer
        Another writer to use; `torch.utils.tensorboard.SummaryWriter` unless told.
    """

    def __init__(self, folder: str | Path, writer: Writer | None = None) -> None:
        self.writer = _summary_writer(folder) if writer is None else writer
        self.steps, self.units = 0, dict[str, str]()

    def start(self, method: str, epochs: int, steps: int, done: int, units: Mapping[str, str]) -> None:
        """Note how long an epoch is, and the units."""
        self.steps, self.units = steps, dict(units)

    def step(self, epoch: int, step: int, loss: float) -> None:
        """Write the loss of a mini-batch."""
        self.writer.add_scalar("loss/step", loss, (epoch - 1) * self.steps + step)

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Write the curves of an epoch."""
        at = int(row["epoch"])
        for name, value in row.items():
            if name not in NOT_SCALARS and value is not None:
                self.writer.add_scalar(name, value, at)
        for name, value in row["widths"].items():
            unit = f" ({self.units[name]})" if self.units.get(name) else ""
            self.writer.add_scalar(f"width/{name}{unit}", value, at)

    def stop(self) -> None:
        """Write everything out."""
        self.writer.close()


def _summary_writer(folder: str | Path) -> Writer:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise InputError(
            "TensorBoard must be installed to write its files; it is not. Run: pip install 'augury[tensorboard]', "
            "or give a writer of your own with add_scalar and close."
        ) from error
    writer: Writer = SummaryWriter(log_dir=str(folder))
    return writer
