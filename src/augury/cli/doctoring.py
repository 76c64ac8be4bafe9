"""What `augury doctor` does with data; loads torch."""

from typing import Any

from rich.console import Group, RenderableType

from augury.cli.bars import LiveBar
from augury.cli.console import err
from augury.cli.tables import widths_table
from augury.core.errors import InputError
from augury.data.load import load
from augury.methods.doctor import Recovery, epochs_within, plant, recover

STYLES = {"recovered": "bold green", "partly recovered": "bold yellow"}


def examine(
    source: str,
    reading: dict[str, Any],
    what: str | None,
    images: int,
    epochs: int | None,
    seconds: float,
    control: bool,
    asked: dict[str, Any],
    quiet: bool,
) -> Recovery:
    """Read the data, plant, learn and judge."""
    data = load(source, **reading)
    if any(data.planted.values()):
        raise InputError(
            f"these data carry a planted truth already ({', '.join(data.planted)}); give plain data."
        )
    if len(data.x_train) > images:
        data = data.subset(images, asked["seed"])
    if epochs is None:
        epochs = epochs_within(plant(data, what, asked["seed"]), seconds, 2 if control else 1, **asked)
    return recover(
        data,
        what,
        control=control,
        callbacks=lambda: () if quiet else (LiveBar(err),),
        **asked,
        epochs=epochs,
    )


def verdict(recovery: Recovery) -> RenderableType:
    """Return the verdict for a person."""
    style = STYLES.get(recovery.verdict, "bold red")
    budget = f"{recovery.images} examples, {recovery.epochs} epochs, {recovery.seconds:.0f} seconds"
    return Group(
        "",
        f"[{style}]{recovery.verdict}[/] by {recovery.method} with {recovery.model} ({budget})",
        recovery.why,
        recovery.advice,
        "",
        widths_table(recovery.learned),
    )
