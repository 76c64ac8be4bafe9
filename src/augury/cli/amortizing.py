"""What `augury amortize` does once its options are known to be sound; loads torch."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from augury.cli.bars import LiveBar
from augury.cli.console import err, out, print_json
from augury.data.load import load
from augury.data.unlabelled import load_images
from augury.methods.hyper.amortize import Amortized, amortize
from augury.training.run_folder import MODEL


@dataclass(frozen=True)
class Request:
    """All that was asked for."""

    source: str
    """The images."""
    reading: dict[str, Any]
    """How to read them: keywords of `load_images`."""
    groups: str | None
    """The invariance groups, as they were typed."""
    method: str
    """How to pre-train."""
    settings: dict[str, Any]
    """Fields of `AmortizeConfig`."""
    folder: Path
    """Where everything goes."""
    overwrite: bool
    """Replace what stands there."""
    resume: bool
    """Continue what stands there."""


def carry_out(request: Request, *, as_json: bool, quiet: bool) -> None:
    """Read the images, pre-train, and show what came of it."""
    data = _read(request, quiet)
    made = amortize(
        data,
        request.groups,
        request.method,
        out=request.folder,
        overwrite=request.overwrite,
        resume=request.resume,
        callbacks=() if quiet else (LiveBar(err),),
        **request.settings,
    )
    path, known = request.folder / MODEL, made.saved.pretraining
    if as_json:
        facts = {"encoder": made.saved.network, "features": made.saved.n_outputs, **vars(known)}
        print_json({
            "extractor": str(path),
            "groups": list(made.saved.groups),
            **facts,
            "skipped": len(data.skipped),
        })
        return
    out.print(summary(made))
    if not quiet:
        out.print(f"The extractor is {path}", highlight=False, soft_wrap=True)


def _read(request: Request, quiet: bool) -> Any:
    reader = load if request.method == "multitask" else load_images
    if quiet:
        return reader(request.source, **request.reading)
    with err.status(f"reading {request.source}") as status:

        def show(what: str, done: int, total: int) -> None:
            status.update(f"{what} {done}/{total}" if total else what)

        data = reader(request.source, progress=show, **request.reading)
    if data.skipped:
        count = "1 file" if len(data.skipped) == 1 else f"{len(data.skipped)} files"
        text = f"passed over {count} that could not be read, such as {data.skipped[0]}"
        err.print(text, style="yellow", soft_wrap=True)
    return data


def summary(made: Amortized) -> RenderableType:
    """Return what `augury amortize` shows at its end."""
    known = made.saved.pretraining
    assert known is not None
    table = Table(title="Likeness of an image and its view (cosine of features)", title_justify="left")
    table.add_column("group")
    table.add_column("transformations")
    for name in ("entry 0", "entry 1", "two images: 0", "1"):
        table.add_column(name, justify="right")
    for name, found in known.invariance.items():
        cosines = [f"{found[key]:.2f}" for key in ("at_0", "at_1", "random_at_0", "random_at_1")]
        table.add_row(name, known.transformations[name], *cosines)
    size = f"{made.saved.network}, {made.saved.n_outputs} features"
    return Group(table, f"{size}, {known.images} images, {known.epochs} epochs, {known.seconds:.0f} s")
