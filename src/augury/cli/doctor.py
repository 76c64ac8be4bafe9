"""`augury doctor`: what is installed here, and whether a planted invariance is found in your own data."""

from typing import Annotated, Any

import typer

from augury.cli.console import err, out, print_json
from augury.config.learn import DEFAULT_METHOD
from augury.core.errors import InputError, choose
from augury.methods.registry import METHODS
from augury.models.networks import NETWORKS

NOT_RECOVERED = 3
"""Exit code where the planted invariance was not found."""
SECONDS, IMAGES = 60.0, 1000
QUICK = {"samples": 4, "batch": 50}
"""Settings of a trial that are not those of a run: fewer views, more steps."""

HELP = f"""
Show the environment, and see whether a planted invariance is found in your data.

Every image is turned (or shifted, or scaled) once, at random: then the truth is
known. If the method finds it with this network and this budget, a long run
on the data as they are can be trusted; if not, it says what to change.

\b
augury doctor                                 the environment only
augury doctor my_photos/                      plant a rotation, look for it, in about a minute
augury doctor my_photos/ --model resnet_8_16 --seconds 300
augury doctor data.npz --plant scaled --control
augury doctor mnist5k --json                  exit code 0 if it was found, {NOT_RECOVERED} if not
"""


def doctor(
    data: Annotated[
        str | None,
        typer.Argument(metavar="[DATA]", help="Your data: a name, a folder of images, or an .npz."),
    ] = None,
    plant: Annotated[
        str | None,
        typer.Option(
            "--plant", help="rotated (default), partially_rotated, translated, scaled, or sums of them."
        ),
    ] = None,
    model: Annotated[str | None, typer.Option("--model", help=f"{', '.join(NETWORKS)}.")] = None,
    method: Annotated[str, typer.Option("--method", "-m", help="The method to try.")] = DEFAULT_METHOD,
    seconds: Annotated[
        float, typer.Option("--seconds", help="About how long it may take; decides the epochs.")
    ] = SECONDS,
    epochs: Annotated[int | None, typer.Option("--epochs", help="So many epochs, whatever the time.")] = None,
    images: Annotated[int, typer.Option("--images", help="Training examples to use.")] = IMAGES,
    samples: Annotated[int, typer.Option("--samples", "-S", help="Views per input.")] = QUICK["samples"],
    control: Annotated[
        bool, typer.Option("--control", help="Learn from the data as they are too: twice the time.")
    ] = False,
    size: Annotated[int | None, typer.Option("--size", help="Resize images to so many pixels.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Everything random follows from it.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
) -> None:
    """Check what was asked, then do it; see `HELP`."""
    if model is not None:
        choose("model", model, NETWORKS)
    choose("method", method, METHODS)
    for name, value in (("--seconds", seconds), ("--images", images - 1), ("--samples", samples)):
        if value <= 0:
            raise InputError(f"{name} must be positive (images: at least 2); got {value}.")
    from augury.cli.environment import environment, environment_table

    facts = environment()
    if not as_json and not (quiet and data):
        out.print(environment_table(facts))
    asked: dict[str, Any] = {"method": method, "samples": samples, "batch": QUICK["batch"], "seed": seed}
    asked |= {} if model is None else {"model": model}
    recovery = None
    if data is not None:
        from augury.cli.doctoring import examine

        try:
            reading = {"size": size} if size else {}
            recovery = examine(data, reading, plant, images, epochs, seconds, control, asked, quiet)
        except KeyboardInterrupt:
            err.print("Interrupted.", style="yellow")
            raise typer.Exit(130) from None
    if as_json:
        print_json({"environment": facts, "recovery": None if recovery is None else recovery.to_json()})
    elif recovery is None:
        out.print("\nTo try it on your data: augury doctor DATA", style="dim")
    else:
        from augury.cli.doctoring import verdict

        out.print(verdict(recovery))
    if recovery is not None and recovery.verdict != "recovered":
        raise typer.Exit(NOT_RECOVERED)
